"""`isthmus discover DATA`: options in, a run folder and a short verdict out. The search itself: `discovery`.

What is asked for as plain values: here. How it is carried out: `discover_run`.
"""

import shlex
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isthmus.cli.run_folder import check_writable, chosen_folder, default_folder
from isthmus.cli.shared_options import TableReading, argument_words, check_sizes, plain_fields, with_options, words_of
from isthmus.cli.voice import announce
from isthmus.cli.workplace import Workplace
from isthmus.errors import DataError

if TYPE_CHECKING:
    from isthmus.tasks.table_options import TableOptions

# three ReLU layers on either side, one linear layer between them, and the output
LEAST_CONNECTED_DEPTH = 8
SIDES = ("curved", "linear")  # what a half may be, as `discover` calls it
UNITS_IN_TABLE = "table"  # for --units: the data tell them
WORDS = {  # what an option may be, as `discover` calls it
    "encoder": SIDES,
    "decoder": SIDES,
    "effort": ("quick", "default", "thorough"),
    "scaling": ("auto", "column", "global"),
}
LOSS_HELP = "The data loss by name; default squared, or cross_entropy of classes. An unknown name lists them."


@dataclass(frozen=True, slots=True)
class DiscoverRequest:
    """The options of `isthmus discover`, by their names on the command line.

    Raises:
        DataError: --max-seconds is not positive, --ridge holds no positive numbers, --depth is too small for the
            network, --depth-path is asked of a residual one, halves do not go with it, or --candidates names nothing.
    """

    data: Annotated[
        str,
        typer.Argument(
            help="A table (.csv, .tsv, .txt, .xlsx, .parquet), .npy, .npz, zarr, a folder of pictures, or builtin:NAME."
        ),
    ]
    target: Annotated[str | None, typer.Option(help="Columns to predict as numbers: COL,COL; or a file of them.")] = (
        None
    )
    autoencode: Annotated[bool, typer.Option("--autoencode", help="Reconstruct the data themselves.")] = False
    classes: Annotated[str | None, typer.Option(help="The column whose values are classes, or a file of them.")] = None
    seed: Annotated[int, typer.Option(min=0, help="Of builtin data, the split and the starts.")] = 0
    max_seconds: Annotated[
        float | None, typer.Option(help="End after so many seconds, reading and pictures included.")
    ] = None
    ordered: Annotated[bool, typer.Option("--ordered", help="Rows are a time series: hold out blocks.")] = False
    groups: Annotated[
        str | None,
        typer.Option(help="Column of labels; rows of one label stay together, by default those of equal inputs."),
    ] = None
    control: Annotated[bool, typer.Option("--control", help="Also run on random data of the same covariance.")] = False
    ridge: Annotated[str | None, typer.Option(help="Penalties to try, largest first: 1e-2,1e-3.")] = None
    starts: Annotated[int | None, typer.Option(min=1, help="Starts at each ridge.")] = None
    depth: Annotated[int | None, typer.Option(min=2, help="Number of weight matrices, or residual layers.")] = None
    evaluations: Annotated[int | None, typer.Option(min=10, help="Gradients per start: fewer is rougher.")] = None
    network: Annotated[
        str | None,
        typer.Option(help="What is trained; default fully-connected, the fastest. An unknown name lists them."),
    ] = None
    depth_path: Annotated[bool, typer.Option("--depth-path", help="Also find the rank at several depths.")] = False
    candidates: Annotated[
        str | None, typer.Option(help="Columns to compare the coordinates with, no inputs: COL,COL.")
    ] = None
    loss: Annotated[str | None, typer.Option(help=LOSS_HELP)] = None
    encoder: Annotated[
        str | None,
        typer.Option(help="curved, or linear: how many combinations of the inputs matter; default of one target."),
    ] = None
    decoder: Annotated[str | None, typer.Option(help="curved, or linear: in how many modes the targets move.")] = None
    log: Annotated[
        str | None, typer.Option(help="Columns to take logarithms of, COL,COL; alone: all that are positive and wide.")
    ] = None
    units: Annotated[
        str | None,
        typer.Option(
            help="A .toml or .csv file of units, or 'table' (below its header, or in brackets in names): only "
            "combinations without a unit are made."
        ),
    ] = None
    ranks: Annotated[bool, typer.Option("--ranks", help="All ranks of the task: combinations, coordinates, modes.")] = (
        False
    )
    effort: Annotated[
        str | None,
        typer.Option(help="Work on doubts: quick, none; default, up to 10 times the first answer's; thorough, 40."),
    ] = None
    rows: Annotated[
        int | None, typer.Option(min=20, help="Search at most so many rows; the others check the answer.")
    ] = None
    scaling: Annotated[
        str | None,
        typer.Option(
            help="column: each to variance 1; global: all by one number; auto, the default: what settles more."
        ),
    ] = None

    leave_out: Annotated[str | None, typer.Option(help="Columns that are not used at all: COL,COL.")] = None
    drop_missing: Annotated[bool, typer.Option("--drop-missing", help="Leave out rows in which a cell is missing.")] = (
        False
    )
    impute: Annotated[
        bool, typer.Option("--impute", help="Fill missing inputs with the median, or the most frequent text.")
    ] = False
    reading: TableReading = field(default_factory=TableReading)

    def __post_init__(self) -> None:
        check_sizes(self)
        if self.max_seconds is not None and not 0 < self.max_seconds < float("inf"):
            raise DataError(f"--max-seconds {self.max_seconds:g}: needs a positive number of seconds.")
        least = LEAST_CONNECTED_DEPTH if self._is_connected else 2
        if self.depth is not None and self.depth < least:
            raise DataError(
                f"--depth {self.depth}: needs at least {least} with --network {self.network or 'fully-connected'}."
            )
        if self.depth_path and not self._is_connected:
            raise DataError(
                f"--depth-path --network {self.network}: a depth path needs a fully connected network; leave out one."
            )
        for option, words in WORDS.items():
            if getattr(self, option) not in {None, *words}:
                raise DataError(f"--{option} {getattr(self, option)}: needs {' or '.join(words)}.")
        self._check_halves()
        if self.candidates is not None and not self.candidate_names:
            raise DataError("--candidates: names no column. Give one or several, separated by commas.")
        _ = self.ridges  # refuses what is no list of ridges

    def _check_halves(self) -> None:
        linear = [f"--{half} linear" for half in ("encoder", "decoder") if getattr(self, half) == "linear"]
        if len(linear) == 2:
            raise DataError(
                "--encoder linear --decoder linear: the whole map is linear then, which is fitted beside every run "
                "(linear maps, PCA). Leave out one."
            )
        for option in [*linear, *(["--ranks"] if self.ranks else [])]:
            if not self._is_connected:
                raise DataError(f"{option} --network {self.network}: needs a fully connected network; leave out one.")
            if self.depth_path and option != "--ranks":
                raise DataError(f"{option} --depth-path: a depth path asks for curved coordinates; leave out one.")

    @property
    def _is_connected(self) -> bool:
        """Whether the network is the usual one."""
        if self.network is None:
            return True
        from isthmus.discovery.kinds import kind_of, trainable  # brings torch with it

        try:
            return kind_of(self.network) == kind_of(None)
        except ValueError:
            raise DataError(f"--network {self.network}: needs one of {', '.join(trainable())}.") from None

    @property
    def candidate_names(self) -> tuple[str, ...]:
        """The columns that --candidates names."""
        return _names(self.candidates)

    @property
    def table_options(self) -> "TableOptions":
        """How DATA is read.

        Raises:
            DataError: options that cannot be meant.
        """
        return self.reading.options(
            leave_out=_names(self.leave_out),
            drop_missing=self.drop_missing,
            impute=self.impute,
            units=self.units == UNITS_IN_TABLE,
        )

    @property
    def logs(self) -> str | tuple[str, ...] | None:
        """The columns that --log names, or "all"."""
        if self.log is None or self.log == "all":
            return self.log
        return _names(self.log)

    @property
    def ridges(self) -> list[float] | None:
        """The ridges that --ridge names, largest first."""
        if self.ridge is None:
            return None
        try:
            ridges = [float(part) for part in self.ridge.split(",")]
        except ValueError:
            ridges = []
        if not ridges or not all(0 < value < float("inf") for value in ridges):
            raise DataError(f"--ridge {self.ridge}: needs positive numbers separated by commas, as in 1e-2,1e-3.")
        return sorted(set(ridges), reverse=True)

    @property
    def default_folder(self) -> Path:
        """Where the run goes unless --out says it: named after the data, the targets and whatever was asked for."""
        words = [*(self.target or "").split(","), "autoencode" if self.autoencode else ""]
        own = {"data", "target", "autoencode"}
        options = {name.replace("_", "-"): value for name, value in plain_fields(self).items() if name not in own}
        options["seed"] = self.seed or None
        if self.max_seconds is not None:
            options["max-seconds"] = f"{self.max_seconds:g}"
        return default_folder(self.data, words, options)

    @property
    def command(self) -> str:
        """The command line that asks for the same, without its folder."""
        options = {name: value for name, value in plain_fields(self).items() if name != "data"}
        options["seed"] = self.seed or None
        return shlex.join(["isthmus", "discover", *argument_words(self.data), *words_of(options)])


def _names(option: str | None) -> tuple[str, ...]:
    """The names of columns in an option."""
    if not option:
        return ()
    from isthmus.tasks.names import names_in  # brings torch with it

    return names_in(option)


@with_options(DiscoverRequest, Workplace)
def discover(
    request: DiscoverRequest,
    place: Workplace,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; default runs/DATA-TARGET-....")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Remove an older run from the folder first.")] = False,
    pictures: Annotated[bool, typer.Option(help="Write the pictures and the page; --resume makes them later.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would take, and do nothing.")] = False,
) -> int:
    """How many dimensions DATA needs: writes a run folder with a report, and says the verdict.

    Exit codes: 0 done (also "no sharp rank"), 2 bad input, 3 finished but doubtful, 130 interrupted.
    """
    if dry_run:
        announce(f"reading {request.data} ...")
        from isthmus.cli.discover_run import say_beforehand  # torch and the rest, as below

        return say_beforehand(request, place)
    folder = chosen_folder(request.default_folder, out, resume, replace=replace)
    check_writable(folder)
    announce(f"reading {request.data} ...")
    began = time.monotonic()
    place.prepare()
    from isthmus.cli.discover_run import Deadline, run_in  # torch and the rest: only once the request makes sense

    deadline = Deadline(request.max_seconds, began=began)
    return run_in(
        folder, request, deadline, resumed=resume is not None, replace=replace, pictures=pictures, place=place
    )
