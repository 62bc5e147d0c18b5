"""Options that are written down once, as the fields of a record, and those that several commands share.

What a record checks when it is made, and what is done with it: the file of its command.
"""

import inspect
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isthmus.errors import DataError

if TYPE_CHECKING:
    from isthmus.tasks.table_options import TableOptions

LARGEST = 2**63  # of seeds and counts

Model = Annotated[Path, typer.Argument(help="A folder of discover, .safetensors, a state dict (.pt), or .pt2.")]
Samples = Annotated[str, typer.Option(help="Samples that the network takes: a file, or builtin:NAME.")]
Factory = Annotated[str | None, typer.Option(help="module:callable that makes the network; runs your code.")]
Key = Annotated[str | None, typer.Option(help="Where in a .pt the state dict lies: model_state, ema.model.")]
Target = Annotated[str | None, typer.Option(help="Columns to predict as numbers: COL,COL.")]
Classes = Annotated[str | None, typer.Option(help="The column whose values are classes to predict.")]
Workers = Annotated[
    int | None, typer.Option(help="Processes on this machine; default one per core, one on a GPU, 0 for none but this.")
]


@dataclass(frozen=True, slots=True)
class TableReading:
    """How a table is written, as options; what is not said is guessed aloud."""

    sep: Annotated[str | None, typer.Option(help="Between cells: ';', tab, space, ...; default found in the file.")] = (
        None
    )
    decimal: Annotated[str | None, typer.Option(help="The decimal sign, . or ,; default found in the file.")] = None
    encoding: Annotated[str | None, typer.Option(help="Of text, as Python calls it; default utf-8, or found.")] = None
    comment: Annotated[str | None, typer.Option(help="Lines that begin with it are left out; default found.")] = None

    def options(self, **others: Any) -> "TableOptions":
        """The same for `read_table`, with other options beside.

        Raises:
            DataError: a value that cannot be meant.
        """
        from isthmus.tasks.table_options import TableOptions  # brings torch with it

        return TableOptions(self.sep, self.decimal, self.encoding, self.comment, **others)


def check_sizes(record: object) -> None:
    """Refuse numbers that no generator and no file takes: as a range of the option, its end would fill the help.

    Raises:
        DataError: a number is 2^63 or more.
    """
    for name, value in plain_fields(record).items():
        if isinstance(value, int) and value >= LARGEST:
            raise DataError(f"--{name.replace('_', '-')} {value}: needs a number below 2^63.")


def plain_fields(record: object) -> dict[str, object]:
    """The options of a record by name, those of records in it among them."""
    found: dict[str, object] = {}
    for field in fields(record):  # pyright: ignore[reportArgumentType]
        value = getattr(record, field.name)
        found |= plain_fields(value) if is_dataclass(value) else {field.name: value}
    return found


def words_of(options: Mapping[str, object]) -> list[str]:
    """What to type for these options, of those that say something: names as they are, seconds and the like in short.

    A value that begins with a dash stands behind an =: else it would pass for an option.
    """
    words: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        option, text = f"--{name.replace('_', '-')}", str(value)
        if isinstance(value, float) and float(f"{value:g}") == value:
            text = f"{value:g}"
        words += [option] if value is True else [f"{option}={text}"] if text.startswith("-") else [option, text]
    return words


def argument_words(*values: object) -> list[str]:
    """What to type for arguments that are files: one whose name begins with a dash, as the file here that it is."""
    return [f"./{value}" if str(value).startswith("-") else str(value) for value in values]


def with_options(*records: Callable[..., object]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Makes a command of a function of records: their fields are options, before those that the function takes itself.

        @with_options(FitRequest)
        def fit(request: FitRequest, *, out: Annotated[Path | None, typer.Option(help="...")] = None) -> int: ...

    Args:
        records: dataclasses whose fields are annotated as arguments of a command; a field that is a record itself
            stands for its fields. The options of the second and further ones come last.
    """

    def made(carry_out: Callable[..., int]) -> Callable[..., int]:
        @wraps(carry_out)
        def command(**given: Any) -> int:
            taken = [_taken(record, given) for record in records]
            return carry_out(*taken, **given)

        own = list(inspect.signature(carry_out).parameters.values())[len(records) :]
        first, *more = map(_options_of, records)
        named = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in [*first, *own, *chain(*more)]]
        command.__signature__ = inspect.Signature(named, return_annotation=int)  # pyright: ignore[reportAttributeAccessIssue]
        return command

    return made


def _inner(parameter: inspect.Parameter) -> Callable[..., object] | None:
    """The record that an argument of a record is, if it is one."""
    return parameter.annotation if hasattr(parameter.annotation, "__dataclass_fields__") else None


def _options_of(record: Callable[..., object]) -> list[inspect.Parameter]:
    """The arguments of a record, those of records in it in their place."""
    found: list[inspect.Parameter] = []
    for parameter in inspect.signature(record).parameters.values():
        inner = _inner(parameter)
        found += [parameter] if inner is None else _options_of(inner)
    return found


def _taken(record: Callable[..., object], given: MutableMapping[str, Any]) -> object:
    """The record made of its options, which are taken from those given."""
    parameters = inspect.signature(record).parameters.items()
    return record(**{name: _taken(inner, given) if (inner := _inner(p)) else given.pop(name) for name, p in parameters})
