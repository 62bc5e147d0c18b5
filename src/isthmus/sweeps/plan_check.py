"""The checks of a plan that need its data: every distinct task is made once, and every distinct network built once.

Ranges of single keys: `fields`. What a run computes: `execution`.
"""

from collections.abc import Mapping, Sequence

from isthmus.errors import IsthmusError, PlanError
from isthmus.sweeps.plan import Plan
from isthmus.sweeps.runs import Run, canonical_json
from isthmus.sweeps.setup import prepared


def checked_runs(plan: Plan) -> tuple[Run, ...]:
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
            prepared(run.settings, run.source)
        except (IsthmusError, ValueError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise PlanError(f"{plan.name}, run {number} ({run.label}): {reason}") from error
    return runs


def _seedless(section: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in section.items() if key not in {"seed", "ridge"}}


def task_files(runs: Sequence[Run]) -> dict[str, Mapping[str, object]]:
    """File -> settings of its task, for every file that the runs read."""
    return {run.source: run.settings["task"] for run in runs if run.source is not None}
