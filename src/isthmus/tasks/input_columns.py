"""How each input came out of the data: numbers as they stand, booleans, one value of a column of text, or a pixel.

A run records it, so that new rows are brought into the same columns by what is known and never by what names look like.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Int64

from isthmus.errors import DataError
from isthmus.tasks.arrays import NUMBERS_AT_ONCE


class Made(StrEnum):
    """How an input column was made."""

    NUMERIC = "numeric"
    BOOLEAN = "boolean"
    ONE_HOT = "one-hot"
    PIXEL = "pixel"


_SIGNS = {"", ".", ","}  # a run from before there was a record of them has none
# of pictures in a folder, with a band behind it; of the digits of scikit-learn
_PIXEL = re.compile(r"row (\d{1,6}) column (\d{1,6})(?: \w+)?|pixel_(\d{1,6})_(\d{1,6})")
_STRIP = 16  # times as long as wide an array of rows is a series of a few channels, and no picture
_EMPTIEST = 10  # cells of a large picture for each column
_KEPT = {Made.ONE_HOT: ("column", "value"), Made.PIXEL: ("column",)}


@dataclass(frozen=True, slots=True)
class InputColumn:
    """One input of a network.

    Attributes:
        name: of the input.
        made: how.
        column: of the table, where it is one value of a column of text; of a pixel size and kind of the picture; else
            empty.
        value: that value, 1 where the cell is it and 0 elsewhere.
        decimal: the decimal sign of the numbers, where they were text and it was proven or said; else empty.
        filled: what stands in the place of a missing cell, where these were filled in; else empty.
        pixel: "row 2 column 5" where it is that of a picture in an array, which gave it another name; else empty.
    """

    name: str
    made: Made = Made.NUMERIC
    column: str = ""
    value: str = ""
    decimal: str = ""
    filled: str = ""
    pixel: str = ""

    @property
    def source(self) -> str:
        """The column of the table that it comes from."""
        return self.column if self.made is Made.ONE_HOT else self.name


def recorded(columns: Sequence[InputColumn]) -> tuple[dict[str, str], ...]:
    """The columns in terms of JSON, one entry for each input, without its name, which stands beside."""
    return tuple(
        {"made": c.made.value, **{name: getattr(c, name) for name in _KEPT.get(c.made, ())}}
        | {name: value for name in ("decimal", "filled", "pixel") if (value := getattr(c, name))}
        for c in columns
    )


def columns_of(names: Sequence[str], record: object) -> tuple[InputColumn, ...] | None:
    """The inverse of `recorded`; None for a run from before there was a record.

    Raises:
        DataError: the record does not fit the names.
    """
    if record is None:
        return None
    try:
        assert isinstance(record, list | tuple)
        entries = [entry for entry in record if isinstance(entry, Mapping)]
        assert all(entry.get("decimal", "") in _SIGNS for entry in entries)
        others = ("column", "value", "decimal", "filled", "pixel")
        return tuple(
            InputColumn(name, Made(entry["made"]), *(str(entry.get(key, "")) for key in others))
            for name, entry in zip(names, entries, strict=True)
        )
    except (AssertionError, KeyError, ValueError) as error:
        raise DataError("the record of input columns in this run is damaged; run again.") from error


def pixels_of(shape: Sequence[int]) -> tuple[str, ...]:
    """What to call the pixels of an array (n, height, width) of grey pictures, flattened; none where it holds others.

    >>> from isthmus.tasks.input_columns import pixels_of
    >>> pixels_of((60, 2, 2)), pixels_of((60, 4))
    (('row 1 column 1', 'row 1 column 2', 'row 2 column 1', 'row 2 column 2'), ())
    """
    sides = [int(side) for side in shape[1:] if side != 1]  # a band of its own may stand before or behind
    if len(shape) < 3 or len(sides) != 2 or max(sides) > _STRIP * min(sides):  # noqa: PLR2004 - rows of pictures
        return ()
    return tuple(f"row {i} column {j}" for i in range(1, sides[0] + 1) for j in range(1, sides[1] + 1))


def pixel_coordinate(columns: Sequence[InputColumn] | None, dimension: str) -> dict[str, tuple[str, list[str]]]:
    """The coordinate "pixel" of a table of inputs along a dimension, where arrays gave them other names; else none."""
    pixels = [column.pixel for column in columns or ()]
    return {"pixel": (dimension, pixels)} if pixels and all(pixels) else {}


def pixel_places(names: Sequence[str]) -> Int64[np.ndarray, "n 2"] | None:
    """Line and place in it of each column, from 0, where all are pixels of a picture by their names; else None.

    Bands of one pixel have one place. What is a single line is a profile, and no picture; nor are a few pixels far
    apart, as of a map, whose picture would be empty and take gigabytes.

    >>> from isthmus.tasks.input_columns import pixel_places
    >>> pixel_places(["pixel_0_0", "pixel_0_1", "pixel_1_0"]).tolist()
    [[0, 0], [0, 1], [1, 0]]
    """
    found = [_PIXEL.fullmatch(name) for name in names]
    places = np.array([[int(word) for word in one.groups() if word] for one in found if one], dtype=np.int64)
    if not len(found) or len(places) < len(found):
        return None
    places = places - places.min(0)
    height, width = (places.max(0) + 1).tolist()
    return (
        places if min(height, width) > 1 and height * width <= max(NUMBERS_AT_ONCE, _EMPTIEST * len(places)) else None
    )
