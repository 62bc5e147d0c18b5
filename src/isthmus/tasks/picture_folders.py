"""A folder of pictures as a table: a row for each, its pixels as columns; folders in it, or a table, tell more of them.

One picture: `picture_files`. Which files: `picture_listing`. The table: `picture_labels`. What becomes of it: `files`.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float64

from isthmus.errors import DataError, DataWarning, outside
from isthmus.tasks.arrays import check_finite, counted, listing
from isthmus.tasks.cells import CellProblem
from isthmus.tasks.input_columns import InputColumn, Made
from isthmus.tasks.large_tables import Inputs, is_large
from isthmus.tasks.mapped import on_disk
from isthmus.tasks.memory import check_memory
from isthmus.tasks.names import quoted
from isthmus.tasks.picture_files import Form, read_picture
from isthmus.tasks.picture_listing import listed

FOLDER = "folder"  # the column of those in which the pictures lie
_MOST_TOLD = 5


@dataclass(frozen=True, slots=True, eq=False)
class PictureFolder:
    """The pictures of a folder, none but the first of which is read yet.

    Attributes:
        path: of the folder.
        files: of the pictures, as paths within it, in the order of the rows.
        form: of the first, and of all others or they are refused.
        table: what else is known of each: no inputs, but targets, groups or candidates where somebody names them.
        source: where the table comes from, as it was named; empty where there is none.
    """

    path: Path
    files: tuple[str, ...]
    form: Form
    table: pd.DataFrame
    source: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns: pixels, and what else is known."""
        return (*self.form.names, *map(str, self.table.columns))

    def chosen(
        self, target: tuple[str, ...], classes: str | None, others: Sequence[str]
    ) -> tuple[tuple[str, ...], str | None]:
        """Targets and classes: the folders where neither is asked for, the other columns of a table that stands there.

        Raises:
            DataError: a table is named for the classes, and has more columns than one.
        """
        if not target and classes is None:
            return (), FOLDER if FOLDER in self.table.columns and not self.source else None
        if self.source not in {*target, classes}:
            return target, classes
        told = tuple(name for name in map(str, self.table.columns) if name not in {FOLDER, *others})
        if classes is None:
            return tuple(name for word in target for name in (told if word == self.source else [word])), None
        if len(told) != 1:
            raise DataError(
                f"{self.source}: has {listing(map(quoted, told), 'column')} beside the names of pictures, and one is "
                "needed. Leave out the others."
            )
        return (), told[0]

    def whole(self, names: Sequence[str]) -> pd.DataFrame:
        """Some columns."""
        pixels = [name for name in names if name not in self.table.columns]
        read = dict(zip(pixels, self.pixels(pixels).T, strict=True)) if pixels else {}
        return pd.DataFrame({name: self.table[name] if name in self.table.columns else read[name] for name in names})

    def inputs(self, names: Sequence[str], where: str, problems: list[CellProblem], *, impute: bool) -> Inputs:
        """The pixels among some columns, on disk where they are many."""
        chosen = [name for name in names if name not in self.table.columns]
        return self.pixels(chosen), tuple(InputColumn(name, Made.PIXEL, self.form.words) for name in chosen)

    def pixels(self, names: Sequence[str]) -> Float64[np.ndarray, "n d"]:
        """Some pixels of all pictures.

        Raises:
            DataError: one cannot be read or is of another form, or there is no room for all.
        """
        places = dict(zip(self.form.names, range(self.form.size), strict=True))
        columns = np.array([places[name] for name in names], dtype=np.intp)
        shape, where = (len(self.files), len(columns)), str(self.path)
        parts = (picture.reshape(-1)[None, columns] for picture in self._read())
        if is_large(*shape):
            found = on_disk(parts, shape, where)
        else:
            check_memory(8 * shape[0] * shape[1], where)
            found = np.concatenate(list(parts))
        check_finite(found, where, columns=list(names))
        return found

    def as_stack(self) -> Float64[np.ndarray, "n bands height width"]:
        """All pictures as networks of pictures take them.

        Raises:
            DataError: as for `pixels`.
        """
        check_memory(16 * len(self.files) * self.form.size, str(self.path))
        return np.stack([np.moveaxis(picture, 2, 0) for picture in self._read()])

    def _read(self) -> Iterator[Float64[np.ndarray, "height width bands"]]:
        for file in self.files:
            pixels, form = read_picture(self.path / file)
            if form != self.form:
                raise DataError(
                    f"{self.path / file}: is of {form.words}, {self.files[0]} of {self.form.words}. Bring all pictures "
                    "to one size and kind."
                )
            yield pixels


def picture_folder(path: Path, *, known: str = "") -> PictureFolder:
    """The pictures in a folder, or in the folders in it, with the names of these as a column.

    Args:
        path: of the folder.
        known: a file in it that is no picture, and of which nothing is said.

    Raises:
        DataError: as for `listed`, or the first picture cannot be read.

    Warns:
        DataWarning: other files lie there.
    """
    found = listed(path)
    if others := [name for name in found.others if name != known]:
        what = "is no picture" if len(others) == 1 else "are no pictures"
        more = ", ..." if len(others) > _MOST_TOLD else ""
        warnings.warn(
            f"{path}: left aside {counted(len(others), 'file')} that {what}: "
            f"{', '.join(map(quoted, others[:_MOST_TOLD]))}{more}.",
            DataWarning,
            stacklevel=outside(),
        )
    _, form = read_picture(path / found.files[0])
    of_folders = {FOLDER: [file.partition("/")[0] for file in found.files]} if found.folders else {}
    table = pd.DataFrame(of_folders, index=range(len(found.files)), dtype=object)
    return PictureFolder(path, found.files, form, table)
