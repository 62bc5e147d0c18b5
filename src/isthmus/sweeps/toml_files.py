"""A TOML file that somebody else wrote, read with one refusal for whatever it holds: `plan`, `slurm`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isthmus.errors import PlanError
from isthmus.tasks.door import checked_file
from isthmus.tasks.door import read_toml as toml_of

MOST_BYTES = 16 << 20  # 16 MiB: a hundred thousand runs written out one by one
MOST_LEVELS = 16  # of tables within tables; nothing of ours has more than 4


def read_toml(path: Path, *, where: str, needs: str) -> dict[str, Any]:
    """The content of a TOML file.

    Args:
        path: of the file; a regular one of at most `MOST_BYTES`.
        where: how an error names it.
        needs: what it should be, in words.

    Raises:
        PlanError: no such file, not TOML, too long, or tables within tables without end.
    """
    try:
        place = checked_file(path, error=PlanError, hint=f"Give {needs}, a TOML file.")
        if place.stat().st_size > MOST_BYTES:
            raise PlanError(f"{place}: is longer than {MOST_BYTES >> 20} MiB. Give {needs}, a TOML file.")
        content = toml_of(place, error=PlanError)
    except PlanError as error:
        raise PlanError(f"{where.removesuffix(str(path))}{error}") from None
    if _levels(content) > MOST_LEVELS:
        raise PlanError(f"{where}: has tables within tables, more than {MOST_LEVELS} deep. Mend that place.")
    return content


def _levels(content: Mapping[str, object]) -> int:
    """How deep it goes; without recursion, for dotted keys nest without limit."""
    levels, found = 0, list[object]([content])
    while found and levels <= MOST_LEVELS:
        levels += 1
        inner = [item for value in found for item in (value.values() if isinstance(value, Mapping) else value)]  # pyright: ignore[reportGeneralTypeIssues] - lists and tables only
        found = [item for item in inner if isinstance(item, Mapping | list)]
    return levels
