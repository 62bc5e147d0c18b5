"""What a network does layer by layer, as a labelled table: any module and data in, `xarray.Dataset` out.

The formulas are in `theory`, the pictures in `plots`, the decision about a task's rank in `discovery`.
"""

from isthmus.diagnostics.callbacks import lightning_callback, transformers_callback
from isthmus.diagnostics.class_slices import class_slice
from isthmus.diagnostics.diagnose import diagnose
from isthmus.diagnostics.diagnosis import Diagnosis
from isthmus.diagnostics.forensics import Forensics, forensics
from isthmus.diagnostics.leaky import LeakyPath, leaky_diagnosis, leaky_path
from isthmus.diagnostics.leaky_kinks import KinkStationarity, kink_stationarity
from isthmus.diagnostics.logging_writer import LoggingWriter, log_diagnosis
from isthmus.diagnostics.monitor import Monitor
from isthmus.diagnostics.principal_planes import reconstruction_arrows, representation_path
from isthmus.diagnostics.rank_budgets import rank_budgets

__all__ = [
    "Diagnosis",
    "Forensics",
    "KinkStationarity",
    "LeakyPath",
    "LoggingWriter",
    "Monitor",
    "class_slice",
    "diagnose",
    "forensics",
    "kink_stationarity",
    "leaky_diagnosis",
    "leaky_path",
    "lightning_callback",
    "log_diagnosis",
    "rank_budgets",
    "reconstruction_arrows",
    "representation_path",
    "transformers_callback",
]
