"""The rank of a task: training starts, curves, certificates, and the decision. The heart of the library.

Training itself is in `training`, per-layer tables in `diagnostics`, files and pages in `reports` and `cli`.
"""

from isthmus.discovery.compression import Compression, compress
from isthmus.discovery.discover import discover
from isthmus.discovery.factorisation import Factorisation, factorise
from isthmus.discovery.interpretation import interpret, symmetry_defect
from isthmus.discovery.result import Discovery, load
from isthmus.discovery.scree import scree

__all__ = [
    "Compression",
    "Discovery",
    "Factorisation",
    "compress",
    "discover",
    "factorise",
    "interpret",
    "load",
    "scree",
    "symmetry_defect",
]
