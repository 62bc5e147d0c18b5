"""A threshold is written once, in `discovery.choices`; pages that quote it are held to it here.

Whoever changes one finds by this test which lines of which pages speak of it.
"""

import ast
import re
from pathlib import Path

import pytest

from isthmus.discovery import choices
from syntax_trees import parsed

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "isthmus"
THRESHOLDS = {name: value for name, value in vars(choices).items() if name.isupper()}
SPOKEN = {
    "README.md": ["within {SLACK:.0%} of the full one", "costs at least {SHARP:.0%} of the objective"],
    "docs/notes/decision.md": [
        "F(r) <= {SLACK_FACTOR:g} F(K)", "The slack of {SLACK:.0%}", "sharpness < {SHARP:g}",
        "margin < {CLEAR_MARGIN:g}", "`SHARP` = {SHARP:g}", "`CLEAR_MARGIN` = {CLEAR_MARGIN:g}",
        "rises by less than {FREE:.1%}", "ends {GAIN:.1%} lower", "at most {CLOSE_SHARE:.0%} worse",
        "by more than {LINEAR_SHARE:.0%}", "Of a curve over more than {WHOLE} ranks", "up to {LOST:.2g}",
        "is {OVERSHOOT_WORD} above the rank of the trained middle", "{BELOW_WORD} ranks below that of the chosen ridge",
    ],
}  # fmt: skip
DERIVED = {
    "SLACK_FACTOR": 1 + choices.SLACK, "CLOSE_SHARE": choices.CLOSE - 1, "LINEAR_SHARE": choices.AS_LINEAR - 1,
    "OVERSHOOT_WORD": ["one", "two", "three"][choices.OVERSHOOT - 1], "BELOW_WORD": ["one", "two"][choices.BELOW - 1],
}  # fmt: skip


def spoken(template: str, values: dict[str, object]) -> str:
    """As the pages write numbers: a blank before the per cent, no zero before the point of .05."""
    return re.sub(r"(?<=\d)%", " %", template.format(**values)).replace("up to 0.", "up to .")


def unsaid(page: str, values: dict[str, object]) -> list[str]:
    text = " ".join((ROOT / page).read_text().split())
    return [template for template in SPOKEN[page] if spoken(template, values) not in text]


@pytest.mark.parametrize("page", SPOKEN)
def test_pages_quote_the_thresholds_as_they_are(page: str) -> None:
    values: dict[str, object] = {**THRESHOLDS, **DERIVED}
    assert unsaid(page, values) == []
    assert "{SLACK:.0%}" in " ".join(unsaid(page, values | {"SLACK": 0.5}))


def test_every_threshold_stands_there_once_with_its_meaning() -> None:
    lines = (SRC / "discovery" / "choices.py").read_text().splitlines()
    for name in THRESHOLDS:
        assert sum(re.match(rf"(\w+, )*{name}\b.* = .*  # \w", line) is not None for line in lines) == 1, name


def constants(path: Path) -> set[str]:
    """Names in capitals that a file gives a number."""
    found: set[str] = set()
    for node in parsed(path.read_text()).body:
        if isinstance(node, ast.Assign):
            targets = [
                t for target in node.targets for t in (target.elts if isinstance(target, ast.Tuple) else [target])
            ]
            found |= {t.id for t in targets if isinstance(t, ast.Name)}
    return found


def test_no_other_file_defines_one_of_them() -> None:
    """A copy would be changed alone."""
    elsewhere = {
        path.relative_to(SRC).as_posix(): sorted(constants(path) & set(THRESHOLDS))
        for path in SRC.rglob("*.py")
        if path.name != "choices.py" and constants(path) & set(THRESHOLDS)
    }
    assert elsewhere == {}
