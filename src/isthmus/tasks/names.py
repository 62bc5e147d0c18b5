"""Names of columns and classes: which are refused when data are read, how a line quotes and an option lists them.

Kept as they are in every result: `discovery.files`. Shown in pictures: `plots.style`.
"""

import csv
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from isthmus.errors import DataError

_LONGEST_SHOWN = 60
# what separates lines is kept: spreadsheets write it into names. Other controls, and halves of a pair of UTF-16, can
# stand in no text file, netCDF file or page
_KEPT_CONTROLS = "\t\n\r"


def checked_names(names: Iterable[object], where: str, *, what: str = "column") -> tuple[str, ...]:
    """Names as text, refused where two are the same or one cannot be written to a file.

    Args:
        names: of columns or classes.
        where: what an error calls their place.
        what: "column" or "class".

    Raises:
        DataError: NUL or another control character (but for tabs and line breaks), half of a pair of UTF-16, or a name
            that stands twice.
    """
    found = tuple(str(name) for name in names)
    for number, name in enumerate(found, start=1):
        if not name.isprintable() and (odd := next((c for c in name if _is_refused(c)), None)) is not None:
            raise DataError(
                f"{where}: the name of {what} {number} holds U+{ord(odd):04X}, which no text can hold: {quoted(name)}. "
                "Rename it."
            )
    if len(set(found)) < len(found):
        name = next(name for name, count in Counter(found).items() if count > 1)
        places = [str(i) for i, other in enumerate(found, start=1) if other == name]
        listed = f"{', '.join(places[:-1][:5])} and {places[-1]}"
        raise DataError(f"{where}: {what}s {listed} are both called {quoted(name)}. Rename or remove one.")
    return found


def _is_refused(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind == "Cs" or (kind == "Cc" and character not in _KEPT_CONTROLS)


def shown(name: object, *, most: int = _LONGEST_SHOWN) -> str:
    """A name for a page or picture: what is invisible or turns the direction of text escaped, long ones shortened."""
    text = str(name)
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text) or "''"


def quoted(name: object) -> str:
    """A name in quotes for one line: invisible characters escaped, long ones shortened."""
    text = str(name)
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")


def names_in(text: str) -> tuple[str, ...]:
    """The names in an option, separated by commas; a name with a comma in it stands in double quotes.

    Raises:
        DataError: a quote that is opened is not closed.
    """
    if '"' not in text:
        return tuple(name.strip() for name in text.split(",") if name.strip())
    try:
        cells = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise DataError(
            f"{quoted(text)}: cannot be read as names ({error}). Write '\"a, b\",c' for a, b and c."
        ) from None
    return tuple(name.strip() for name in cells if name.strip())


def found_names(wanted: Sequence[str], columns: Iterable[str]) -> tuple[str, ...]:
    """What of `wanted` are columns, with those put together again that a comma inside a name had cut.

    "flow rate" and "m3/s" are the column "flow rate, m3/s" where there is one, and no column "flow rate". What is no
    column is left as it is.
    """
    known = set(columns)
    joined = {tuple(part.strip() for part in name.split(",")): name for name in known if "," in name}
    found: list[str] = []
    place = 0
    while place < len(wanted):
        length = 1
        name = wanted[place]
        if name not in known:
            for end in range(len(wanted), place + 1, -1):
                if tuple(wanted[place:end]) in joined:
                    name, length = joined[tuple(wanted[place:end])], end - place
                    break
        found.append(name)
        place += length
    return tuple(found)
