"""Question: does `isthmus.discover` with default settings find the dimension of manifolds and tables?

Manifolds are autoencoded; the answer is the rank, or the deep rank of the depth path where there are at most 13 columns
(and on cube_17 and M6), against the embedding dimension. Beside it stand estimators that look at nearest neighbours.
The task of gradient descent is read for its two statistics. Tables show the held-out error beside those of a ridge (a
logistic regression for classes), a regression on as many principal components, and a random forest, all on the rows
that the discovery held out; 1 is the error of the mean.

    python benchmarks/intrinsic_dimension.py [--only helix,digits] [--out FILE] [--mnist FILE] [--quick]

A run that is stopped goes on with the same --out. Seconds are CPU seconds of one core.

Answer, so far in part (a busy core of an Intel Xeon, torch 2.13.0 CPU, November 2026): the task of gradient
descent has rank 2, confident, with R^2 .983 and .981 (68 s; discovery as at commit 968920a). Held-out errors beside
regression on as many principal components, at commit 25084d9: wine .042 (rank 1, confident) against .279, breast cancer
.160 (1, confident) against .429, diabetes .548 (1, doubtful) against .655, and linnerud 2.12 (1, doubtful; 16 rows to
train on, 4 held out) against 1.30, where every method is worse than the mean. Before the ridges reached .1 and
halves that refining spoils were left as they were, diabetes had 1.01 and breast cancer .225.

All of them once more, 4 to 8 s on a newer Xeon: the same errors but for linnerud, whose 1.03 (doubtful) is now below
the 1.30 since larger ridges are tried as long as nothing predicts more than the mean. Classes of digits .312 (no sharp
rank, 2 by the Jacobian; nor have they one on 12 other seeds) against .549. Digits autoencoded: no sharp rank (48 at
ridge 3e-4, 20 at 1e-3), 4 min 42 s of CPU. MNIST autoencoded, 5,000 rows, at 4421cbb: no sharp rank (22 at ridge 3e-4,
7 at 1e-3), .514 through 24 dimensions against .618 by PCA, 948 s.

Curves and surfaces at 9857c91, CPU seconds of a newer Xeon (answer: the deep rank; all verdicts doubtful): helix 1
(flat 3, 43 s), swiss roll 2 (3, 58 s), circle 2 (2, 29 s), torus 3 (3, 58 s), all right, slopes of the lines over
ridge * rank, for ranks that hold the data together, .88 to 1.00. Cube 17 (17, 850 s) at 602408e.

The 24 of the collection, each at the last commit that concerns it: 17 right against the embedding dimension, none wrong
without a warning; TwoNN has 10 right, PCA 9, Corr and MLE 8, MOM 6. At 9857c91 M3 4 (149 s), M4 4 (208 s), M1 sphere 11
and M6 6 for a flat rank of 12; at 48f24c4 M2 3 (97 s), M7 roll 2, M10a 11, M13a S-curve 2, Mp1 3; at f29fb5b to 0909a6e
M9 20, M10b 18, M10c 25, M10d 71 (no sharp rank), M12 20, Mbeta 10, Mp2 6, Mp3 9. Mbeta and Mp1 to Mp3 are confident. Of
M3, M4 and M6 it is said that the rows lie too far apart to tell whether so few coordinates cut them open; before depth
paths took one dimension away at a time they were 5, 8 and 12. Wrong, each doubtful: flat or twisted surfaces in three
columns, for which rank 2 glues rows at every depth tried (M5a closed helix 3, its least space 2; M5b helicoid 3 for 2;
M11 twisted band 3 for 2), M13b spiral 2 for 1, and, without a depth path, M8 24 for 12, Mn1 19 for 18, Mn2 34 for 24
with no sharp rank (61 to 213 s).

At 238c1f3 M13b is 1 (153 s) and M5a 2, both doubtful, by maps of the rows that are trained on, and Mn2 24, doubtful;
Mn1 has been 18, doubtful, before. At fc30844 M11 is 2, doubtful (175 s), the swiss roll 2 and the helix 1, confident
(106 and 89 s), the torus 3, doubtful (217 s). So by the last of each 22 of the 24 are right; M5b and M8 are not.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from isthmus import Discovery, discover, tasks
from isthmus.tasks import Kind, Task
from measured.rivals import explained, heldout_errors, neighbour_estimates
from measured.rows import Row, Rows

COLUMNS = 13  # up to which every manifold gets a depth path
MNIST_ROWS = 5000
MANIFOLD_HEADER = (
    "manifold           cols own emb | answer right verdict       rank flat deep switch | "
    "TwoNN   MLE   MOM  Corr  PCA |   error     PCA    sec"
)
TABLE_HEADER = (
    "table           rows cols | rank verdict       |   error     PCA   ridge  forest |    sec  scree of held-out error"
)


@dataclass(frozen=True)
class Case:
    """One row of the table: a task, and whether the rank is wanted as a function of depth."""

    make: Callable[[], Task]
    depth_path: bool = False


def manifolds() -> dict[str, Case]:
    """Curves, surfaces and solids by name, then the 24 of the collection."""
    named: dict[str, Callable[[], Task]] = {
        "helix": tasks.helix, "swiss_roll": tasks.swiss_roll, "circle": tasks.circle, "torus": tasks.torus,
        "cube_17": tasks.cube,
    }  # fmt: skip
    drawn = {name: partial(tasks.benchmark_manifold, name) for name in tasks.BENCHMARK_MANIFOLDS}
    asked = {*named, "M6_Nonlinear"}
    return {
        name: Case(make, name in asked or make().x.shape[1] <= COLUMNS) for name, make in {**named, **drawn}.items()
    }


def all_cases(mnist: Path | None) -> dict[str, Case]:
    """Every row by name."""
    found = manifolds()
    found["symmetry"] = Case(partial(tasks.gradient_descent_symmetry, dimension=20, num_steps=20))
    for name in ("linnerud", "diabetes", "wine", "breast_cancer", "digits_classes", "digits"):
        found[name] = Case(partial(tasks.builtin, name))
    if mnist is not None:
        found["mnist"] = Case(partial(tasks.mnist, mnist, num_samples=MNIST_ROWS))
    return found


def measure(case: Case) -> Row:
    """One discovery with default settings, its readings, and what others say of the same data."""
    task = case.make()
    began = time.process_time()
    classes = task.kind is Kind.CLASSIFICATION
    y = None if task.y is None else task.y.argmax(1) if classes else task.y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = discover(task.x, y, loss="cross_entropy" if classes else None, depth_path=case.depth_path, workers=1)
    row: Row = {
        "kind": str(task.kind), "rows": len(task.x), "columns": task.x.shape[1],
        "intrinsic": task.jacobian_rank, "embedding": task.true_rank,
        "rank": found.rank, "answer": found.rank, "verdict": found.verdict.name, "reasons": list(found.reasons),
        "seconds": time.process_time() - began, **found.readings,
        "scree": found.scree["heldout_error"].values.tolist(),
        "objective_curve": {
            f"{ridge:g}": found.objective_curve["objective"].sel(ridge=ridge).values.tolist()
            for ridge in found.objective_curve["ridge"].values
        },
    }  # fmt: skip
    if case.depth_path:
        row |= depth_readings(found)
    if task.true_rank is not None and task.y is None:
        row |= neighbour_estimates(task.x)
    if task.y is not None and task.latent is not None and found.rank:
        z = found.transform(task.x)
        row |= {"r2_of_statistics": explained(z, task.latent), "r2_of_coordinates": explained(task.latent, z)}
    return row | heldout_errors(task, found.rank)


def depth_readings(found: Discovery) -> Row:
    """The rank as a function of depth; none where no depth was trained."""
    if found.depth_path is None:
        return {}
    reading, table = found.depth_path.reading, found.depth_path.table
    ridge = table.attrs["ridge"]
    return {
        "answer": reading.deep_rank, "flat": reading.flat_rank, "deep": reading.deep_rank, "switch": reading.switch,
        "winners": list(reading.winners), "slopes": [line.slope / (ridge * line.rank) for line in reading.lines],
        "path": {name: table[name].values.tolist() for name in ("objective", "between", "heldout_error", "true_rank")},
    }  # fmt: skip


def short(value: object, width: int, digits: int = 1) -> str:
    """A number for a column, or a dash where there is none."""
    if value is None or value != value:
        return f"{'-':>{width}}"
    return f"{value:>{width}.{digits}f}" if isinstance(value, float) else f"{value:>{width}}"


def line(name: str, row: Row) -> str:
    """One line of its table."""
    verdict = str(row["verdict"]).lower().replace("_", " ")
    errors = " ".join(f"{row[key]:>7.4f}" if key in row else f"{'-':>7}" for key in ("heldout_error", "pca_error"))
    if row["embedding"] is None:
        errors += " " + " ".join(short(row.get(key), 7, 4) for key in ("ridge_error", "forest_error"))
        worse = " WORSE than PCA" if row["heldout_error"] > row["pca_error"] else ""
        scree = " ".join(f"{e:.3g}" for e in row["scree"])
        return (
            f"{name:<15} {row['rows']:>4} {row['columns']:>4} | {row['rank']:>4} {verdict:<13} | {errors} | "
            f"{row['seconds']:>6.0f}  {scree}{worse}"
        )
    right = "yes" if row["answer"] == row["embedding"] else "NO"
    rivals = " ".join(short(row.get(key), 5) for key in ("two_nn", "mle", "mom", "corr", "pca"))
    path = " ".join(short(row.get(key), 4) for key in ("flat", "deep")) + short(row.get("switch"), 7)
    told = ""
    if "r2_of_statistics" in row:
        told = f"  R2 {row['r2_of_statistics']:.3f} (statistics), {row['r2_of_coordinates']:.3f} (coordinates)"
    return (
        f"{name:<18} {row['columns']:>4} {row['intrinsic']:>3} {row['embedding']:>3} | {row['answer']:>6} {right:>5} "
        f"{verdict:<13} {row['rank']:>4} {path} | {rivals} | {errors} {row['seconds']:>6.0f}{told}"
    )


def summary(rows: dict[str, Row]) -> list[str]:
    """How many of the collection each way of looking gets right, and how far off it is on the mean."""
    drawn = [row for name, row in rows.items() if name in tasks.BENCHMARK_MANIFOLDS]
    if not drawn:
        return []
    names = {"answer": "discover", "two_nn": "TwoNN", "mle": "MLE", "mom": "MOM", "corr": "Corr", "pca": "PCA"}
    told = [f"{len(drawn)} of the 24 of the collection measured; right against the embedding dimension, mean error:"]
    for key, name in names.items():
        off = [abs(row[key] - row["embedding"]) / row["embedding"] for row in drawn]
        right = sum(round(row[key]) == row["embedding"] for row in drawn)
        own = sum(round(row[key]) == row["intrinsic"] for row in drawn)
        told.append(f"  {name:<9} {right:>2} right, {100 * float(np.mean(off)):>3.0f} % off; {own} the manifold's own")
    silent = [n for n, row in rows.items() if wrong(row) and row["verdict"] == "CONFIDENT"]
    told.append(f"wrong without a warning: {', '.join(silent) or 'none'}")
    return told


def wrong(row: Row) -> bool:
    """Whether the true dimension is known and another was answered."""
    return row["embedding"] is not None and row["answer"] != row["embedding"]


def main() -> None:
    """Print the rows in turn, then the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of rows, by commas")
    parser.add_argument("--out", type=Path, help="JSON file that keeps the rows; those in it are not measured again")
    parser.add_argument("--mnist", type=Path, help="file of MNIST, for one more table")
    parser.add_argument("--quick", action="store_true", help="the smallest table only")
    options = parser.parse_args()
    known, kept = all_cases(options.mnist), Rows.of(options.out)
    wanted = ["linnerud"] if options.quick else options.only.split(",") if options.only else list(known)
    if unknown := [name for name in wanted if name not in known]:
        parser.error(f"--only: no row is called {', '.join(unknown)}. Known are {', '.join(known)}.")
    header = ""
    for name in wanted:
        if name not in kept.found:
            kept.add(name, measure(known[name]))
        row = kept.found[name]
        if header != (header := TABLE_HEADER if row["embedding"] is None else MANIFOLD_HEADER):
            print(header)
        print(line(name, row), flush=True)
    print(*summary({name: kept.found[name] for name in wanted}), sep="\n")
    sys.exit(any(wrong(kept.found[name]) and kept.found[name]["verdict"] == "CONFIDENT" for name in wanted))


if __name__ == "__main__":
    main()
