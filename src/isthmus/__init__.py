"""How many dimensions a task really needs, which ones they are, and how sure that is.

Nothing heavy is imported here: each public name is looked up in `_HOME` on first use, so `isthmus --help` stays fast.
"""

import os
import sys
from importlib import import_module

TYPE_CHECKING = False  # not from typing: under `python -m isthmus` a typing.py beside the data would be imported
if TYPE_CHECKING:
    from isthmus import constructions as constructions
    from isthmus import errors as errors
    from isthmus import networks as networks
    from isthmus import plots as plots
    from isthmus import tasks as tasks
    from isthmus import theory as theory
    from isthmus.diagnostics import Diagnosis as Diagnosis
    from isthmus.diagnostics import Monitor as Monitor
    from isthmus.diagnostics import diagnose as diagnose
    from isthmus.diagnostics import forensics as forensics
    from isthmus.diagnostics import leaky_diagnosis as leaky_diagnosis
    from isthmus.discovery import Compression as Compression
    from isthmus.discovery import Discovery as Discovery
    from isthmus.discovery import EffectiveDepth as EffectiveDepth
    from isthmus.discovery import Factorisation as Factorisation
    from isthmus.discovery import Forecast as Forecast
    from isthmus.discovery import compress as compress
    from isthmus.discovery import discover as discover
    from isthmus.discovery import effective_depth as effective_depth
    from isthmus.discovery import factorise as factorise
    from isthmus.discovery import foresee as foresee
    from isthmus.discovery import interpret as interpret
    from isthmus.discovery import load as load
    from isthmus.discovery import scree as scree
    from isthmus.discovery import symmetry_defect as symmetry_defect
    from isthmus.estimators import BottleneckAutoencoder as BottleneckAutoencoder
    from isthmus.estimators import BottleneckClassifier as BottleneckClassifier
    from isthmus.estimators import BottleneckRegressor as BottleneckRegressor
    from isthmus.networks import FullyConnected as FullyConnected
    from isthmus.networks import LayerState as LayerState
    from isthmus.networks import LeakyResNet as LeakyResNet
    from isthmus.networks import ResNet as ResNet
    from isthmus.networks import rebalance as rebalance
    from isthmus.networks import walk as walk
    from isthmus.reports import report as report
    from isthmus.sweeps import Plan as Plan
    from isthmus.sweeps import sweep as sweep
    from isthmus.theory import RankEstimate as RankEstimate
    from isthmus.theory import Verdict as Verdict
    from isthmus.training import FitResult as FitResult
    from isthmus.training import Limits as Limits
    from isthmus.training import Outcome as Outcome
    from isthmus.training import fit as fit

__version__ = "0.1.0"

_ROOMS = ("constructions", "errors", "networks", "plots", "tasks", "theory")
_HOME = {
    "BottleneckAutoencoder": "isthmus.estimators",
    "BottleneckClassifier": "isthmus.estimators",
    "BottleneckRegressor": "isthmus.estimators",
    "Compression": "isthmus.discovery",
    "Diagnosis": "isthmus.diagnostics",
    "Discovery": "isthmus.discovery",
    "EffectiveDepth": "isthmus.discovery",
    "Factorisation": "isthmus.discovery",
    "FitResult": "isthmus.training",
    "Forecast": "isthmus.discovery",
    "FullyConnected": "isthmus.networks",
    "LayerState": "isthmus.networks",
    "LeakyResNet": "isthmus.networks",
    "Limits": "isthmus.training",
    "Monitor": "isthmus.diagnostics",
    "Outcome": "isthmus.training",
    "Plan": "isthmus.sweeps",
    "RankEstimate": "isthmus.theory",
    "ResNet": "isthmus.networks",
    "Verdict": "isthmus.theory",
    "compress": "isthmus.discovery",
    "diagnose": "isthmus.diagnostics",
    "discover": "isthmus.discovery",
    "effective_depth": "isthmus.discovery",
    "factorise": "isthmus.discovery",
    "fit": "isthmus.training",
    "foresee": "isthmus.discovery",
    "forensics": "isthmus.diagnostics",
    "interpret": "isthmus.discovery",
    "leaky_diagnosis": "isthmus.diagnostics",
    "load": "isthmus.discovery",
    "rebalance": "isthmus.networks",
    "scree": "isthmus.discovery",
    "report": "isthmus.reports",
    "sweep": "isthmus.sweeps",
    "symmetry_defect": "isthmus.discovery",
    "walk": "isthmus.networks",
}
_PROVIDED = {  # what rooms ask for that stands to their right: they know it by its name here, and no room besides
    "layers of networks": "isthmus.networks.facts",
    "looks of results": "isthmus.reports.looks",
    "work of processes": "isthmus.discovery.work.elsewhere",
}
LONGEST_SIGNATURE = 240  # characters
__all__ = ["__version__", *_HOME, *_ROOMS]  # pyright: ignore[reportUnsupportedDunderAll]


def provided(name: str):
    """The module that stands for this name in the house, imported on first use: see `_PROVIDED`."""
    return import_module(_PROVIDED[name])


def __getattr__(name: str) -> object:
    if name in _HOME:
        return _readable(getattr(import_module(_HOME[name]), name))
    if name in _ROOMS:
        return import_module(f"isthmus.{name}")
    raise AttributeError(f"module 'isthmus' has no attribute {name!r}")


def _readable(what: object) -> object:
    """A function whose types would fill the first lines of `help` shows its arguments without: its text has them."""
    import inspect  # what is looked up has brought far more along

    if inspect.isfunction(what) and len(str(whole := inspect.signature(what))) > LONGEST_SIGNATURE:
        bare = [  # choices by their values, scaling='auto'
            one.replace(annotation=one.empty, default=getattr(one.default, "value", one.default))
            for one in whole.parameters.values()
        ]
        vars(what)["__signature__"] = whole.replace(parameters=bare)
    return what


def __dir__() -> list[str]:
    return sorted(__all__)


def _one_thread() -> None:
    # OpenMP's threads do not live on in a forked process, which waits for them for ever at the next product: torch's
    # own forked loaders of data do the same
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_thread)
