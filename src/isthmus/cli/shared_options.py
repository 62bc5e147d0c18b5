"""Options that are written down once, as the fields of a record, and those that several commands share.

What a record checks when it is made, and what is done with it: the file of its command.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

Model = Annotated[Path, typer.Argument(help="A folder of discover, .safetensors, a state dict (.pt), or .pt2.")]
Samples = Annotated[str, typer.Option(help="Samples that the network takes: a file, or builtin:NAME.")]
Factory = Annotated[str | None, typer.Option(help="module:callable that makes the network; runs your code.")]
Key = Annotated[str | None, typer.Option(help="Where in a .pt the state dict lies: model_state, ema.model.")]
Target = Annotated[str | None, typer.Option(help="Columns to predict as numbers: COL,COL.")]
Classes = Annotated[str | None, typer.Option(help="The column whose values are classes to predict.")]
Workers = Annotated[
    int | None, typer.Option(help="Processes on this machine; default one per core, 0 for none but this.")
]


def with_options(*records: Callable[..., object]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Makes a command of a function of records: their fields are options, before those that the function takes itself.

        @with_options(FitRequest)
        def fit(request: FitRequest, *, out: Annotated[Path | None, typer.Option(help="...")] = None) -> int: ...

    Args:
        records: dataclasses whose fields are annotated as arguments of a command.
    """
    fields = [inspect.signature(record).parameters for record in records]

    def made(carry_out: Callable[..., int]) -> Callable[..., int]:
        @wraps(carry_out)
        def command(**given: Any) -> int:
            values = [{name: given.pop(name) for name in names} for names in fields]
            return carry_out(*(record(**mine) for record, mine in zip(records, values, strict=True)), **given)

        own = list(inspect.signature(carry_out).parameters.values())[len(records) :]
        first, *more = [list(names.values()) for names in fields]
        options = [*first, *own, *(option for names in more for option in names)]
        named = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in options]
        command.__signature__ = inspect.Signature(named, return_annotation=int)  # pyright: ignore[reportAttributeAccessIssue]
        return command

    return made
