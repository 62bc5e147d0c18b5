"""What a figure of a paper consists of: a plan for each preset, and the functions that compute, draw and judge.

The figures themselves: the files named after them, listed in `catalogue`. Where they compute: `workshop`.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

import xarray as xr

from isthmus.figures.claims import Claim
from isthmus.figures.parts import Part
from isthmus.figures.provenance import code_of
from isthmus.figures.workshop import Workshop
from isthmus.reports.picture import Picture
from isthmus.sweeps import Plan

Sizes = TypeVar("Sizes")


class Preset(StrEnum):
    """How large a figure is computed; presets differ in numbers only."""

    PAPER = "paper"
    QUICK = "quick"
    TINY = "tiny"


@dataclass(frozen=True, slots=True)
class FigurePlan(Generic[Sizes]):
    """Everything that a figure computes with, before anything is computed.

    Attributes:
        sizes: the numbers of the preset, a frozen dataclass.
        sweeps: trainings by name.
        parts: what is computed besides, as far as it does not depend on the trainings.
        files: files of the user that it reads, by what they hold.
    """

    sizes: Sizes
    sweeps: Mapping[str, Plan] = field(default_factory=dict[str, Plan])
    parts: tuple[Part, ...] = ()
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """One figure.

    Attributes:
        number: 1 to 13, as in the documentation.
        name: on the command line.
        title: what it shows.
        source: paper and figure.
        setting: one sentence that says which task, which networks, and which sizes are ours.
        plan: the plan of a preset.
        compute: arrays from a plan; trainings and long computations through the workshop, which keeps them.
        draw: the panels, from the arrays alone.
        verdict: the claims, from the arrays alone.
    """

    number: int
    name: str
    title: str
    source: str
    setting: str
    plan: Callable[[Preset], FigurePlan[Any]]
    compute: Callable[[FigurePlan[Any], Workshop], xr.Dataset]
    draw: Callable[[xr.Dataset], tuple[Picture, ...]]
    verdict: Callable[[xr.Dataset], tuple[Claim, ...]]

    def code(self) -> str:
        """Checksum of the figure's own files: arrays put together by another version of them are not used again."""
        return code_of(Path(inspect.getfile(self.compute)))
