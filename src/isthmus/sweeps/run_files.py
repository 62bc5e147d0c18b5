"""A finished run as a folder: result.json with checksums, arrays.nc, weights.safetensors; whole or absent.

Where the folders lie and which are good: `store`. Nothing is ever unpickled.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr
from safetensors.torch import load_file, save
from torch import Tensor, nn

from isthmus import __version__
from isthmus.discovery.files.json_values import plain, restored
from isthmus.discovery.files.netcdf import checksum, read_table, write_table
from isthmus.errors import IsthmusError, SweepError
from isthmus.sweeps.execution import Computed
from isthmus.sweeps.run_table import WARNINGS
from isthmus.sweeps.runs import canonical_json, run_id
from isthmus.sweeps.setup import Sections, prepared
from isthmus.tasks.door import file_inside, in_one_line
from isthmus.writing.atomic import atomic_folder
from isthmus.writing.checksums import opened_json, sealed_json
from isthmus.writing.regular import contents, regular
from isthmus.writing.staying import made_folder

FORMAT, FORMAT_VERSION = "isthmus run", 1
RESULT, ARRAYS, WEIGHTS = "result.json", "arrays.nc", "weights.safetensors"


@dataclass(frozen=True, slots=True)
class Result:
    """What result.json says of a finished run.

    Attributes:
        id: of the run.
        settings: canonical.
        numbers: see `execution.Computed`.
        warnings: sentences.
    """

    id: str
    settings: Sections
    numbers: Mapping[str, Any]
    warnings: tuple[str, ...]

    @property
    def told(self) -> Mapping[str, Any]:
        """The numbers, and the warnings as one text, None without any: what the index has of a run."""
        return {**self.numbers, WARNINGS: " ".join(self.warnings) or None}


def write_run(folder: Path, settings: Sections, computed: Computed) -> None:
    """Write a finished run; a folder that is there already is the same run, and stays.

    Raises:
        OSError: the folder cannot be written.
    """
    made_folder(folder.parent)
    with atomic_folder(folder) as place:
        if computed.arrays.variables:
            write_table(place / ARRAYS, computed.arrays)
        if computed.tensors:
            # sorted names and no metadata of ours beyond the settings: equal runs give equal files
            # as bytes first: what safetensors raises for a full disk does not say that it is full
            metadata = {"isthmus": canonical_json(settings)}
            (place / WEIGHTS).write_bytes(save(dict(computed.tensors), metadata=metadata))
        checksums = {name: checksum(place / name) for name in (ARRAYS, WEIGHTS) if (place / name).exists()}
        content = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "isthmus": __version__,
            "id": run_id(settings),
            "settings": settings,
            "numbers": plain(computed.numbers, "numbers"),
            "warnings": computed.warnings,
            "checksums": checksums,
        }
        (place / RESULT).write_bytes(sealed_json(content))


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a run that came as bytes from a worker with a folder of its own."""
    made_folder(folder.parent)
    with atomic_folder(folder) as place:
        for name in (RESULT, ARRAYS, WEIGHTS):
            if name in files:
                (place / name).write_bytes(files[name])


def read_files(folder: Path) -> dict[str, bytes]:
    """The files of a run as bytes."""
    return {path.name: contents(path) for path in folder.iterdir()}


def read_result(folder: Path) -> Result:
    """A finished run, after its checksums were compared.

    Raises:
        SweepError: a file is missing or damaged; says which.
    """
    with _whole(folder):
        content = opened_json(contents(folder / RESULT))
        if content["format"] != FORMAT or content["format_version"] != FORMAT_VERSION:
            raise SweepError(
                f"{folder}: holds no run of format version {FORMAT_VERSION}; use the isthmus that wrote it."
            )
        for name, expected in content["checksums"].items():
            if checksum(file_inside(folder, name)) != expected:
                raise SweepError(f"{folder / name}: is damaged, its checksum differs; run the sweep again.")
        numbers: Any = restored(content["numbers"])
        found = Result(content["id"], content["settings"], numbers, tuple(content["warnings"]))
        if found.id != folder.name or run_id(found.settings) != found.id:
            raise SweepError(f"{folder}: its settings do not give its id; run the sweep again.")
    return found


def arrays_of(folder: Path) -> xr.Dataset:
    """The arrays of a finished run: the objective over "evaluation", the table by "layer"; empty if none were recorded.

    Raises:
        SweepError: damaged.
    """
    read_result(folder)
    with _whole(folder):
        return read_table(folder / ARRAYS) if (folder / ARRAYS).exists() else xr.Dataset()


def read_network(folder: Path, *, source: str | None = None) -> nn.Module:
    """The trained network of a finished run; its class and shape come from the settings.

    Args:
        folder: of the run.
        source: the file of the task, where the plan has one: the numbers of columns are read from it.

    Raises:
        SweepError: damaged, or its weights were not recorded.
    """
    found = read_result(folder)
    if not (folder / WEIGHTS).exists():
        raise SweepError(f"{folder}: its weights were not recorded. Set weights = true under [record].")
    network = prepared(found.settings, source).network
    with _whole(folder):
        tensors: dict[str, Tensor] = load_file(regular(folder / WEIGHTS))
        network.load_state_dict(tensors)
    return network


@contextmanager
def _whole(folder: Path) -> Generator[None]:
    """Whatever libraries throw of a damaged file inside the block is a SweepError of one line."""
    try:
        yield
    except (SweepError, MemoryError):
        raise
    except Exception as error:
        reason = str(error).rstrip(".") if isinstance(error, IsthmusError) else in_one_line(error)
        raise SweepError(f"{folder}: cannot be read, it is damaged ({reason}); run the sweep again.") from error
