"""The site (`make docs`): each block of its pages is run by the build or checked here, links lead somewhere."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from isthmus.cli.commands import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
# pages that were there before the site: notes for developers, whose blocks are formulas and lines of several programs
NOTES = {*DOCS.glob("notes/*.md"), *(DOCS / f"{name}.md" for name in ("errata", "figures", "map", "theorems", "walk"))}
FENCE = re.compile(r"^(`{3,}|:{3,})([^\n]*)\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
BUILT = {"{code-cell}", "{toctree}", "{image}", "{include}", "{eval-rst}", "{commands}", "{grid}"}
HEAD = "---\nfile_format: mystnb\n"


def blocks(text: str) -> list[tuple[str, str]]:
    """(kind, content) of each fenced block, cards inside a grid left out."""
    return [(found[1].strip().partition(" ")[0], found[2]) for found in FENCE.findall(text)]


def unchecked(text: str) -> list[str]:
    """Kinds of blocks that neither the build nor a test would run."""
    kinds = [kind for kind, _ in blocks(text)]
    cells_run = text.startswith(HEAD)
    return [k for k in kinds if k not in BUILT | {"console"} or (k == "{code-cell}" and not cells_run)]


def shown_commands(text: str) -> list[str]:
    """Lines with a prompt: what is not run here, because it needs a cluster or several processes."""
    lines = [line for kind, content in blocks(text) if kind == "console" for line in content.splitlines()]
    assert all(line.startswith("$ ") for line in lines)
    return [line.removeprefix("$ ") for line in lines]


def entries(toctree: str) -> list[str]:
    """Files that a table of contents names."""
    return [f"{line.strip()}.md" for line in toctree.splitlines() if line.strip() and not line.startswith(":")]


def broken_links(page: Path, text: str) -> list[str]:
    """Targets of links, images and tables of contents that are not there."""
    plain = re.sub(r"^(`{3,}).*?^\1\s*$", "", text, flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", plain)
    targets += re.findall(r"^```\{(?:image|include)\} (\S+)", text, re.MULTILINE)
    targets += [f"{target}.md" for target in re.findall(r"^:link: (\S+)", text, re.MULTILINE)]
    for kind, content in blocks(text):
        targets += entries(content) if kind == "{toctree}" else []
    here = [target.partition("#")[0] for target in targets if not re.match(r"\w+:|#", target)]
    return [target for target in here if not (page.parent / target).exists()]


def parsed(command: str) -> None:
    """Names, options and the kinds of their values; nothing is run."""
    words = shlex.split(command)
    words = words[words.index("isthmus") + 1 :]
    group: Any = typer.main.get_command(app)
    chosen = group.commands[words[0]]
    if hasattr(chosen, "commands"):  # sweep PLAN is sweep run PLAN
        chosen = chosen.commands["run"]
    chosen.make_context(words[0], words[1:])


@pytest.mark.parametrize("page", sorted({*PAGES} - NOTES), ids=lambda p: p.relative_to(DOCS).as_posix())
def test_every_block_is_run_by_the_build_or_is_a_command_that_there_is(page: Path) -> None:
    text = page.read_text()
    assert unchecked(text) == []
    for command in shown_commands(text):
        parsed(command)


def test_blocks_that_nobody_runs_and_options_that_are_not_there_are_seen() -> None:
    assert unchecked(f"{HEAD}---\n```{{code-cell}}\nx\n```\n```python\ny\n```\n") == ["python"]
    assert unchecked("```{code-cell}\nx\n```\n") == ["{code-cell}"]
    text = "```console\n$ torchrun -m isthmus fit rows.npy --riddle 1\n```\n"
    with pytest.raises(Exception, match="--riddle"):
        parsed(*shown_commands(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(DOCS).as_posix())
def test_every_link_inside_the_site_leads_somewhere(page: Path) -> None:
    assert broken_links(page, page.read_text()) == []


def test_broken_links_are_seen() -> None:
    text = "[a](nowhere.md) [b](theorems.md#x) [c](https://x.org)\n```{image} images/no.svg\n```\n"
    text += "```{toctree}\n:hidden:\n\nnothing\nmap\n```\n:link: guides/none\n"
    assert broken_links(DOCS / "index.md", text) == ["nowhere.md", "images/no.svg", "guides/none.md", "nothing.md"]


def test_every_page_can_be_reached_from_the_first() -> None:
    reached, ahead = set[Path](), [DOCS / "index.md"]
    while ahead:
        page = ahead.pop()
        reached.add(page)
        for kind, content in blocks(page.read_text()):
            below = [(page.parent / name).resolve() for name in entries(content)] if kind == "{toctree}" else []
            ahead += [one for one in below if one.exists() and one not in reached]
    assert {*PAGES} - reached == set()
