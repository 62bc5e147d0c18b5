"""A plan: a task, a network, a training and the values to sweep over; from TOML or Python, expanded to runs.

The keys and their ranges: `fields` and `task_fields`. Checks that need the task itself: `plan_check`.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from isthmus.errors import PlanError
from isthmus.networks.arguments import check_fits, whole_argument
from isthmus.networks.kinds import kind_named, kinds
from isthmus.sweeps.fields import (
    RECORD,
    TRAINING,
    canonical,
    kind_field,
    network_fields,
    path_of,
    shown,
    table,
    unknown,
)
from isthmus.sweeps.runs import SweepRun, label_of
from isthmus.sweeps.task_fields import canonical_task, task_keys, task_spelling
from isthmus.tasks.arrays import counted
from isthmus.tasks.door import read_toml

_SECTIONS = ("task", "network", "training")
MOST_RUNS = 100_000  # 11 s and .2 GB before the first of them starts
_KEYS = (*_SECTIONS, "record", "grid", "settings")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to compute: fixed sections, and a grid (every combination) or a list of settings.

    Args:
        task: `name` and the arguments of a task that comes along, or `file` with `target`, `classes` or `autoencode`.
        network: `kind` ("fully_connected", "leaky" or "resnet") and its arguments, `seed` among them.
        training: `ridge`, `loss`, `solver`, `evaluations` (the stopping), `dtype`, `scaling` ("column", "global" as in
            `discover`, the outputs to total variance 1; or "none").
        grid: axis -> values. An axis is a key of network or training ("depth", "kind", "ridge"), or "section.key", as
            those of the task are ("task.rank", "task.seed").
        settings: instead of a grid, the axes of each run.
        record: what is kept of a run beside its numbers: `ranks`, `weights`, `history`, each true unless said.
        folder: where relative paths of task files start.
        name: how errors call the plan.
        most_runs: a grid of more is refused before it is expanded.

    Numbers and arrays of numpy, torch and pandas, and ranges, are taken as the plain values that they hold.

    Raises:
        PlanError: a section, the grid or a setting that is no mapping from text.

    >>> task = {"name": "teacher", "rank": 2, "d_in": 5, "d_out": 4, "num_samples": 60}
    >>> plan = isthmus.Plan(task=task, network={"width": 8}, training={}, grid={"depth": [3, 6]})
    >>> plan.grid
    {'depth': [3, 6]}
    """

    task: Mapping[str, object]
    network: Mapping[str, object]
    training: Mapping[str, object]
    grid: Mapping[str, object] = field(default_factory=dict[str, object])
    settings: Sequence[Mapping[str, object]] = ()
    record: Mapping[str, object] = field(default_factory=dict[str, object])
    folder: Path = Path()
    name: str = "plan"
    most_runs: int = MOST_RUNS

    def __post_init__(self) -> None:
        for key in _KEYS:
            object.__setattr__(self, key, _part(key, getattr(self, key), self.name))
        object.__setattr__(self, "folder", path_of(self.folder, f"{self.name}: folder", needs="the path of a folder"))
        if whole_argument(self.most_runs, f"{self.name}: most_runs") < 1:
            raise PlanError(f"{self.name}: most_runs is {self.most_runs}; needs a whole number >= 1.")

    @classmethod
    def read(cls, path: str | Path) -> "Plan":
        """The plan of a TOML file.

        Raises:
            PlanError: no such file, not TOML, an unknown or missing section.
        """
        path = Path(path)
        return cls.of(read_toml(path, needs="a plan", error=PlanError), folder=path.parent, name=str(path))

    @classmethod
    def of(cls, content: Mapping[str, Any], *, folder: Path = Path(), name: str = "plan") -> "Plan":
        """The plan of a mapping with the keys of a file.

        Raises:
            PlanError: an unknown or missing section.
        """
        for key in content:
            if key not in _KEYS:
                raise unknown(str(key), _KEYS, name)
            _part(key, content[key], name)
        for section in _SECTIONS:
            if section not in content:
                raise PlanError(f"{name}: the section [{section}] is missing; a plan needs {', '.join(_SECTIONS)}.")
        return cls(**content, folder=folder, name=name)

    def axes(self) -> dict[str, list[object]]:
        """The axes of the grid with their values; empty for a list of settings.

        Raises:
            PlanError: an axis that is no key, two axes that are the same key, or no values.
        """
        found: dict[str, list[object]] = {}
        for axis, values in _flat(self.grid):
            place = self._place(axis)
            if twin := next((other for other in found if self._place(other) == place), None):
                raise PlanError(f"{self.name}: grid.{axis} and grid.{twin} are both {'.'.join(place)}. Remove one.")
            if not isinstance(values, list | tuple):
                raise PlanError(f"{self.name}: grid.{axis} is {shown(values)}; needs a list of values.")
            if not values:
                raise PlanError(f"{self.name}: grid.{axis} is empty; needs at least one value.")
            found[axis] = list(values)
        return found

    def runs(self) -> tuple[SweepRun, ...]:
        """Every run, in the order of the grid (the last axis fastest).

        Raises:
            PlanError: names the plan, the run by its axes and the key, and says what is needed.
        """
        axes = self.axes()
        if axes and self.settings:
            raise PlanError(f"{self.name}: has both a grid and settings; needs one of them.")
        if not axes and not self.settings:
            raise PlanError(f"{self.name}: the grid is empty; give [grid] axes with values, or [[settings]].")
        if (count := math.prod(map(len, axes.values())) if axes else len(self.settings)) > self.most_runs:
            raise PlanError(
                f"{self.name}: has {counted(count, 'run')}, more than {self.most_runs:,}. Cut it into several plans "
                "over one folder, or lift the limit with --most-runs (Plan.most_runs)."
            )
        if axes:
            points = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
        else:
            points = [dict(_flat(setting)) for setting in self.settings]
        record = canonical(self.record, RECORD, section="record", where=self.name)
        runs = tuple(self._run(number, point, record) for number, point in enumerate(points, 1))
        seen: dict[str, int] = {}
        for number, run in enumerate(runs, 1):
            if (first := seen.setdefault(run.id, number)) != number:
                raise PlanError(f"{self.name}: run {number} ({run.label}) is run {first} again. Remove one of them.")
        return runs

    def _place(self, axis: str, of: str = "[grid]") -> tuple[str, str]:
        """Section and key of an axis."""
        bare = _bare()
        section, dot, key = (axis if "." in axis else bare.get(axis, axis)).partition(".")
        if axis in _SECTIONS:
            raise PlanError(f"{self.name}, {of}: {axis} is a section; an axis is one of its keys, as {axis}.KEY.")
        if not dot:
            known = [*bare, *(f"task.{key}" for key in task_keys(self.task))]
            raise unknown(axis, known, f"{self.name}, {of}")
        if section not in _SECTIONS:
            raise unknown(section, _SECTIONS, f"{self.name}, {of} {axis}")
        return section, key

    def _run(self, number: int, point: Mapping[str, object], record: Mapping[str, object]) -> SweepRun:
        where = f"{self.name}, run {number} ({label_of(point)})"
        given: dict[str, dict[str, object]] = {name: dict(getattr(self, name)) for name in _SECTIONS}
        for axis, value in point.items():
            section, key = self._place(axis, f"[[settings]] of run {number}")
            given[section][key] = value
        task, source = canonical_task(given["task"], where=where, folder=self.folder)
        named = {key: value for key, value in given["network"].items() if key == "kind"}
        kind = canonical(named, {"kind": kind_field()}, section="network", where=where)
        fields = network_fields(str(kind["kind"]))
        for key in given["network"]:
            if key not in fields and (others := [other.name for other in kinds() if key in other.arguments]):
                raise PlanError(
                    f"{where}, [network]: {shown(key)} is of {' and '.join(others)} networks, this one is "
                    f"{kind['kind']}. Give network.kind, or [[settings]] where only some have it."
                )
        former = {
            "task": task,
            "network": canonical(given["network"], fields, section="network", where=where),
            "training": canonical(given["training"], TRAINING, section="training", where=where),
            "record": record,
        }
        network = kind_named(str(kind["kind"])).spelling(former["network"])
        settings = {**former, "task": task_spelling(task), "network": network}
        ridge, dtype = float(str(settings["training"]["ridge"])), getattr(torch, str(settings["training"]["dtype"]))
        try:
            check_fits(ridge, f"{where}: training.ridge is {ridge:g}", dtype, squared=True)
        except ValueError as error:
            raise PlanError(str(error)) from None
        return SweepRun(settings, source, dict(point), former if former != settings else None)


def _part(key: str, value: object, name: str) -> dict[str, object] | list[dict[str, object]]:
    """A section, the grid or the settings, with plain values.

    Raises:
        PlanError: neither a table nor, of settings, a list of them.
    """
    if key != "settings":
        return table(value, f"{name}: {key}", needs=f"a table, [{key}] (a dict in Python)")
    needs = "a list of tables, [[settings]] (of dicts in Python)"
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise PlanError(f"{name}: settings is {shown(value)}; needs {needs}.")
    return [table(setting, f"{name}: settings[{i}]", needs=needs) for i, setting in enumerate(value)]


def _bare() -> dict[str, str]:
    """The keys that a grid names without their section."""
    of_networks = {key: f"network.{key}" for kind in kinds() for key in kind.arguments}
    return {"kind": "network.kind"} | of_networks | {key: f"training.{key}" for key in TRAINING}


def _flat(table: Mapping[str, object], prefix: str = "") -> list[tuple[str, object]]:
    """Nested tables as "a.b" keys: TOML reads `task.seed = [0, 1]` as a table within a table."""
    found: list[tuple[str, object]] = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            found += _flat({str(k): v for k, v in value.items()}, f"{prefix}{key}.")
        else:
            found.append((f"{prefix}{key}", value))
    return found
