"""Every figure there is, by name. What each shows: the file of its name."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from isthmus.errors import DataError
from isthmus.figures import (
    boundedness,
    class_boundaries,
    denoising,
    depth_plateaus,
    discretisation,
    large_depth,
    leaky_depth,
    linear_networks,
    linear_resnets,
    narrowness,
    rank_recovery,
    step_sizes,
    symmetry,
)
from isthmus.figures.figure import PaperFigure

_ALL = (
    rank_recovery.FIGURE,
    class_boundaries.FIGURE,
    denoising.FIGURE,
    large_depth.FIGURE,
    depth_plateaus.FIGURE,
    symmetry.FIGURE,
    narrowness.FIGURE,
    leaky_depth.FIGURE,
    discretisation.FIGURE,
    boundedness.FIGURE,
    linear_resnets.FIGURE,
    linear_networks.FIGURE,
    step_sizes.FIGURE,
)
FIGURES: Mapping[str, PaperFigure] = MappingProxyType({figure.name: figure for figure in _ALL})


def named_figures(name: str) -> tuple[PaperFigure, ...]:
    """The figure called `name` or numbered so, or every figure for "all".

    Raises:
        DataError: no such figure; the line suggests the nearest and lists all.
    """
    if name == "all":
        return tuple(FIGURES.values())
    for figure in FIGURES.values():
        if name in {figure.name, str(figure.number)}:
            return (figure,)
    near = difflib.get_close_matches(name, FIGURES, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise DataError(f"figure {name}: unknown.{hint} Known are all, {', '.join(FIGURES)}.")


def with_mnist(figures: Sequence[PaperFigure], path: Path, folder: Path) -> tuple[PaperFigure, ...]:
    """The same figures, the one of autoencoders with MNIST besides.

    Args:
        figures: as `named_figures` gives them.
        path: an .npz of MNIST, or the folder of its four idx files.
        folder: of the figures; the table of the images in use is written there.

    Raises:
        DataError: none of the figures reads MNIST.
    """
    if denoising.FIGURE not in figures:
        raise DataError(f"--mnist {path}: only figure {denoising.FIGURE.name} reads it. Leave it out, or name that.")
    more = denoising.with_mnist(path, folder)
    return tuple(more if figure is denoising.FIGURE else figure for figure in figures)
