"""A depth path as a sentence and as a table of text. Its picture: `pictures`; its numbers: `discovery.depth.path`."""

import math

import numpy as np
import xarray as xr

from isthmus.discovery.depth.path import DepthPath, two_do_not_hold
from isthmus.reports.tables import TableText, rows_by
from isthmus.reports.words import dimensions, numbered

_COLUMNS = {
    "rank": "dimensions",
    "middle_layers": "middle layers",
    "objective": "objective",
    "train_error": "error",
    "heldout_error": "held-out error",
    "regularity": "regularity (penalty - dimensions x depth)",
    "between": "worst error between rows",
    "true_rank": "rank at the end",
    "verdict": "",
}


def depth_sentence(path: DepthPath) -> str:
    """The flat and the deep rank, where they switch, and what each pays."""
    flat, deep, switch = path.flat_rank, path.deep_rank, path.reading.switch
    first, last = path.table["middle_layers"].values[[0, -1]]
    if not flat or not deep:
        return "no rank that was tried holds the data together; add samples."
    if flat == deep:
        text = f"{dimensions(flat)} at every depth from {first} to {last} middle layers ({_paid(path, deep)})"
    else:
        at = f", switching at about {switch:.0f}" if math.isfinite(switch) else ""
        layers = "middle layer" if first == 1 else "middle layers"
        text = (
            f"{dimensions(flat)} when shallow ({first} {layers}, {_paid(path, flat)}), {deep} when deep "
            f"({last}, {_paid(path, deep)}){at}"
        )
    return " ".join(part for part in (f"{text}.", _unsure(path), _glued(path), _untrained(path)) if part)


def _paid(path: DepthPath, rank: int) -> str:
    """Error and regularity of a rank at the largest depth."""
    last = path.table.sel(rank=rank).isel(middle_layers=-1)
    return f"error {float(last['heldout_error']):.2g}, regularity {float(last['regularity']):.3g}"


def _unsure(path: DepthPath) -> str:
    """That the deep rank may cut the data open, where that cannot be told."""
    if path.is_sure:
        return ""
    verb = "cuts" if path.deep_rank == 1 else "cut"
    return f"The rows lie too far apart to tell whether {dimensions(path.deep_rank)} {verb} the data open."


def _glued(path: DepthPath) -> str:
    """Which ranks would win if they did not cut the data open."""
    table = path.table.isel(middle_layers=-1)
    least = float(table["objective"].sel(rank=path.deep_rank))
    lower = table["rank"].where(~table["holds"] & (table["objective"] < least), drop=True).values
    if not len(lower):
        return ""
    names = numbered("dimension", [int(rank) for rank in lower])
    return f"A lower objective through {names} comes from cutting the data open, not from coordinates."


def _untrained(path: DepthPath) -> str:
    """Which ranks were left out: two above them do not hold, coordinates fill more, or there are many."""
    trained = path.table["objective"].notnull().any("middle_layers").values
    below, ranks = int(np.argmax(trained)), path.table["rank"].values[trained].tolist()
    words: list[str] = []
    if below:
        lowest = " and ".join(map(str, ranks[:2]))  # one, where others diverged
        why = f"{lowest} cut the data open already"
        if "filled" in path.table.attrs and not two_do_not_hold(path.table):
            why = f"the coordinates of the rows fill {path.table.attrs['filled']:.1f} dimensions"
        words.append(f"Fewer than {ranks[0]} were not tried: {why}.")
    if len(ranks) < ranks[-1] - below:
        words.append(f"Of {ranks[0]} to {ranks[-1]} dimensions only {', '.join(map(str, ranks))} were tried.")
    return " ".join(words)


def depth_table(path: DepthPath) -> TableText:
    """Every rank at every depth with its numbers."""
    flat: xr.Dataset = path.table.stack(point=("rank", "middle_layers")).reset_index("point")  # noqa: PD013
    flat = flat.where(np.isfinite(flat["objective"]), drop=True).reset_coords()
    unsure = flat["unsure"].values.astype(bool) if "unsure" in flat else np.zeros(len(flat["point"]), dtype=bool)
    words = np.where(unsure, "may cut the data open", "")
    words = np.where(flat["holds"].values.astype(bool), words, "cuts the data open")
    return rows_by(flat.assign(verdict=("point", words)), "point", _COLUMNS)
