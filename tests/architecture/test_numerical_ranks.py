"""A rank that is counted says what it counts as zero: otherwise a processor's roundings decide."""

import ast
from pathlib import Path

from syntax_trees import parsed

ROOT = Path(__file__).parents[2]
FILES = sorted(path for folder in ("src", "tests", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py"))
TOLERANCES = {"atol", "rtol", "tol"}


def bare_ranks(source: str) -> list[str]:
    """Calls of `matrix_rank` without a tolerance, whose own is a few roundings: as large as those of a product."""
    if "matrix_rank" not in source:  # most files need no reading
        return []
    return [
        f"line {node.lineno}"
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) == "matrix_rank"
        and not TOLERANCES & {str(keyword.arg) for keyword in node.keywords}
    ]


def test_every_rank_that_is_counted_has_a_tolerance() -> None:
    wrong = {str(path.relative_to(ROOT)): bare_ranks(path.read_text()) for path in FILES}
    assert {path: lines for path, lines in wrong.items() if lines} == {}
    assert len(wrong) > 300


def test_the_check_catches_a_rank_without_a_tolerance() -> None:
    assert bare_ranks("torch.linalg.matrix_rank(a)") == ["line 1"]
    assert bare_ranks("from numpy.linalg import matrix_rank\nmatrix_rank(a, hermitian=True)") == ["line 2"]
    assert bare_ranks("np.linalg.matrix_rank(a, tol=1e-9), torch.linalg.matrix_rank(a, rtol=r, atol=0.0)") == []
