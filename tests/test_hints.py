"""Hints of a direction are scored by what was said beside wrong ranks; this code says them. Runs: test_benchmarks."""

import json
from pathlib import Path

import hints
import isthmus.discovery


def rows(path: Path, *answers: tuple[int, int, str, str]) -> Path:
    """A file of answers: truth, rank, verdict, reason."""
    found = {
        f"rank={truth} seed={number}": {"rank": rank, "verdict": verdict, "reasons": ["All agree.", reason]}
        for number, (truth, rank, verdict, reason) in enumerate(answers)
    }
    path.write_text(json.dumps({"commit": "abc", "rows": found}))
    return path


def test_every_hint_is_said_by_the_code() -> None:
    root = Path(isthmus.discovery.__file__).parent
    code = " ".join(path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py")))
    assert [phrase for phrase in hints.HINTS if phrase not in code] == []


def test_a_hint_is_right_where_the_truth_lies_where_it_points(tmp_path: Path) -> None:
    more, fewer = "4 are the most that were tried: there may be more.", "So many flat ones may be fewer, curved."
    path = rows(
        tmp_path / "rows.json",
        (5, 4, "DOUBTFUL", more),
        (3, 4, "NO_SHARP_RANK", more),
        (4, 4, "DOUBTFUL", more),
        (2, 4, "DOUBTFUL", fewer),
        (2, 4, "CONFIDENT", fewer),
        (-1, 4, "DOUBTFUL", fewer),
    )
    said = hints.hints_of(path)
    assert [(one.phrase, one.off, one.is_right) for one in said] == [
        ("there may be more", 1, True), ("there may be more", -1, False), ("there may be more", 0, False),
        ("flat ones may be fewer, curved", -2, True),
    ]  # fmt: skip
    line = hints.line_of("there may be more", said[:3])
    assert line.split() == ["there", "may", "be", "more", "more", "3", "1", "of", "2", "goes"]
    assert not hints.line_of("flat ones may be fewer, curved", said[3:]).endswith("goes")
    assert hints.line_of("it may be larger", []).endswith("-")
