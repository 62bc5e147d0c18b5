"""The rank of a task: training starts, curves, certificates, and the decision. The heart of the library.

Training itself is in `training`, per-layer tables in `diagnostics`, files and pages in `reports` and `cli`.
"""

from isthmus.discovery.chains.compression import Compression, compress
from isthmus.discovery.depth.effective_depth import EffectiveDepth, effective_depth
from isthmus.discovery.discover import discover
from isthmus.discovery.evidence.interpretation import interpret, symmetry_defect
from isthmus.discovery.factorisation import Factorisation, factorise
from isthmus.discovery.foresee import Forecast, foresee
from isthmus.discovery.result import Discovery, load
from isthmus.discovery.scree import scree

__all__ = [
    "Compression",
    "Discovery",
    "EffectiveDepth",
    "Factorisation",
    "Forecast",
    "compress",
    "discover",
    "effective_depth",
    "factorise",
    "foresee",
    "interpret",
    "load",
    "scree",
    "symmetry_defect",
]
