"""What the coordinates mean, as pictures and as a table of text. The numbers: `discovery.evidence.interpretation`."""

import numpy as np
import xarray as xr

from isthmus import plots
from isthmus.discovery.halves import INDEX, MODE, RANK, RankKind
from isthmus.plots.images import MOST_MAPS, are_pixels
from isthmus.reports.picture import Picture
from isthmus.reports.tables import TableText
from isthmus.tasks.arrays import counted
from isthmus.tasks.names import quoted, shown

_NAMED = 3  # inputs and candidates that are named for each coordinate
_ATTRIBUTION = "How strongly each coordinate follows each input: its mean slope, in units of the spread of both"
_AVERAGE = "An average over the data; a coordinate that only turns somewhere follows the input there."
_COORDINATES = {
    INDEX.name: "The coordinates span the same combinations in another basis: uncorrelated, the one that saves most "
    "first, where the combinations above are rotated to use few inputs.",
    MODE.name: "The coordinates are curved; the modes above are what they move, rotated to use few outputs.",
}


def of_coordinates(kind: str) -> str:
    """How coordinates differ from the combinations or modes that stand on the same page; nothing where none do."""
    return _COORDINATES.get(kind, "")


def meaning_pictures(meaning: xr.Dataset, kind: RankKind = RANK) -> list[Picture]:
    """What each coordinate saves, which inputs it follows, and which candidates it resembles, where there are any."""
    beside = f" {of_coordinates(kind.name)}".rstrip()
    count = meaning.sizes["coordinate"]
    found = [
        Picture(
            "errors_saved",
            "How much of the outputs' variance is lost when one coordinate is held at its mean.",
            f"One bar for each of {counted(count, 'coordinate')}.",
            lambda: plots.errors_saved(meaning),
        ),
        _attributions(meaning, kind, beside),
    ]
    if "candidate" in meaning.sizes:
        found.append(
            Picture(
                "candidates",
                "Distance correlation of each coordinate with the variables to compare with: 1 where one is the other "
                "up to scale and shift, less where it is a curved function of it, about 0.1 of 300 rows where they are "
                "independent.",
                f"{counted(count, 'coordinate')} by {counted(meaning.sizes['candidate'], 'variable')}, darker "
                f"where they are more alike.",
                lambda: plots.candidates(meaning),
            )
        )
    if "transform" in meaning.sizes:
        found.append(
            Picture(
                "symmetry_defects",
                "How much the coordinates change under each transformation: 0 where they are invariant, 1 where the "
                "transformed row is as different as an unrelated one.",
                f"One bar for each of {meaning.sizes['transform']} transformations.",
                lambda: plots.symmetry_defects(meaning),
            )
        )
    return found


def _attributions(meaning: xr.Dataset, kind: RankKind, beside: str) -> Picture:
    caption = f"{_ATTRIBUTION}, without sign.{beside}" if kind is INDEX else f"{_ATTRIBUTION}. {_AVERAGE}{beside}"
    count, what = meaning.sizes["coordinate"], counted(meaning.sizes["coordinate"], "coordinate")
    if not are_pixels(meaning["input"]):
        inputs = counted(meaning.sizes["input"], "input")
        words = f"{what} by {inputs}, darker where the coordinate follows the input."
        return Picture("attributions", caption, words, lambda: plots.attributions(meaning))
    caption = f"{caption.replace('each input:', 'each pixel:')}{first_maps(count)}"
    words = f"One picture for each of {what}, darker where the coordinate follows the pixel."
    return Picture("attributions", caption, words, lambda: plots.attribution_maps(meaning))


def first_maps(count: int) -> str:
    """What is to be said where not all pictures of pixels are drawn."""
    return f" The first {MOST_MAPS} of {count}." if count > MOST_MAPS else ""


def meaning_table(meaning: xr.Dataset) -> TableText:
    """One row for each coordinate: its place, what it saves, what it follows most and what it resembles most."""
    headings = ["coordinate", "place by error saved", "error saved / variance", "follows most"]
    columns = [
        [str(c) for c in meaning["coordinate"].values],
        [str(place) for place in meaning["order"].values],
        [f"{saved:.4g}" for saved in meaning["error_saved"].values],
        _most(meaning["attribution"], "input"),
    ]
    if "candidate" in meaning.sizes:
        headings.append("resembles most (distance correlation)")
        columns.append(_most(meaning["distance_correlation"], "candidate", digits=".2f"))
    return TableText(tuple(headings), tuple(zip(*columns, strict=True)), tuple(range(3, len(headings))))


def _most(table: xr.DataArray, dimension: str, *, digits: str = ".2g") -> list[str]:
    """The largest entries of each coordinate, as "name 0.93, name 0.41"; a name with a comma stands in quotes."""
    names = [shown(name) if "," not in str(name) else quoted(name) for name in table[dimension].values]
    rows = table.transpose("coordinate", dimension).values
    order = np.argsort(-rows, axis=1, kind="stable")[:, :_NAMED]
    pairs = zip(rows, order, strict=True)
    return [", ".join(f"{names[j]} {row[j]:{digits}}" for j in best) for row, best in pairs]
