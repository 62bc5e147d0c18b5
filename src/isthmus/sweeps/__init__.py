"""Many runs over depth, ridge and seed: plans, a folder that loses no finished run, workers here or on a cluster.

One run is a `fit` (training) with its readings (diagnostics). The terminal: `cli`. Pictures: `plots`.
"""

from isthmus.sweeps.plan import Plan
from isthmus.sweeps.progress import SweepProgress
from isthmus.sweeps.sweep import sweep

__all__ = ["Plan", "SweepProgress", "sweep"]
