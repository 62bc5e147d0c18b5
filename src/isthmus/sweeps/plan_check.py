"""The checks of a plan that need its data: every distinct task is made once, and every distinct network built once.

Ranges of single keys: `fields`. What a run computes: `execution`.
"""

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch

from isthmus.errors import IsthmusError, PlanError
from isthmus.sweeps.plan import Plan
from isthmus.sweeps.runs import SweepRun, canonical_json
from isthmus.sweeps.setup import Prepared, prepared


def checked_runs(plan: Plan) -> tuple[SweepRun, ...]:
    """The runs of a plan, after each combination of task, network and training was set up once.

    Seeds and ridges cannot make a run impossible, so they are left out of the combinations.

    Raises:
        PlanError: names the run and what does not fit.
    """
    runs = plan.runs()
    seen: set[str] = set()
    for number, run in enumerate(runs, 1):
        kind = canonical_json([_seedless(run.settings[name]) for name in ("task", "network", "training")])
        if kind in seen:
            continue
        seen.add(kind)
        try:
            _check_size(run.settings["network"])
            _check_data(prepared(run.settings, run.source), str(run.settings["training"]["dtype"]))
        except (IsthmusError, ValueError, TypeError, OverflowError, MemoryError, RuntimeError) as error:
            # RuntimeError: what torch says of sizes that it cannot have
            reason = " ".join(str(error).split())[:300]
            if isinstance(error, MemoryError) or "allocate memory" in reason:
                reason = "is too large for the memory of this machine. Make the task or the network smaller."
            raise PlanError(f"{plan.name}, run {number} ({run.label}): {reason}") from error
    return runs


def _check_data(start: Prepared, dtype: str) -> None:
    """Refuse data that are infinite in the precision of the network.

    Raises:
        ValueError: says what would hold them.
    """
    for name, values in (("inputs", start.x), ("targets", start.y)):
        if values.is_floating_point() and not bool(torch.isfinite(values.to(getattr(torch, dtype))).all()):
            raise ValueError(f"the {name} have numbers beyond {dtype}. Use training.dtype 'float64', or scale them.")


def _check_size(network: Mapping[str, object]) -> None:
    """Refuse weights that would not fit into this machine before they are drawn.

    Raises:
        ValueError: says how many there would be.
    """
    width, depth = network["width"], int(str(network["depth"]))
    widths = [int(w) for w in width] if isinstance(width, list) else [int(str(width))] * (depth - 1)
    weights = sum(a * b for a, b in pairwise(widths))
    room = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else None
    if room is not None and 8 * weights > room:  # float32, and its gradient
        raise ValueError(f"network.width and depth make {weights} weights, more than memory holds. Make it smaller.")


def _seedless(section: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in section.items() if key not in {"seed", "ridge"}}


def task_files(runs: Sequence[SweepRun]) -> dict[str, Mapping[str, object]]:
    """File -> settings of its task, for every file that the runs read."""
    return {run.source: run.settings["task"] for run in runs if run.source is not None}
