"""What a table says of the pictures in a folder: which of its columns names them, and its rows in their order.

The pictures: `picture_folders`. How tables are read: `formats`.
"""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from isthmus.errors import DataError, DataWarning, outside
from isthmus.processes.shared_state import silenced
from isthmus.tasks.arrays import counted, listing
from isthmus.tasks.formats import FORMATS, WantedColumns, extension_of, read_content
from isthmus.tasks.missing import complete_rows
from isthmus.tasks.names import quoted
from isthmus.tasks.picture_folders import FOLDER, PictureFolder, picture_folder
from isthmus.tasks.picture_listing import listed
from isthmus.tasks.table_options import TableOptions

TABLES = tuple(extension for extension in FORMATS if extension not in {".npy", ".npz", ".zarr"})
_SURELY = tuple(extension for extension in TABLES if not extension.startswith((".txt", ".dat")))  # notes are .txt too


def labelled_folder(path: Path, options: TableOptions, asked: Sequence[str]) -> PictureFolder:
    """The pictures in a folder with what a table tells of them, if anything of it is asked for.

    Args:
        path: of the folder.
        options: how the table is written, and whether pictures without a row, or rows with missing cells, are left out.
        asked: the columns that are; one that is a file is the table, which else is the only one in the folder.

    Raises:
        DataError: as for `picture_folder`; the table cannot be read, names no picture, one twice, or not all of them.
    """
    named = next((word for word in asked if extension_of(Path(word)) in TABLES), "")
    place = path / named if named and (path / named).is_file() else Path(named) if named else None
    if place is None and set(asked) - {FOLDER}:
        place = _only_table(path)
    if place is None:
        return picture_folder(path)
    found = _joined(picture_folder(path, known=place.name), place, options)
    return replace(found, source=named or str(place))


def _only_table(path: Path) -> Path | None:
    tables = [name for name in listed(path).others if "/" not in name and extension_of(Path(name)) in _SURELY]
    if len(tables) > 1:
        shown = ", ".join(map(quoted, tables[:5]))
        raise DataError(
            f"{path}: {len(tables)} tables lie in it ({shown}). Name one as the target, or leave one there."
        )
    return path / tables[0] if tables else None


def _joined(pictures: PictureFolder, place: Path, options: TableOptions) -> PictureFolder:
    plain = replace(options, leave_out=(), drop_missing=False, impute=False)
    table = read_content(place, WantedColumns(plain)).table
    with silenced():  # what was guessed has been said
        texts = read_content(place, WantedColumns(plain, as_text=list(map(str, table.columns)))).table  # 0001 is no 1
    key, named = _naming_column(pictures, texts, place)
    table = table.drop(columns=[key, *(name for name in options.leave_out if name in table.columns)])
    rows = complete_rows(table, None, str(place)) if options.drop_missing else np.arange(len(table))
    row_of = {named[row]: row for row in reversed(rows.tolist())}
    _check_all(pictures, table, named, row_of, place, may_drop=options.drop_missing)
    known = [i for i in range(len(pictures.files)) if i in row_of]
    found = table.iloc[[row_of[i] for i in known]].reset_index(drop=True)
    if FOLDER in pictures.table.columns and FOLDER not in found.columns:
        found[FOLDER] = pictures.table[FOLDER].to_numpy()[known]
    return replace(pictures, files=tuple(pictures.files[i] for i in known), table=found)


def _naming_column(pictures: PictureFolder, texts: pd.DataFrame, place: Path) -> tuple[str, list[int]]:
    """The column in which most cells are names of pictures, and for each row the number of the picture, or -1.

    A name may be the path, with or without the folder, or without folders or extension where it is one of its kind.
    """
    paths = [PurePosixPath(file) for file in pictures.files]
    known: dict[str, int] = {}
    for short in (lambda p: p.stem, lambda p: p.name, lambda p: f"{pictures.path.name}/{p}", str):  # the last one wins
        names = [short(path) for path in paths]
        counts = Counter(names)
        known |= {name: i for i, name in enumerate(names) if counts[name] == 1}
    found = {
        str(name): [known.get(str(cell).strip().replace("\\", "/").removeprefix("./"), -1) for cell in texts[name]]
        for name in texts.columns
    }
    best = max(found, key=lambda name: sum(number >= 0 for number in found[name]))
    if max(found[best]) < 0:
        raise DataError(
            f"{place}: no column names the pictures in {pictures.path}, the first of which is "
            f"{quoted(pictures.files[0])}. Add a column of their names."
        )
    return best, found[best]


def _check_all(
    pictures: PictureFolder,
    table: pd.DataFrame,
    named: Sequence[int],
    row_of: dict[int, int],
    place: Path,
    *,
    may_drop: bool,
) -> None:
    """Each picture has one row and each row its picture, or it may be left out, and is told."""
    twice = [i for i, count in Counter(named).items() if count > 1 and i >= 0]
    if twice:
        raise DataError(f"{place}: names {quoted(pictures.files[twice[0]])} in several rows. Keep one of them.")
    lost = [file for i, file in enumerate(pictures.files) if i not in row_of]
    without = [row + 1 for row, number in enumerate(named) if number < 0]
    told = [f"{counted(len(lost), 'picture')} without a row: {listing(map(quoted, lost), 'file')}"] if lost else []
    told += [f"{counted(len(without), 'row')} without a picture: {listing(without, 'row')}"] if without else []
    if not told:
        return
    if not may_drop:
        raise DataError(f"{place}: has {'; '.join(told)}. Add what is lacking; --drop-missing leaves these out.")
    warnings.warn(f"{place}: left out {'; '.join(told)}.", DataWarning, stacklevel=outside())
