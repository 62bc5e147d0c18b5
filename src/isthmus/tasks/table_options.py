"""How a table in a file is read, as one record: what the user says of it. What is guessed instead: `dialects`."""

import codecs
from dataclasses import dataclass

from isthmus.errors import DataError

_NO_SEPARATORS = '"\r\n\0'
_WORDS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


@dataclass(frozen=True, slots=True)
class TableOptions:
    r"""What is known of a table before it is read; None is guessed from its first thousand lines, and said aloud.

    Attributes:
        sep: between cells: `,`, `;`, `|`, a tab (`\t` or "tab"), or "space" for any number of blanks.
        decimal: "." or ","; what stands between thousands is then the other one, a blank or an apostrophe.
        encoding: of text, as Python calls it.
        comment: lines that begin with it are left out; "" for none.
        leave_out: columns that are not read.
        drop_missing: leave out rows in which a cell is missing, aloud.
        impute: fill missing cells of inputs with the median, of text with the most frequent value, aloud.
        units: the table holds the units of its columns, below its header or in brackets in its names: keep them.
        usual_decimal: the decimal sign of earlier rows, taken where nothing is said and these prove none; where they
            prove the other one they are refused.

    Raises:
        DataError: a value that cannot be meant, or `drop_missing` and `impute` together.

    >>> tasks.TableOptions(sep="semicolon", decimal=",").separator
    ';'
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    comment: str | None = None
    leave_out: tuple[str, ...] = ()
    drop_missing: bool = False
    impute: bool = False
    units: bool = False
    usual_decimal: str | None = None

    def __post_init__(self) -> None:
        separator = self.separator
        if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in _NO_SEPARATORS):
            raise DataError(f"sep {str(self.sep)[:20]!r}: needs one character of ASCII, or tab or space.")
        if self.decimal not in {None, ".", ","}:
            raise DataError(f"decimal {str(self.decimal)[:20]!r}: needs a point or a comma.")
        if self.sep is not None and self.separator == self.decimal:
            raise DataError(f"sep and decimal are both {self.decimal!r}. Leave out one of them.")
        if self.encoding is not None:
            try:
                "".encode(codecs.lookup(self.encoding).name)
            except (LookupError, ValueError):
                raise DataError(
                    f"encoding {self.encoding[:40]!r}: is none that Python knows. Try utf-8 or latin-1."
                ) from None
        if self.drop_missing and self.impute:
            raise DataError("drop_missing and impute exclude each other. Give one of them.")

    @property
    def separator(self) -> str | None:
        """What stands between cells, as one character."""
        return None if self.sep is None else _WORDS.get(self.sep.lower(), self.sep)

    @property
    def of_text(self) -> tuple[str, ...]:
        """The names of what was said that only text has."""
        said = {"sep": self.sep, "encoding": self.encoding, "comment": self.comment}
        return tuple(name for name, value in said.items() if value is not None)


AS_IT_COMES = TableOptions()
