"""Names of columns and classes: which are refused when data are read, how a line quotes and an option lists them.

Kept as they are in every result: `discovery.files`. Shown in pictures: `plots.style`.
"""

import csv
import sys
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence

from isthmus.errors import DataError, DataWarning, outside
from isthmus.tasks.arrays import listing

_LONGEST_SHOWN = 60
# what separates lines is kept: spreadsheets write it into names. Other controls, and halves of a pair of UTF-16, can
# stand in no text file, netCDF file or page
_KEPT_CONTROLS = "\t\n\r"


def number_in(text: str) -> int | None:
    """The number of a row or layer in decimal digits; None for other text, and for one beyond all indices."""
    digits = text.lstrip("0") or "0"
    return int(digits) if text.isdecimal() and len(digits) <= len(str(sys.maxsize)) else None


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


def looks(name: str) -> str:
    """What a name looks like: the same for a Greek mu and the micro sign and for all blanks, not for a raised 2."""
    if name.isascii():
        return " ".join(name.split())
    parts = [unicodedata.normalize("NFKC", c) if _is_as(unicodedata.decomposition(c)) else c for c in name]
    return " ".join(unicodedata.normalize("NFC", "".join(parts)).split())


def _is_as(decomposition: str) -> bool:
    return decomposition.startswith(("<compat>", "<noBreak>"))


def look_alikes(wanted: Iterable[str], columns: Sequence[str]) -> dict[str, str]:
    """Column -> the wanted name that it looks like, where no column has that name and one alone looks like it.

    >>> from isthmus.tasks.names import look_alikes
    >>> look_alikes(["\u00b5M", "a"], ["\u03bcM", "a"]) == {"\u03bcM": "\u00b5M"}
    True
    """
    names, known = dict.fromkeys(wanted), set(columns)
    lost = [name for name in names if name not in known]
    if not lost:  # a picture has hundreds of thousands of columns
        return {}
    free = [name for name in columns if name not in names]
    like = [[looks(name) for name in some] for some in (lost, free)]
    counts = [Counter(some) for some in like]
    meant = {look: name for name, look in zip(lost, like[0], strict=True) if all(count[look] == 1 for count in counts)}
    return {column: meant[look] for column, look in zip(free, like[1], strict=True) if look in meant}


def as_named(columns: Sequence[str], names: Iterable[str], where: str) -> list[str]:
    """The columns with the names of a run, where they look like these; a DataWarning says which do."""
    alike = look_alikes(names, columns)
    if alike:
        own = listing(map(quoted, alike), "column")
        warnings.warn(
            f"{where}: {own} {'is' if len(alike) == 1 else 'are'} taken for what looks the same in the run, "
            f"{listing(map(quoted, alike.values()), 'column')}.",
            DataWarning,
            stacklevel=outside(),
        )
    return [alike.get(column, column) for column in columns]


def found_names(wanted: Sequence[str], columns: Iterable[str]) -> tuple[str, ...]:
    """What of `wanted` are columns, with those put together again that a comma inside a name had cut.

    "flow rate" and "m3/s" are the column "flow rate, m3/s" where there is one, and no column "flow rate". What looks
    like one column is that. What is no column is left as it is.
    """
    columns = list(columns)
    known = set(columns)
    joined = {tuple(part.strip() for part in name.split(",")): name for name in known if "," in name}
    alike = {name: column for column, name in look_alikes(wanted, columns).items()}
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
        found.append(alike.get(name, name))
        place += length
    return tuple(found)
