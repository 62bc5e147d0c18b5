"""What is said of versions holds together: bounds, constraints, one version; hooks and workflows run something."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import isthmus

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONSTRAINED = ("constraints.txt", "constraints-oldest.txt")
# extras whose oldest versions are held to; the others (dask, onnx) are tested as they are pinned in constraints.txt
EXTRAS = ("older", "excel", "tables", "units", "zarr")


def pins(name: str) -> dict[str, Version]:
    lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]
    found = [line.split("==") for line in lines]
    return {re.sub(r"[-_.]+", "-", name).lower(): Version(version) for name, version in found}


def bounds() -> dict[str, Version]:
    extras = PROJECT["project"]["optional-dependencies"]
    lines = [*PROJECT["project"]["dependencies"], *(line for extra in EXTRAS for line in extras[extra])]
    wanted = [Requirement(line) for line in lines]
    return {r.name: Version(next(s.version for s in r.specifier if s.operator == ">=")) for r in wanted}


def test_the_oldest_constraints_are_the_lower_bounds() -> None:
    oldest, least = pins("constraints-oldest.txt"), bounds()
    assert set(oldest) == {*least, "click"}  # which typer of that age does not bound
    assert {name for name, bound in least.items() if name != "torch" and oldest[name] != bound} == set()


@pytest.mark.parametrize("file", CONSTRAINED)
def test_every_pin_is_allowed_and_torch_is_one_that_comes_without_cuda(file: str) -> None:
    pinned = pins(file)
    assert {name for name, bound in bounds().items() if pinned[name] < bound} == set()
    assert pinned["torch"] == Version("2.13.0")


def test_the_version_stands_in_one_place() -> None:
    assert "version" not in PROJECT["project"]
    path = PROJECT["tool"]["hatch"]["version"]["path"]
    found = re.findall(r'^__version__ = "(.+)"$', (ROOT / path).read_text(), flags=re.MULTILINE)
    assert found == [isthmus.__version__]


def test_every_hook_matches_a_file_and_every_workflow_runs_the_checks() -> None:
    hooks = [
        h for repo in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"] for h in repo["hooks"]
    ]
    places = [place for place in ROOT.iterdir() if place.is_dir() and not place.name.startswith(".")]
    files = [path.relative_to(ROOT).as_posix() for place in places for path in place.rglob("*.py")]
    assert [hook["id"] for hook in hooks if not any(re.search(hook["files"], name) for name in files)] == []
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        steps = [s for job in yaml.safe_load(workflow.read_text())["jobs"].values() for s in job["steps"]]
        commands = [step["run"] for step in steps if "run" in step]
        assert commands == [".ci/run"]
        assert all((ROOT / command).stat().st_mode & 0o100 for command in commands)
    lines = re.findall(r"^make (.+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    made = {goal for line in lines for goal in line.split()}
    assert made >= {"check", "docs", "test"}


def test_templates_ask_for_something() -> None:
    for template in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        body = yaml.safe_load(template.read_text())["body"]
        assert any(part.get("validations", {}).get("required") for part in body)


def test_paths_in_the_guide_for_contributors_are_there() -> None:
    text = "".join((ROOT / name).read_text() for name in ("CONTRIBUTING.md", "CODE_OF_CONDUCT.md"))
    named = [path for path in re.findall(r"`([\w./-]+/[\w./-]+|\w+\.md)`", text) if not path.startswith("isthmus.")]
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists() and path != "__init__.py"] == []


def test_the_conda_recipe_asks_for_the_same_as_the_project() -> None:
    lines = (ROOT / "conda.recipe" / "meta.yaml").read_text().splitlines()
    run = lines[lines.index("  run:") + 1 : lines.index("test:")]
    recipe = {Requirement(line.strip().removeprefix("- ").replace(" ", "")) for line in run if line.strip()}
    there = {"pytorch": "torch", "matplotlib-base": "matplotlib"}
    found = {(there.get(one.name, one.name), str(one.specifier)) for one in recipe if one.name != "python"}
    wanted = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
    assert found == {(one.name, str(one.specifier)) for one in wanted}
    assert [str(one.specifier) for one in recipe if one.name == "python"] == [PROJECT["project"]["requires-python"]]


def test_the_page_of_the_package_index_links_to_nothing_that_lies_beside_the_readme() -> None:
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = before = (ROOT / "README.md").read_text()
    for rule in hook["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    assert re.search(r"\]\((?!https?://)", before), "or nothing needs to be left out any more"
    assert re.search(r"\]\((?!https?://)", text) is None
    assert len(text) > 0.95 * len(before)
