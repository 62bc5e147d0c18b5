"""Question: does `isthmus.discover` find in how many combinations of the inputs an answer lies, and which?

Suites, seeds drawn from the hash of the commit that is measured, CPU seconds of one core; the classical methods beside
are told the dimension:
multi-index  200 random tasks, k 1..5 of 8..40 columns, 1..3 targets; four kinds of inputs, five of links, three noises
sdr          models A, B, C of Chen et al. with normal, Poisson and t4 predictors, 1000 to 5000 rows, 20 times
variance     a second combination that moves the spread alone, 10 seeds
groups       eight formulas with known dimensionless groups, 200 to 2000 rows, errors of 1 and 5 %
units        the same with units: the groups of a textbook with their exact exponents
engineering  six functions beside the eigenvectors of their exact gradient covariance
mode         60 tasks whose targets move in 1..6 modes
order        20 tasks: rank <= min(index rank, mode rank)
metamorphic  ten tasks in other units, in another order, mixed by an invertible map, with 10 useless columns

    python benchmarks/index_rank.py [SUITE ...] [--only TEXT] [--cases N] [--turns] [--quick] [--out rows.csv]
                                    [--commit HASH] [--effort default|quick|thorough] [--tables FILE ...]

A line is written as soon as its case is measured; a run that is stopped goes on with the same --out. Cases come in the
order of the hashes of their names, and with --turns one of each suite after the other: what has been measured when a
run is stopped is a fair sample of every suite.

Answer (lines in `measured/index_rank.csv`, without work on doubts in `measured/index_rank_quick.csv`, tables in
`docs/notes/index_rank.md`; one core of an EPYC that others kept busy, torch 2.13.0 CPU, November 2026; at 89df44a but
for multi-index, 175 at 375a9d7, and some lines of sdr, variance and metamorphic):
multi-index  200: all right, 177 confident, median 26.2 s; over the best classical span .35 without noise, .74 with
             5 %, .93 with 20 % (medians), .755 in all
groups       48: all right, 46 confident, median 6.6 s; exponents within .011 with 1 %, with 5 % within .02 on 20 of 24
units        16: all the groups of the textbook, confident, median 5 s
mode         60: all right and confident, median 11.8 s. order: 20 of 20. metamorphic: 40 of 40, 39 confident
variance     10 of 10, and on other draws 10 of 10 at 2c0b37b, 166be30 (both before a rebase) and 074d368: right and
             confident; 42 s, distance .052, of the best classical span .115. Squared error reads 1 on the first 3
engineering  12: 4 within .05 of the leading directions, one without a sharp rank; 3 confident at .053, .076 and .085:
             more rows bring them nearer. Directions of slope up to the clearest gap of the gradients (quick): 7 of 12
sdr          360 draws (quick, 14.3 s), 20 of each setting: above the best published mean of any setting, .97, in 7 of 9
             settings of 1,000 rows and in 8 of 9 of 2,000
"""

import argparse
import hashlib
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from measured.index_cases import IndexCase, metamorphic_cases, mode_cases, multi_index_cases, order_cases
from measured.index_rows import (
    CLASSICAL,
    Line,
    Table,
    counts,
    is_silent,
    of_engineering,
    of_reduction,
    read_lines,
    side_by_side,
)
from measured.index_search import Search
from measured.known_cases import engineering_cases, formula_cases, reduction_cases, spread_cases, units_cases

SUITES: dict[str, Callable[[np.random.Generator], list[IndexCase]]] = {
    "multi-index": multi_index_cases,
    "sdr": reduction_cases,
    "variance": spread_cases,
    "groups": formula_cases,
    "units": units_cases,
    "engineering": engineering_cases,
    "mode": mode_cases,
    "order": order_cases,
    "metamorphic": metamorphic_cases,
}
GOALS = {
    "multi-index": ">= 99 % right, 0 silent, median <= 20 s; distance at most half of the best classical",
    "sdr": "dcor ahead of the published means in 8 of 9 at 1000 and 2000 rows",
    "variance": "9 of 10",
    "groups": "all right and confident, exponents within .02",
    "units": "all right: exact",
    "engineering": "no sharp rank where the gradients say so, else within .05 of their leading directions",
    "mode": ">= 99 % right",
    "order": "always",
    "metamorphic": "same answer in >= 99 %",
}
WORST = 10  # lines that are listed
Planned = tuple[str, IndexCase]


def cases_of(suite: str, commit: str) -> list[IndexCase]:
    """The cases of a suite that belong to a commit, in the order in which they are measured: that of their hashes."""
    cases = SUITES[suite](np.random.default_rng(int(digest(f"{commit} {suite}")[:16], 16)))
    return sorted(cases, key=lambda case: digest(f"{commit} {suite} {case.name}"))


def digest(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def planned(suites: Sequence[str], commit: str, *, only: str, most: int | None, turns: bool) -> list[Planned]:
    """What is measured, in order: suite after suite, or one case of each by turns."""
    chosen = [
        (place, suite, case)
        for suite in suites
        for place, case in enumerate([case for case in cases_of(suite, commit) if only in case.name][:most])
    ]
    return [(suite, case) for _, suite, case in (sorted(chosen, key=lambda one: one[0]) if turns else chosen)]


def numbers(lines: Sequence[Line], column: str) -> list[float]:
    """What is there of a column."""
    return [float(line[column]) for line in lines if line[column]]


def middle(values: Sequence[float]) -> str:
    """Median to three digits, or a dash."""
    return f"{statistics.median(values):.3g}" if values else "-"


def summary(suite: str, lines: Sequence[Line]) -> str:
    """One suite beside its goal: counts, median distances, the ratio to the best classical method case by case."""
    right, confident = (
        sum(line["right"] == "1" for line in lines),
        sum(line["verdict"] == "CONFIDENT" for line in lines),
    )
    parts = [
        f"{suite}: {right} of {len(lines)} right, {confident} confident, {sum(map(is_silent, lines))} silent, median "
        f"{middle(numbers(lines, 'seconds'))} s   goal: {GOALS[suite]}"
    ]
    distances = {name: middle(numbers(lines, name)) for name in ("distance", *CLASSICAL)}
    if distances["distance"] != "-":
        parts.append("  distance: " + ", ".join(f"{name} {value}" for name, value in distances.items()))
    best = [
        (float(line["distance"]), min(others))
        for line in lines
        if line["distance"] and (others := [float(line[name]) for name in CLASSICAL if line[name]])
    ]
    if best:
        ratio = statistics.median(ours / max(other, 1e-9) for ours, other in best)
        parts.append(f"  best classical {middle([other for _, other in best])}; ours over it, median {ratio:.2f}")
    return "\n".join(parts)


def worst(lines: Sequence[Line]) -> list[Line]:
    """Silent ones first, then wrong ones, then the largest distances."""
    return sorted(lines, key=lambda n: (-is_silent(n), n["right"], -float(n["distance"] or 0)))[:WORST]


def said(line: Line) -> str:
    """One line of the terminal."""
    others = " ".join(f"{name} {float(line[name]):.3f}" for name in CLASSICAL if line[name])
    ours = f"{float(line['distance']):.4f}" if line["distance"] else "-"
    right = "" if line["right"] == "1" else "  WRONG"
    dcor = f" dcor {line['dcor']}" if line["dcor"] else ""
    return (
        f"{line['suite']:<12} {line['case']:<60} {line['truth']:>2} {line['found']:>2} {line['verdict']:<13} "
        f"{ours:>7} | {others}{dcor} | {float(line['seconds']):.1f} s{right}"
    )


def main(arguments: Sequence[str] | None = None, *, search: Search | None = None) -> int:
    """Measure what is asked for, print each line as it comes, then the worst ones and the summaries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--cases", type=int, help="the first so many of each suite")
    parser.add_argument("--turns", action="store_true", help="one case of each suite after the other")
    parser.add_argument("--quick", action="store_true", help="the smallest case of the first ten of each suite")
    parser.add_argument("--out", type=Path, help=".csv file that keeps the lines; those in it are not measured again")
    parser.add_argument(
        "--effort", default="default", help="work on doubts: quick, none; keep its lines in a file apart"
    )
    parser.add_argument("--tables", type=Path, nargs="+", help="say what stands in these files, and measure nothing")
    parser.add_argument("--commit", help="the cases of this commit instead of HEAD's; of --tables: only these")
    options = parser.parse_args(arguments)
    if options.tables:
        return conclude([line for path in options.tables for line in read_lines(path, commit=options.commit)])
    asked = options.suites or (["multi-index"] if options.quick else list(SUITES))
    if unknown := [suite for suite in asked if suite not in SUITES]:
        parser.error(f"no suite {', '.join(unknown)}; known are {', '.join(SUITES)}")
    table = Table.of(options.out, commit=options.commit)
    print(f"commit {table.commit}, measured at {table.measured_at}")
    shown: list[Line] = []
    most = 10 if options.quick else options.cases
    cases = planned(asked, table.commit, only=options.only, most=most, turns=options.turns)
    for suite, case in smallest(cases) if options.quick else cases:
        line = table.lines.get((suite, case.name)) or table.add(
            suite, case.name, case.measure(search or _search(options.effort))
        )
        shown.append(line)
        print(said(line), flush=True)
    return conclude(shown)


def conclude(lines: Sequence[Line]) -> int:
    """Print the worst lines, each suite beside its goal, and the tables of all; 1 where one is silent."""
    suites = {suite: [line for line in lines if line["suite"] == suite] for suite in SUITES}
    print("\nworst first:", *map(said, worst(lines)), "", sep="\n")
    print(*(summary(suite, of) for suite, of in suites.items() if of), sep="\n")
    for table in tables(lines):
        print(f"\n{table}")
    return int(any(map(is_silent, lines)))


def tables(lines: Sequence[Line]) -> list[str]:
    """Those of `docs/notes/index_rank.md`: what came of each suite, distances side by side, two suites line by line."""
    known = {suite: len(cases_of(suite, "")) for suite in SUITES}
    made = counts(lines, known), side_by_side(lines), of_engineering(lines), of_reduction(lines)
    return [table for table in made if table]


def smallest(cases: Sequence[Planned]) -> list[Planned]:
    """The least of each suite by its number of entries of x and y, where a case says it; else the first."""
    least = {suite: min((case for of, case in cases if of == suite), key=_size) for suite, _ in cases}
    return list(least.items())


def _size(case: IndexCase) -> int:
    return getattr(case, "num_samples", 0) * (getattr(case, "d_in", 0) + getattr(case, "d_out", 0))


def _search(effort: str) -> Search:
    """The search that is measured, imported only where it is needed."""
    import isthmus

    return partial(isthmus.discover, effort=effort)


if __name__ == "__main__":
    sys.exit(main())
