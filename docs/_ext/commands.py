"""The page of commands, made of the commands: `{commands}` lists each with its arguments, options and exit codes."""

import enum
import inspect
from pathlib import Path
from typing import Any

import typer
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from isthmus.cli.commands import app as program


def described(parameter: Any) -> list[str]:
    """One row of the table: how it is written, what it takes, what it does."""
    is_argument = parameter.param_type_name == "argument"
    names = [parameter.name.upper()] if is_argument else [*parameter.opts, *parameter.secondary_opts]
    takes = "" if is_argument or getattr(parameter, "is_flag", False) else kind(parameter)
    default = parameter.default
    told = getattr(parameter, "help", None) or ""
    is_shown = isinstance(default, int | float | str) and not isinstance(default, bool) and default != ""
    told += f" Default: {default}." if is_shown else ""
    told += " Required." if is_argument and parameter.required else ""
    return [", ".join(f"`{name}`" for name in names), takes, told.replace("|", "\\|")]


def kind(parameter: Any) -> str:
    """What an option takes, in a word."""
    known = getattr(parameter, "type_descriptor", None)  # the name of a type differs between versions of typer
    annotation = known.annotation if known is not None else str
    if inspect.isclass(annotation) and issubclass(annotation, enum.Enum):
        return ", ".join(f"`{choice.value}`" for choice in annotation)
    return {int: "number", float: "number", Path: "path"}.get(annotation, "text")


def section(name: str, command: Any) -> list[str]:
    """Lines of MyST about one command."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    line = " ".join([name, "[OPTIONS]", *(p.name.upper() if p.required else f"[{p.name.upper()}]" for p in arguments)])
    rows = [described(p) for p in [*arguments, *(p for p in command.params if p not in arguments)] if p.name != "help"]
    about = (command.help or "").replace("\f", "").strip().splitlines()
    epilog = command.epilog or ""
    return [
        "", "```text", line, "```", "", *(part.strip() for part in about), "",
        *(["", "```text", epilog.removeprefix("Example: "), "```", ""] if epilog.startswith("Example: ") else []),
        *(["| | takes | what it does |", "|---|---|---|"] if rows else []), *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]  # fmt: skip


def every(name: str, command: Any) -> list[tuple[str, Any]]:
    """The command itself, or those under it."""
    below = getattr(command, "commands", None)
    if not below:
        return [(name, command)]
    return [found for key, inner in below.items() for found in every(f"{name} {key}", inner)]


class Commands(SphinxDirective):
    """Everything that `isthmus` can be told."""

    def run(self) -> list[nodes.Node]:
        """A section for each command."""
        found: list[nodes.Node] = []
        for name, command in every("isthmus", typer.main.get_command(program)):
            part = nodes.section(ids=[nodes.make_id(name)])
            self.state.document.note_explicit_target(part)
            part += nodes.title("", "", nodes.literal("", name))
            self.state.nested_parse(StringList(section(name, command), source="commands"), 0, part)
            found.append(part)
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
