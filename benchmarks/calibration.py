"""Question: how often is a rank that was read like this right, and which ranks hold the truth in 95 of 100 tasks?

    python benchmarks/calibration.py ROWS.json ...     add what rank_recovery.py measured to the table, and fit
    python benchmarks/calibration.py                   fit to the table alone
    python benchmarks/calibration.py --quick --picture docs/images/reliability.svg     draw the reliability diagram

The table, `benchmarks/measured/calibration.csv`, has one line a task: suite, truth (empty where there is none), what
was found. A task without a rank that is given one counts as wrong. What is fitted is written to
`src/isthmus/discovery/evidence/calibration.json`; printed is how it does on suites that it was not fitted to, each left
out in turn.

Answer (November 2026). Curved rank of regressions, 942 tasks of seven suites: each suite left out in turn, expected
calibration error .006 (.008 by chance), sets hold .990; of the 31 told .8 to .95, 25 were right. Teachers of 20 to 200
rows, left out, are told .86 where .73 are right: how many rows there were is learnt from them alone; 12 teachers of
rank 9 to 20, .81 where 8 are right (of those above 16 none, each without a sharp rank). Combinations for one target,
282 tasks of two suites: with one of them left out .053 (.030 by chance, in 95 of 100 draws at most .050; 172 told .90
and more were all right; of 15 told .8 to .9 nine were); sets hold .989. Of autoencoding 315 tasks of six suites: .050
(.027 by chance, in 95 of 100 draws at most .046), as too little is promised from .5 on (of 168 told .9 and more all
were right) and too much of five flows (told .65, two right); sets hold .987. Of three classes and more 101 tasks of two
suites: .087 (.053 by chance, in 95 of 100 draws at most .102), as too much is promised of few rows (.55 for .38) and
too little of many (.36 for .59); sets hold .970. Of two classes 14 were measured, too few to tell anything.

Without weights of their own for what is read in confident answers the first three were .017, .074 and .054 (of 855, 260
and 268 tasks).
"""

import argparse
import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import binomtest

from isthmus.discovery.evidence.probability import (
    ENOUGH_TASKS,
    FEATURES,
    enough_steps,
    features,
    fitted,
    hull,
    steps_to,
)
from isthmus.plots.style import BLUE, INK, MUTED, SMALL, own_settings
from isthmus.theory import Verdict

HERE = Path(__file__).parent
TABLE = HERE / "measured" / "calibration.csv"
FITTED = HERE.parent / "src" / "isthmus" / "discovery" / "evidence" / "calibration.json"
READINGS = ("objective_rank", "scree_rank", "jacobian_rank", "sharpness", "scree_margin", "resample_share", "rows")
AUTOENCODED = {"planes", "pictures", "flows", "kuramoto"}
BINS = (0.0, 0.5, 0.8, 0.9, 0.95, 1.0)
DRAWS = 2000  # of tasks that are right as often as they are told
NAMED = {
    "rank, regression": "several targets",
    "index, regression": "one target: combinations",
    "rank, autoencoding": "columns from themselves",
    "rank, classification": "classes",
}
Line = dict[str, Any]


def lines_of(path: Path) -> list[Line]:
    """The tasks of one file of rank_recovery.py."""
    found: list[Line] = []
    suite = path.stem.removeprefix("rows_").removesuffix("_anew")
    for name, row in json.loads(path.read_text())["rows"].items():
        truth = int(name.split("rank=")[1].split(" ")[0])
        if truth < 0:  # nothing depends on anything, but for what has the spectrum of pictures
            truth = None if "activation=surrogate " in name else 0
        read = {key: row[key] for key in READINGS if key in row}
        own = {"suite": suite, "kind": row.get("kind") or kind_of(suite, name), "case": name, "truth": truth}
        found.append(own | {"rank": row["rank"], "verdict": row["verdict"], "measured_at": row["measured_at"]} | read)
    return found


def kind_of(suite: str, name: str) -> str:
    """Kinds of rank and task, of answers from before they said so themselves."""
    made = name.split("activation=")[1]
    if made.startswith("classes"):
        return "rank, classification"
    if made.startswith("permuted index") or " d_out=1 " in name:
        return "index, regression"
    is_alone = suite in AUTOENCODED or made.startswith(("plane", "surrogate"))
    return f"rank, {'autoencoding' if is_alone else 'regression'}"


def found_in(line: Line) -> tuple[int, Verdict, dict[str, float | None]]:
    """Rank, verdict and readings."""
    readings = {key: None if pd.isna(line[key]) else float(line[key]) for key in READINGS if key in line}
    if readings.get("rows") is None:  # older answers do not say: four fifths were trained on
        readings["rows"] = 0.8 * int(line["case"].split("num_samples=")[1].split(" ")[0])
    return int(line["rank"]), Verdict[line["verdict"]], readings


def truth_of(line: Line) -> int | None:
    """The rank of the task, where it has one."""
    return None if pd.isna(line["truth"]) else int(line["truth"])


def prepared(table: list[Line]) -> tuple[np.ndarray, np.ndarray]:
    """Features, and whether the rank was right."""
    rows = [list(features(*found_in(line)).values()) for line in table]
    return np.array(rows), np.array([float(truth_of(line) == int(line["rank"])) for line in table])


def with_doubt(rows: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One right and one wrong task more of each verdict, as the rule of succession has them: few tell little."""
    parts = [rows[np.all(rows[:, :2] == verdict, axis=1)] for verdict in np.unique(rows[:, :2], axis=0)]
    more = np.repeat([part.mean(0) for part in parts], 2, axis=0)
    return np.concatenate([rows, more]), np.concatenate([right, np.tile([0.0, 1.0], len(parts))])


def model(table: list[Line]) -> dict[str, Any]:
    """What is fitted to these tasks."""
    table = [line for line in table if int(line["rank"]) > 0]  # that nothing was found says nothing of other answers
    intercept, weights = fitted(*with_doubt(*prepared(table)))
    steps: dict[str, list[int]] = {verdict.name: [] for verdict in Verdict}
    for line in table:
        rank, verdict, readings = found_in(line)
        if (truth := truth_of(line)) is not None:
            steps[verdict.name].append(steps_to(truth, rank, readings))
    return {
        "intercept": round(intercept, 4),
        "weights": dict(zip(FEATURES, np.round(weights, 4).tolist(), strict=True)),
        "steps": {name: enough_steps(known) for name, known in steps.items()},
        "tasks": len(table),
    }


def told_by(found: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    """Probabilities of tasks, by a fitted model."""
    return 1 / (1 + np.exp(-(found["intercept"] + rows @ np.array(list(found["weights"].values())))))


def sets_of(found: dict[str, Any], table: list[Line]) -> list[tuple[bool, int]]:
    """Of the tasks that have a rank, whether the set holds it, and how many ranks it has."""
    sets: list[tuple[bool, int]] = []
    for line in table:
        rank, verdict, readings = found_in(line)
        low, high = hull(rank, readings, found["steps"][verdict.name])
        if (truth := truth_of(line)) is not None:
            sets.append((max(low, 0) <= truth <= high, high - max(low, 0) + 1))
    return sets


@dataclass(frozen=True)
class LeftOut:
    """What is told of the tasks of one suite by what was fitted to the others."""

    suite: str
    confident: int
    told: np.ndarray
    right: np.ndarray
    sets: list[tuple[bool, int]]


def left_out(table: list[Line]) -> list[LeftOut]:
    """Each suite of a kind in turn; nothing where there is one alone."""
    table = [line for line in table if int(line["rank"]) > 0]
    suites = sorted({line["suite"] for line in table})
    found: list[LeftOut] = []
    for suite in suites if len(suites) > 1 else []:
        out = [line for line in table if line["suite"] == suite]
        fit = model([line for line in table if line["suite"] != suite])
        rows, right = prepared(out)
        confident = sum(line["verdict"] == "CONFIDENT" for line in out)
        found.append(LeftOut(suite, confident, told_by(fit, rows), right, sets_of(fit, out)))
    return found


def together(parts: list[LeftOut]) -> tuple[np.ndarray, np.ndarray]:
    """What all tasks were told, and whether they were right."""
    return np.concatenate([part.told for part in parts]), np.concatenate([part.right for part in parts])


def judged(parts: list[LeftOut]) -> None:
    """Print how the model does on each suite that is left out, and on all of them together."""
    print(f"{'suite':<12} {'tasks':>5} {'confident':>10} {'right':>6} {'told':>6} {'in set':>7} {'size':>5}")
    for part in parts:
        inside, size = np.mean(part.sets, axis=0) if part.sets else (np.nan, np.nan)
        print(
            f"{part.suite:<12} {len(part.told):>5} {part.confident:>10} {part.right.mean():>6.2f} "
            f"{part.told.mean():>6.2f} {inside:>7.2f} {size:>5.1f}"
        )
    p, right = together(parts)
    print("\nsuites left out, by what they were told")
    for low, high, here in bins_of(p):
        print(f"{low:.2f} to {high:.2f}: {here.sum():>4}, told {p[here].mean():.3f}, right {right[here].mean():.3f}")
    held, rng = [held for part in parts for held, _ in part.sets], np.random.default_rng(0)
    chance = [calibration_error(p, rng.random(len(p)) < p) for _ in range(DRAWS)]
    print(
        f"expected calibration error {calibration_error(p, right):.3f}, by chance alone "
        f"{np.mean(chance):.3f}, in 95 of 100 draws at most {np.quantile(chance, 0.95):.3f}; sets hold "
        f"{np.mean(held):.3f} of {len(held)}"
    )


def diagram(kinds: dict[str, list[LeftOut]]) -> Figure:
    """Reliability diagram: how often ranks were right over what was told of them, of suites that were left out."""
    with own_settings():
        figure = Figure(figsize=(3.1 * len(kinds), 3.4), layout="constrained")
        for place, (kind, parts) in enumerate(kinds.items()):
            ax = figure.add_subplot(1, len(kinds), place + 1, aspect="equal")
            p, right = together(parts)
            reliability(ax, p, right)
            words = f"{NAMED[kind]}\n{len(p)} tasks, error {calibration_error(p, right):.3f}"
            ax.set_title(words, fontsize=SMALL + 1, color=INK)
            ax.set(xlim=(0, 1.17), ylim=(0, 1.04), xlabel="probability told", ylabel="" if place else "share right")
    return figure


def reliability(ax: Axes, p: np.ndarray, right: np.ndarray) -> None:
    """A point for each bin, the interval of 95 % of its share (Clopper and Pearson) and how many tasks it has."""
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle="--", label="as told")
    for _, _, here in bins_of(p):
        told, share, count = float(p[here].mean()), float(right[here].mean()), int(here.sum())
        ends = binomtest(int(right[here].sum()), count).proportion_ci(0.95)
        ax.plot([told, told], [ends.low, ends.high], color=BLUE, linewidth=1.4, label="interval")
        ax.plot(told, share, "o", color=BLUE, markersize=4 + 2 * np.log10(count), label="share")
        if told > BINS[-2]:  # points crowd in the corner
            ax.text(told + 0.04, share, f"{count}", fontsize=SMALL, color=INK, ha="left", va="center")
        else:
            low = max(float(ends.low), 0.08) - 0.01  # inside the axes
            ax.text(told, low, f"{count}", fontsize=SMALL, color=INK, ha="center", va="top")


def bins_of(p: np.ndarray) -> list[tuple[float, float, np.ndarray]]:
    """The ends of each bin that is not empty, and which tasks it has."""
    parts = [(low, high, (p >= low) & ((p < high) | (high == BINS[-1]))) for low, high in pairwise(BINS)]
    return [part for part in parts if part[2].any()]


def calibration_error(p: np.ndarray, right: np.ndarray) -> float:
    """Mean over the tasks of how far what their bin was told lies from how often it is right."""
    return float(sum(here.mean() * abs(p[here].mean() - right[here].mean()) for _, _, here in bins_of(p)))


def main() -> None:
    """Add, fit, write, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, nargs="*")
    parser.add_argument("--quick", action="store_true", help="judge the table as it is; write nothing but a picture")
    parser.add_argument("--picture", type=Path, help="SVG file for the reliability diagram")
    options = parser.parse_args()
    parts = [pd.read_csv(TABLE)] if TABLE.exists() else []
    parts += [pd.DataFrame(lines_of(path)) for path in options.rows]
    table = pd.concat(parts).drop_duplicates(["suite", "case", "kind"], keep="last").sort_values(["suite", "case"])
    if not options.quick:
        table.to_csv(TABLE, index=False)
    lines: list[Line] = table.to_dict("records")
    kinds = sorted({line["kind"] for line in lines})
    fits = {kind: model([line for line in lines if line["kind"] == kind]) for kind in kinds}
    if not options.quick:
        FITTED.write_text(json.dumps({"kinds": fits}, indent=1) + "\n", encoding="utf-8")
    known: dict[str, list[LeftOut]] = {}
    for kind in kinds:
        tasks = [line for line in lines if line["kind"] == kind]
        print(f"\n{kind}")
        if parts_of_kind := left_out(tasks):
            known[kind] = parts_of_kind
            judged(parts_of_kind)
        else:
            print(f"{len(tasks)} tasks of one suite: nothing to leave out")
    if options.picture:
        told = {kind: parts for kind, parts in known.items() if fits[kind]["tasks"] >= ENOUGH_TASKS}
        with own_settings({"svg.hashsalt": "isthmus"}):  # the same table gives the same file
            diagram(told).savefig(options.picture, metadata={"Date": None})


if __name__ == "__main__":
    main()
