"""Several discoveries side by side: what each found, and the settings in which they differ. One in words: `reports`."""

import json
import math
from collections.abc import Sequence

from isthmus.discovery.files.json_values import plain
from isthmus.discovery.result import Discovery

# said apart, or no choice of the user
_NO_CHOICES = {"isthmus", "torch", "numpy", "threads", "device_name", "data", "input_ranges"}


def facts_side_by_side(runs: Sequence[Discovery]) -> dict[str, list[object]]:
    """Name -> one value for each discovery, None where it has none: ranks, verdict, interval, errors at the rank."""
    rows: dict[str, list[object]] = {
        "task": [found.task for found in runs],
        "rank": [found.rank for found in runs],
        "kind": [found.kind for found in runs],
        "verdict": [found.verdict.name for found in runs],
        "proved at least": [found.interval.lower for found in runs],
        "proved at most": [found.interval.upper for found in runs],
        "held-out error": [None if math.isnan(found.heldout_error) else found.heldout_error for found in runs],
        "with one fewer": [_with_one_fewer(found) for found in runs],
        "inputs": [len(found.input_names) for found in runs],
        # of which the first has none to be the same as
        "same data": [None, *(found.settings.get("data") == runs[0].settings.get("data") for found in runs[1:])],
    }
    for name in ("sharpness", "scree_rank", "jacobian_rank", "linear_rank", "ridge"):
        rows[name.replace("_", " ")] = [found.readings.get(name) for found in runs]
    return rows


def differing_settings(runs: Sequence[Discovery]) -> dict[str, list[object]]:
    """Setting -> one value for each discovery, where they are not all the same; None where one has none."""
    names = dict.fromkeys(name for found in runs for name in found.settings if name not in _NO_CHOICES)
    told = {name: [found.settings.get(name) for found in runs] for name in names}
    return {
        name: values for name, values in told.items() if len({json.dumps(plain(value, name)) for value in values}) > 1
    }


def _with_one_fewer(found: Discovery) -> float | None:
    rank, errors = found.rank - 1, found.scree["linear_error" if found.is_linear else "heldout_error"]
    return float(errors.sel(rank=rank)) if rank in found.scree["rank"].values else None
