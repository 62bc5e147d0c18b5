"""The site (`make docs`): each block of its pages is run by the build or checked here, links lead somewhere."""

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.cli.commands import commands as known_commands

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
NOTEBOOKS = sorted(DOCS.glob("notebooks/*.ipynb"))
# pages that were there before the site: notes for developers, whose blocks are formulas and lines of several programs
NOTES = {*DOCS.glob("notes/*.md"), *(DOCS / f"{name}.md" for name in ("errata", "figures", "map", "theorems", "walk"))}
FENCE = re.compile(r"^(`{3,}|:{3,})([^\n]*)\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
BUILT = {"{code-cell}", "{toctree}", "{image}", "{include}", "{eval-rst}", "{commands}", "{grid}"}
HEAD = "---\nfile_format: mystnb\n"


def module_from(path: str) -> object:
    """An extension of the site, as Sphinx imports it."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    names = [line.strip() for line in toctree.splitlines() if line.strip() and not line.startswith(":")]
    return [f"{name}.{'ipynb' if name.startswith('notebooks/') else 'md'}" for name in names]


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
    group: Any = known_commands
    chosen = group.commands[words[0]]
    if hasattr(chosen, "commands"):  # sweep PLAN is sweep run PLAN
        chosen = chosen.commands["run"]
    # a command keeps the help option of the first context that it is in: without a parent -h is none, for good
    parent = known_commands.context_class(known_commands, **known_commands.context_settings)
    chosen.make_context(words[0], words[1:], parent=parent)


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
        if page in NOTEBOOKS:
            continue
        for kind, content in blocks(page.read_text()):
            below = [(page.parent / name).resolve() for name in entries(content)] if kind == "{toctree}" else []
            ahead += [one for one in below if one.exists() and one not in reached]
    assert {*PAGES, *NOTEBOOKS} - reached == set()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_notebooks_are_kept_without_what_they_printed_and_end_in_what_must_hold(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell for cell in cells if cell["outputs"] or cell["execution_count"] is not None] == []
    assert "assert" in "".join(cells[-1]["source"])


def test_a_page_an_anchor_and_a_picture_that_are_not_there_are_seen_in_the_built_site(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.html").write_text('<p id="here"></p><a href="../a.html#top">x</a>')
    text = '<a href="sub/b.html#here">1</a><a href="sub/b.html#gone">2</a><a href="c.html">3</a><a href="#no">4</a>'
    (tmp_path / "a.html").write_text(f'{text}<img src="d%20e.png"><a href="https://x.org/y">5</a>')
    (tmp_path / "d e.png").touch()
    links: Any = module_from("docs/_ext/links.py")
    assert links.broken(tmp_path) == ["a.html: sub/b.html#gone", "a.html: c.html", "a.html: #no"]


@pytest.mark.slow
def test_the_site_builds_and_every_link_in_it_leads_somewhere(tmp_path: Path) -> None:
    """Without running its cells, which `make docs` does."""
    pytest.importorskip("myst_nb", reason="the extra docs is not installed")
    words = ["-m", "sphinx", "-q", "-E", "-D", "nb_execution_mode=off", "-b", "html", str(DOCS), str(tmp_path / "site")]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if "WARNING" in line and "myst-nb.lexer" not in line]
    made_by_cells = "leads nowhere: start/first-run.html: ../plant.html"  # the page of a run, in a tree never built
    assert (done.returncode, [line for line in complaints if made_by_cells not in line]) == (0, [])
    pages = (tmp_path / "site").rglob("*.html")
    assert sum(page.read_text().count('title="isthmus.theory.linear_cost"') for page in pages) >= 3, "names are links"
