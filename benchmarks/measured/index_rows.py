"""The table of `index_rank`: one line per case, on disk as soon as it is measured. JSON rows of others: `rows`."""

import csv
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from isthmus.errors import DataError
from measured.rows import head

COLUMNS: tuple[str, ...] = (
    "suite", "case", "truth", "found", "verdict", "right", "distance", "leading",
    "sir", "save", "directional", "phd", "opg", "mave", "dcor", "seconds", "classical_seconds", "detail",
    "commit", "measured_at",
)  # fmt: skip
CLASSICAL = ("sir", "save", "directional", "phd", "opg", "mave")
Line = dict[str, str]


@dataclass
class Table:
    """Measured lines by suite and case.

    Attributes:
        commit: whose hash the cases are drawn from.
        path: of the .csv file, a line appended per case; None keeps them in memory.
        lines: those so far.
        measured_at: the commit that is checked out.
    """

    commit: str
    path: Path | None = None
    lines: dict[tuple[str, str], Line] = field(default_factory=dict[tuple[str, str], Line])
    measured_at: str = field(default_factory=head)

    @classmethod
    def of(cls, path: Path | None, *, commit: str | None = None) -> "Table":
        """The lines of a file, none where there is no file yet; a line that was cut off is left out.

        Raises:
            DataError: the file is not one of these, or holds the cases of another commit than asked for.
        """
        if path is None or not path.exists():
            return cls(commit or head(), path)
        text = path.read_text()
        whole = text[: text.rfind("\n") + 1]  # a run may have been killed while it wrote
        reader = csv.DictReader(whole.splitlines())
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise DataError(f"{path}: is no table of index_rank, whose columns are {', '.join(COLUMNS)}.")
        lines = {(line["suite"], line["case"]): line for line in reader}
        drawn = {line["commit"] for line in lines.values()} or {commit or head()}
        if len(drawn) > 1 or commit not in {None, *drawn}:
            raise DataError(f"{path}: holds the cases of commit {', '.join(sorted(drawn))}. Give --out another name.")
        if whole != text:
            path.write_text(whole)
        return cls(drawn.pop(), path, lines)

    def add(self, suite: str, case: str, measured: dict[str, object]) -> Line:
        """Keep a line, on disk before this returns; numbers to 6 digits."""
        known = {"suite": suite, "case": case, "commit": self.commit, "measured_at": self.measured_at}
        line = {name: _said((known | measured).get(name, "")) for name in COLUMNS}
        self.lines[suite, case] = line
        if self.path is not None:
            fresh = not self.path.exists()
            with self.path.open("a", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                if fresh:
                    writer.writeheader()
                writer.writerow(line)
        return line


def side_by_side(lines: Sequence[Line]) -> str:
    """A Markdown table of median distances by suite and noise: ours, the classical methods, ours over the best of them.

    Of cases that the classical methods were measured on; the best is that of each case, chosen by who knows the truth.
    """
    kinds: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if line["distance"] and any(line[name] for name in CLASSICAL):
            found = re.search(r"noise=([\d.]+)", line["case"])
            kinds.setdefault((line["suite"], found[1] if found else ""), []).append(line)
    heads = ["suite", "noise", "cases", "ours", *CLASSICAL, "best", "ours / best"]
    return _markdown(
        heads, [[suite, noise, str(len(of)), *_medians(of)] for (suite, noise), of in sorted(kinds.items())]
    )


def is_silent(line: Line) -> bool:
    """Wrong without a warning."""
    return line["right"] == "0" and line["verdict"] in {"CONFIDENT", "ORDER"}


def counts(lines: Sequence[Line], cases: Mapping[str, int]) -> str:
    """A Markdown table of what came of each suite: how many of its cases were measured, right, confident, silent.

    Args:
        lines: one for each case.
        cases: suite -> how many there are, in the order of the table.
    """
    rows = list[list[str]]()
    for suite, count in cases.items():
        of = [line for line in lines if line["suite"] == suite]
        if not of:
            continue
        right, sure = sum(line["right"] == "1" for line in of), sum(line["verdict"] == "CONFIDENT" for line in of)
        seconds = statistics.median(float(line["seconds"]) for line in of)
        silent = sum(map(is_silent, of))
        rows.append([suite, str(len(of)), str(count), str(right), str(sure), str(silent), f"{seconds:.1f}"])
    return _markdown(["suite", "measured", "of", "right", "confident", "silent", "median CPU s"], rows)


def of_reduction(lines: Sequence[Line]) -> str:
    """A Markdown table of the models A, B, C by predictors and rows: mean distance correlation, ranks as they came."""
    kinds: dict[tuple[str, ...], list[Line]] = {}
    for line in lines:
        if line["dcor"]:
            model, predictors, rows, _ = line["case"].split()
            kinds.setdefault((model, predictors, rows.removeprefix("n=")), []).append(line)
    table = list[list[str]]()
    for kind, of in sorted(kinds.items(), key=lambda pair: (pair[0][:2], int(pair[0][2]))):
        values = [float(line["dcor"]) for line in of]
        said = Counter(f"{line['found']}{'' if line['verdict'] == 'CONFIDENT' else '?'}" for line in of)
        read = ", ".join(f"{count} x {what}" if count > 1 else what for what, count in said.most_common())
        table.append([*kind, str(len(of)), f"{statistics.mean(values):.3f}", f"{min(values):.3f}", read])
    return _markdown(["model", "predictors", "rows", "draws", "mean dcor", "least", "combinations read"], table)


def of_engineering(lines: Sequence[Line]) -> str:
    """A Markdown table of the functions of engineering: both distances, and those up to each clear gap."""
    table = list[list[str]]()
    for line in sorted((line for line in lines if line["leading"]), key=lambda line: line["case"]):
        function, _, noise, _ = line["case"].split()
        said = re.search(r"first directions of slope ([^;]*)", line["detail"])
        read = f"{line['found']}, {line['verdict'].replace('_', ' ').lower()}"
        near = [f"{float(line[name]):.3f}" for name in ("distance", "leading")]
        table.append([function, noise.removeprefix("noise="), read, *near, said[1] if said else "-"])
    heads = ["function", "noise", "read", "all", "up to the clearest gap", "first so many: distance (uncertain by)"]
    return _markdown(heads, table)


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows]) if rows else ""


def _medians(lines: Sequence[Line]) -> list[str]:
    ours = [float(line["distance"]) for line in lines]
    best = [min(float(line[name]) for name in CLASSICAL if line[name]) for line in lines]
    ratio = statistics.median(mine / max(other, 1e-9) for mine, other in zip(ours, best, strict=True))
    others = [[float(line[name]) for line in lines if line[name]] for name in CLASSICAL]
    medians = [f"{statistics.median(of):.4f}" if of else "-" for of in (ours, *others, best)]
    return [*medians, f"{ratio:.2f}"]


def read_lines(path: Path, *, commit: str | None = None) -> list[Line]:
    """The lines of a table, of whatever commits or drawn from this one; of a case measured twice the last."""
    with path.open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if commit is None or line["commit"].startswith(commit)]
    return list({(line["commit"], line["suite"], line["case"]): line for line in lines}.values())


def _said(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value).replace("\n", " ")
