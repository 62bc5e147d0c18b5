"""A combination or a mode as text, one term for each column of the table; the numbers: `straight_halves`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from isthmus.discovery.combinations import IDLE
from isthmus.discovery.groups.group_words import named
from isthmus.tasks.names import shown

MOST_VALUES = 4  # of one column that are written
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Term:
    """A column of the table: numbers, or text of which each value is a 0/1 column.

    Attributes:
        name: as it is written: `a`, `log a`, `"flow rate"`.
        places: of its columns in a direction.
        values: what each of these stands for; none for numbers.
    """

    name: str
    places: tuple[int, ...]
    values: tuple[str, ...] = ()

    def written(self, loadings: Array, numbers: Array, digits: str) -> tuple[str, str]:
        """Its sign and the rest: "-", "0.12 c"; "+", "colour (0.40 red - 0.33 blue)"."""
        if not self.values:
            number = numbers[self.places[0]]
            return "-" if number < 0 else "+", f"{abs(number):{digits}} {self.name}"
        inner = [Term(value, (place,)) for value, place in zip(self.values, self.places, strict=True)]
        least = min(IDLE, self.size(loadings) / len(inner) ** 0.5)  # the largest is no less
        text = in_words(inner, loadings, numbers, most=MOST_VALUES, digits=digits, least=least)
        return "+", f"{self.name} ({text})"

    def size(self, loadings: Array) -> float:
        """Length of its part of a direction."""
        return float(np.linalg.norm(loadings[list(self.places)]))


def terms_of(half: xr.Dataset, *, most: int = 60) -> list[Term]:
    """The columns of a linear half, values of one column together; long names cut after so many characters."""
    own = [str(name) for name in half["column"].values]
    sources = [str(source) for source in half["source"].values] if "source" in half else own
    places: dict[str, list[int]] = {}
    for place, source in enumerate(sources):
        places.setdefault(source, []).append(place)
    found: list[Term] = []
    for source, of in places.items():
        if len(of) == 1:
            log = "log " if half["is_logged"].values[of[0]] else ""
            found.append(Term(log + _one(own[of[0]], most), (of[0],)))
        else:
            values = (own[place].removeprefix(f"{source}=") for place in of)
            found.append(Term(_one(source, most), tuple(of), tuple(_one(value, most) for value in values)))
    return found


def in_words(
    terms: Sequence[Term],
    loadings: Array,
    numbers: Array | None = None,
    *,
    most: int = 6,
    digits: str = ".2f",
    least: float = IDLE,
) -> str:
    """A combination as text, largest loadings first: `0.71 a + 0.69 b - 0.12 c + 3 more`.

    What takes no part by its loading is left out.

    Args:
        terms: as `terms_of` names them.
        loadings: what orders the terms, and decides which are written.
        numbers: what is written before each name; the loadings unless given.
        most: terms at most.
        digits: format of the numbers.
        least: loading of what is written.
    """
    shares = [term.size(loadings) for term in terms]
    order = [i for i in np.argsort(-np.array(shares), kind="stable").tolist() if shares[i] >= least]
    text = ""
    for i in order[:most]:
        sign, rest = terms[i].written(loadings, loadings if numbers is None else numbers, digits)
        text += f" {sign} {rest}"
    text = text.removeprefix(" + ").replace(" - ", "-", 1) if text.startswith(" - ") else text.removeprefix(" + ")
    return f"{text} + {len(order) - most} more" if len(order) > most else text or "0"


def _one(name: str, most: int) -> str:
    return named(shown(name, most=most))
