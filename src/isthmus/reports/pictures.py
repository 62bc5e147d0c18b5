"""The pictures of a result with their captions and descriptions, as files and as SVG for the inside of a page.

Drawing itself: `plots`. The page around the pictures: `page`.
"""

import io
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from isthmus import plots
from isthmus.diagnostics import Diagnosis
from isthmus.discovery import Discovery
from isthmus.plots.style import PALETTE
from isthmus.training.atomic import atomic_path

_DPI = 200
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: how to draw it and how to say it.

    Attributes:
        name: file name without suffix.
        caption: what it shows and how to read it, printed below.
        description: what it shows, for those who do not see it.
        draw: draws it and returns its axes.
    """

    name: str
    caption: str
    description: str
    draw: Callable[[], Axes]


def pictures_of(result: Discovery | Diagnosis, x: ArrayLike | None = None) -> list[Picture]:
    """The pictures of a result in reading order; with samples `x`, also their first coordinates."""
    if isinstance(result, Diagnosis):
        return _layer_pictures(result.layers, result.rank.estimate)
    if not result.scree.sizes["rank"]:  # a constant target: nothing was trained
        return []
    found = [*_curve_pictures(result), *_layer_pictures(result.diagnosis.layers, result.rank)]
    starts = Picture(
        "starts",
        "Every start: its objective over the least one at the same ridge (lower is better). The number is the rank of "
        "its Jacobian. Different starts end in minima of different rank, so objectives decide, not averages.",
        f"{result.runs.sizes['run']} starts, each with its objective relative to the least one at its ridge.",
        lambda: plots.starts(result.runs),
    )
    return [*found, starts, *(_coordinate_pictures(result, x) if x is not None and result.rank else [])]


def write_pictures(result: Discovery | Diagnosis, folder: str | os.PathLike[str], x: ArrayLike | None = None) -> None:
    """Write every picture of a result into `folder` (made if missing) as PNG and SVG.

    Raises:
        OSError: the folder cannot be written.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for picture in pictures_of(result, x):
        figure = _figure(picture)
        with atomic_path(place / f"{picture.name}.png") as temporary:
            figure.savefig(temporary, dpi=_DPI)
        with atomic_path(place / f"{picture.name}.svg") as temporary:
            temporary.write_text(_svg(figure, picture.name), encoding="utf-8")


def inline_svg(picture: Picture, prefix: str = "") -> str:
    """The picture as an <svg> element for a page: titled, without ids of its neighbours, in the page's colours."""
    name = f"{prefix}{picture.name}"
    text = _svg(_figure(picture), name)
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
    for color, (light, _dark) in PALETTE.items():
        text = text.replace(light, f"var(--{color})")
    # the view box scales it; a width in points would overflow a telephone
    head, rest = text.split(">", 1)
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    labels = f'aria-labelledby="{name}-title {name}-text"'
    title = f'<title id="{name}-title">{escape(picture.name.replace("_", " "))}</title>'
    return f'{head} role="img" {labels}>{title}<desc id="{name}-text">{escape(picture.description)}</desc>{rest}'


def _figure(picture: Picture) -> Figure:
    figure = picture.draw().get_figure()
    assert isinstance(figure, Figure)
    # laid out once: every later saving would do it again
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def _svg(figure: Figure, salt: str) -> str:
    target = io.StringIO()
    # a fixed salt: the same result gives the same file
    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "path"}):
        figure.savefig(target, format="svg", metadata=_NO_METADATA)
    return target.getvalue()


def _curve_pictures(found: Discovery) -> list[Picture]:
    linear = "PCA" if found.task == "autoencoding" else "reduced-rank regression"
    last, rank = found.scree.sizes["rank"], found.rank
    return [
        Picture(
            "scree",
            "Error through each number of dimensions. A rank stands out where the held-out error falls steeply up to "
            f"it and no further; the dotted line is the best linear map ({linear}).",
            f"Error against the number of dimensions from 1 to {last}, with the chosen rank {rank} marked.",
            lambda: plots.scree(found.scree, rank=rank),
        ),
        Picture(
            "objective_curve",
            "How much the least objective rises when fewer dimensions are allowed, for each ridge. The rank is the "
            "least number below the dotted line at 1 %; the jump to its left says how sharp it is.",
            f"Excess objective against dimensions allowed, one line per ridge, with the chosen rank {rank} marked.",
            lambda: plots.objective_curve(found.objective_curve, rank=rank),
        ),
    ]


def _layer_pictures(layers: xr.Dataset, rank: int) -> list[Picture]:
    pictures: list[Picture] = []
    if "activation_singular_values" in layers:
        pictures.append(
            Picture(
                "layer_spectra",
                "Singular values of the centred activations in every layer, bright is large. A bottleneck shows as "
                "layers that go dark behind the dashed line.",
                f"Map of relative singular values for {layers.sizes['layer']} layers; rank {rank} is marked.",
                lambda: plots.layer_spectra(layers, rank=rank),
            )
        )
    if "jacobian_singular_values" in layers:
        pictures.append(
            Picture(
                "jacobian_spectrum",
                "Singular values of the network's Jacobian: how many directions of the input matter near a sample.",
                f"Singular values of the Jacobian relative to the first; rank {rank} is marked.",
                lambda: plots.jacobian_spectrum(layers, rank=rank),
            )
        )
    return pictures


def _coordinate_pictures(found: Discovery, x: ArrayLike) -> list[Picture]:
    values = found.transform(np.asarray(x, dtype=np.float64))
    table = xr.Dataset({"coordinates": (("sample", "coordinate"), values)})
    if found.rank == 1:
        caption, description = "The samples in the one coordinate found.", f"Histogram of {len(values)} samples."
        return [Picture("coordinate_1", caption, description, lambda: plots.coordinates(table))]
    return [_pair_picture(table, pair) for pair in ((0, 1), (0, 2), (1, 2)) if pair[1] < found.rank]


def _pair_picture(table: xr.Dataset, pair: tuple[int, int]) -> Picture:
    first, second = pair[0] + 1, pair[1] + 1
    return Picture(
        f"coordinates_{first}_{second}",
        f"The samples in the coordinates found, {first} and {second}.",
        f"Scatter of {table.sizes['sample']} samples in coordinates {first} and {second}.",
        lambda: plots.coordinates(table, pair=pair),
    )
