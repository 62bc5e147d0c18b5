"""Many runs over depth, ridge and seed: plans, a folder that loses no finished run, workers here or on a cluster.

One run is a `fit` (training) with its readings (diagnostics). The terminal: `cli`. Pictures: `plots`.

Names are looked up on first use: what only reads a folder (`folder`, `index`, `run_table`) answers before torch is
there.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isthmus.sweeps.plan import Plan as Plan
    from isthmus.sweeps.sweep_progress import SweepProgress as SweepProgress
    from isthmus.sweeps.sweeping import sweep as sweep

# no module may have one of these names: once imported it would stand in its place
_HOME = {"Plan": "plan", "SweepProgress": "sweep_progress", "sweep": "sweeping"}
__all__ = ["Plan", "SweepProgress", "sweep"]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"isthmus.sweeps.{_HOME[name]}"), name)
    raise AttributeError(f"module 'isthmus.sweeps' has no attribute {name!r}")
