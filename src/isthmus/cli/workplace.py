"""Where trainings of a command run: in threads or processes of this machine or by a scheduler, and on which device."""

import sys
from collections.abc import Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isthmus.cli.shared_options import plain_fields, words_of
from isthmus.errors import DataError

if TYPE_CHECKING:
    from isthmus.sweeps.engine_choice import Certificates

EXECUTORS = ("threads", "processes")
CaFile = Annotated[Path | None, typer.Option(help="For --scheduler: who vouches for certificates.")]
Certificate = Annotated[Path | None, typer.Option(help="For --scheduler: our certificate.")]
Key = Annotated[Path | None, typer.Option(help="For --scheduler: our key.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, or auto for a GPU where there is one; default cpu.")]


@dataclass(frozen=True, slots=True)
class Workplace:
    """The options that say where, by their names on the command line; none but a device changes a bit.

    Raises:
        DataError: an unknown executor, one beside a scheduler, or certificates that are not whole.
    """

    workers: Annotated[int | None, typer.Option(min=1, help="Trainings at once; default one per core.")] = None
    executor: Annotated[str | None, typer.Option(help="threads or processes; default what is faster.")] = None
    scheduler: Annotated[str | None, typer.Option(help="Train on a running dask scheduler: tls://host:8786.")] = None
    device: Device = None
    tls_ca_file: CaFile = None
    tls_cert: Certificate = None
    tls_key: Key = None

    def __post_init__(self) -> None:
        if self.executor not in {None, *EXECUTORS}:
            raise DataError(f"--executor {self.executor}: needs {' or '.join(EXECUTORS)}.")
        if self.executor is not None and self.scheduler is not None:
            raise DataError(f"--executor {self.executor} --scheduler {self.scheduler}: leave out one of the two.")
        if self.scheduler is None and any((self.tls_ca_file, self.tls_cert, self.tls_key)):
            raise DataError("--tls-cert: belongs to --scheduler. Leave it out, or say which scheduler.")

    @property
    def words(self) -> list[str]:
        """What to type for them."""
        return words_of(plain_fields(self))

    @contextmanager
    def opened(self) -> Generator[tuple[int | None, Executor | str | None]]:
        """Workers and executor, as `discover` takes them, while the block runs.

        Raises:
            SweepError: the scheduler cannot be reached, or its workers do not fit.
        """
        if self.scheduler is None:
            yield self.workers, self.executor
            return
        from isthmus.sweeps.engine_choice import joined_executor  # torch and the rest: not for the help

        certificates = certificates_of(self.tls_ca_file, self.tls_cert, self.tls_key)
        with joined_executor(self.scheduler, certificates) as (workers, executor):
            yield self.workers or workers, executor

    def prepare(self) -> None:
        """Begin the process that others are forked from, if any may be: its imports take as long as ours, and beside.

        Called before torch is loaded here. Where threads turn out to be faster, it is let go.
        """
        from isthmus.processes.pool import CAN_FORK, is_begun, num_cores

        several = (self.workers or num_cores()) > 1
        able = CAN_FORK and (self.executor is not None or sys.platform == "linux")
        if able and several and self.executor != "threads" and self.scheduler is None and self.device is None:
            is_begun()

    def check_device(self) -> None:
        """Refuse what torch, which must be loaded for it, does not see.

        Raises:
            DataError: --device is none of its devices.
        """
        from isthmus.networks.devices import device_argument  # torch: not for the help

        try:
            device_argument(self.device, f"--device {self.device}")
        except ValueError as error:
            raise DataError(str(error)) from None


def certificates_of(ca_file: Path | None, cert: Path | None, key: Path | None) -> "Certificates | None":
    """The files that --tls-ca-file, --tls-cert and --tls-key name.

    Raises:
        DataError: some without the others.
    """
    from isthmus.sweeps.engine_choice import Certificates  # torch and the rest: not for the help

    if ca_file and cert and key:
        return Certificates(ca_file, cert, key)
    if ca_file or cert or key:
        raise DataError("--tls-cert: needs all of --tls-ca-file, --tls-cert and --tls-key. Give the others.")
    return None
