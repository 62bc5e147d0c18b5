"""Which ranks of a depth path hold the data together, by its table: pure functions of it.

What a network does between rows: `between_rows`. Which rank wins among those that hold: `theory.depth_lines`.
"""

import math

import numpy as np
import xarray as xr

from isthmus.discovery.choices import FILLED, GLUED, GLUED_RATIO, LOST, LOST_RATIO, TOGETHER


def with_holds(table: xr.Dataset, *, close: bool, filled: float = math.nan) -> xr.Dataset:
    """The table with `holds` and `unsure`.

        close: a rank holds up to between = max(.25, 4 times that of the largest rank), and it is sure
        far apart: between > .25 is unsure; it holds up to a held-out error of max(.05, twice that of the largest rank)
        filled: nor does one hold of fewer dimensions than rows fill, by more than .5, that loses more than twice as
        much of held-out rows as the largest rank

    What fills k dimensions goes through no fewer coordinates unless it is torn, and rows too far apart do not show it:
    648 pictures of a double pendulum, which fill 3.7, lost .023 through three coordinates and .008 through seven.
    Noise fills dimensions too, and is lost through any number.

    Test: discovery/test_depth_path.
    """
    trained = table["objective"].notnull()
    largest = table.sel(rank=int(table["rank"].values[trained.any("middle_layers").values].max(initial=1)))
    glued = table["between"] > (np.fmax(GLUED, GLUED_RATIO * largest["between"]) if close else GLUED)
    lost = glued
    if not close:
        lost = glued & ~(table["heldout_error"] <= np.fmax(LOST, LOST_RATIO * largest["heldout_error"]))
    short = (table["rank"] + FILLED < filled) & (table["heldout_error"] > LOST_RATIO * largest["heldout_error"])
    holds = trained & ~lost & ~short
    return table.assign(holds=holds, unsure=holds & glued & (table["rank"] < largest["rank"]))


def two_do_not_hold(table: xr.Dataset) -> bool:
    """Whether the two lowest ranks so far hold the data together at no depth.

    Lower ones then do not either: what embeds in few dimensions embeds in more. One alone may be a failed training.
    """
    trained = table["objective"].notnull().any("middle_layers").values
    holds = table["holds"].any("middle_layers").values[trained]
    return len(holds) >= TOGETHER and not holds[:2].any()
