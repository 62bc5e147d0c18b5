"""One run of a sweep as canonical settings with an id that depends on nothing else.

Which runs a plan has: `plan`. Carrying one out: `execution`.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

MOST_SHOWN = 80
SCHEMA = 1  # raised whenever the same settings would mean another computation


@dataclass(frozen=True)
class SweepRun:
    """Settings of one run.

    Attributes:
        settings: sections "task", "network", "training" and "record", every key with its canonical value.
        source: the file that the task is read from; no part of the id.
        axes: the value on each axis of the grid; no part of the id.
        former: the settings as earlier versions had them, where these told spellings of the same run apart.
    """

    settings: Mapping[str, Mapping[str, object]]
    source: str | None
    axes: Mapping[str, object]
    former: Mapping[str, Mapping[str, object]] | None = None

    @cached_property
    def id(self) -> str:
        """20 hexadecimal digits: SHA-256 of the canonical settings and the schema, never of paths."""
        return run_id(self.settings)

    @property
    def label(self) -> str:
        """The axes in one line, as in "depth=4, ridge=0.01"."""
        return label_of(self.axes)


def run_id(settings: Mapping[str, Mapping[str, object]]) -> str:
    """The id of canonical settings."""
    text = canonical_json({"schema": SCHEMA, "settings": settings})
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def canonical_json(value: object) -> str:
    """JSON that is the same text for the same value: keys sorted, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def label_of(axes: Mapping[str, object]) -> str:
    """Axes and their values in one line."""
    return ", ".join(f"{axis}={_short(value)}" for axis, value in axes.items())


def _short(value: object) -> str:
    try:
        text = str(value)
    except (ValueError, RecursionError):  # integers beyond 4,300 digits, tables within tables
        return "..."
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
