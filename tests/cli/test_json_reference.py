"""What `--json` prints, as the reference has it and as the source tells it."""

import ast
import dataclasses
import re
from pathlib import Path
from typing import Any

import discoveries
import isthmus
from isthmus.cli.commands import commands as known_commands
from isthmus.cli.cost_table import CostReading
from isthmus.cli.doctor import installed
from isthmus.discovery.foresee import Forecast


def documented() -> dict[str, set[str]]:
    """Command -> the names that the reference gives its JSON object."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "files.md").read_text().partition("## What `--json`")[2]
    rows = re.findall(r"^\| `([a-z -]+)` \| (.+) \|$", text, re.MULTILINE)
    return {command: set(re.findall(r"`(\w+)`", content)) for command, content in rows}


def test_the_reference_has_the_object_of_every_command() -> None:
    known: Any = known_commands
    commands = {name for name, one in known.commands.items() if not hasattr(one, "commands")}
    parts = {f"sweep {name}" for name in known.commands["sweep"].commands}
    assert set(documented()) == commands | parts | {"discover --dry-run"}


def test_every_name_that_is_told_stands_in_the_reference() -> None:
    """Those that stand in the source as such; objects that are told whole are asked for theirs."""
    told: set[str] = set()
    for path in sorted((Path(isthmus.__file__).parent / "cli").glob("*.py")):
        calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        for call in calls:
            if isinstance(call.func, ast.Name) and call.func.id == "tell":
                told |= {keyword.arg for keyword in call.keywords if keyword.arg}
    assert len(told) > 25
    table = documented()
    assert told - set().union(*table.values()) == set()
    found = discoveries.discovery()
    assert table["discover"] == {"folder", "report", *found.to_dict()}
    assert table["diagnose"] == {"page", *found.diagnosis.to_dict()}
    assert table["cost"] == {field.name for field in dataclasses.fields(CostReading)}
    assert table["discover --dry-run"] == {field.name for field in dataclasses.fields(Forecast)}
    assert table["doctor"] >= {*installed()}
