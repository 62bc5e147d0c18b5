"""How a command speaks: in words, in one JSON object, quietly or at length. The options that every command has.

What a command has to say stands in its own file: it prints words on `terminal.terminal`, and tells facts by `tell`.
"""

import inspect
import json
import logging
import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Annotated, get_args

import typer
from typer.models import ArgumentInfo, OptionInfo

from isthmus.cli.interrupts import ExitCode, say_interrupted
from isthmus.writing.shown import harmless, plain_value

LOGGER = "isthmus"  # of the library, everywhere
# what an option is about, and the options: "Options" has those of no panel
_PANELS = {
    "Task": "target autoencode classes encoder decoder ranks candidates log units loss",
    "Rows and columns": "leave_out drop_missing impute groups ordered rows scaling sep decimal encoding comment",
    "Search": "effort max_seconds seed ridge starts depth evaluations network depth_path control",
    "Results": "out resume replace pictures dry_run export onnx",
    "Machine": "workers executor scheduler slurm patience device dashboard tls_ca_file tls_cert tls_key memory",
}


@dataclass(frozen=True, slots=True)
class Voice:
    """How the command speaks that is being carried out.

    Attributes:
        as_json: one object on stdout at the end, and no words there.
        is_quiet: no notes and no progress on stderr; what is refused is said.
        is_verbose: what the library logs as well.
        facts: what was told for the object.
    """

    as_json: bool = False
    is_quiet: bool = False
    is_verbose: bool = False
    facts: dict[str, object] = field(default_factory=dict[str, object])


_VOICE: ContextVar[Voice] = ContextVar("voice", default=Voice())  # noqa: B039 - only `tell` writes, into one of its own


def voice() -> Voice:
    """How the command speaks that is being carried out."""
    return _VOICE.get()


def tell(**facts: object) -> None:
    """Facts for the JSON object of this command: plain values, arrays, enumerations, paths."""
    if voice().as_json:
        voice().facts.update(facts)


def announce(text: str) -> None:
    """One line on a terminal before anything heavy is imported: something is to move within two seconds."""
    if not voice().is_quiet and sys.stderr is not None and sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison] - closed from the start
        print(harmless(text), file=sys.stderr, flush=True)


def speaking(carry_out: Callable[..., int], *, group: str = "") -> Callable[..., int]:
    """A command with the options --json, -q and -v beside its own."""

    def command(*, as_json: bool, quiet: bool, verbose: bool, **given: object) -> int:
        token = _VOICE.set(Voice(as_json, quiet, verbose))
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        logger, level = logging.getLogger(LOGGER), logging.getLogger(LOGGER).level
        if verbose:
            logger.addHandler(handler)
            logger.setLevel(logging.DEBUG)
        try:
            code = carry_out(**given)
            if as_json and code != ExitCode.INTERRUPTED:  # of which stderr says all
                content = {"command": f"{group} {carry_out.__name__}".strip(), "exit_code": int(code), **voice().facts}
                typer.echo(json.dumps(plain_value(content), ensure_ascii=False, allow_nan=False))
            return code
        except KeyboardInterrupt:  # typer would end without a word
            say_interrupted()
            return ExitCode.INTERRUPTED
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
            _VOICE.reset(token)

    own = inspect.signature(carry_out)
    _call_as_written(own)
    _sort_into_panels(own)
    added = {
        "as_json": (bool, typer.Option("--json", help="Print one JSON object instead of words.")),
        "quiet": (bool, typer.Option("-q", "--quiet", help="No notes and no progress.")),
        "verbose": (bool, typer.Option("-v", "--verbose", help="Also what the library logs.")),
    }
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own.parameters.values()]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[kind, option])
        for name, (kind, option) in added.items()
    ]
    spoken = wraps(carry_out)(command)
    spoken.__signature__ = inspect.Signature(parameters, return_annotation=int)  # pyright: ignore[reportAttributeAccessIssue]
    return spoken


def _sort_into_panels(own: inspect.Signature) -> None:
    """Set options under the question that they answer: nobody reads a list of forty-eight."""
    panel_of = {name: panel for panel, names in _PANELS.items() for name in names.split()}
    for argument in own.parameters.values():
        for hint in get_args(argument.annotation):
            if isinstance(hint, OptionInfo):
                hint.rich_help_panel = panel_of.get(argument.name)


def _call_as_written(own: inspect.Signature) -> None:
    """Name arguments in the help as the reference and the sentences do, DATA; typer would have {data}."""
    for argument in own.parameters.values():
        for hint in get_args(argument.annotation):
            if isinstance(hint, ArgumentInfo) and hint.metavar is None:
                hint.metavar = argument.name.upper()
