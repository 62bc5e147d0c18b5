"""Question: what do usual methods find, and how fast, where `isthmus` is asked the same?

Suites, each case a row of benchmarks/measured/comparison.json, from which the tables of docs/comparison.md are made:
count  how many numbers does y need of x: teachers of known rank; PLS by cross-validation, PCA, TwoNN and MLE of x
x      how many dimensions have rows of x: a plane with waves, a flat cloud, a circle; PCA, TwoNN, MLE
span   which two combinations of ten inputs: SIR, SAVE, OPG and MAVE are told that it is two, active subspaces the exact
       gradients besides; distances are sines of the largest angle
cut    how many parameters does a trained network keep at 5 % of relative error on rows apart: singular values of each
       matrix, those of its outputs on data, `compress`

    python benchmarks/comparison.py [--suite SUITE] [--out rows.json] [--quick]
    python benchmarks/comparison.py --tables     # of the rows that there are, as markdown

Seconds are CPU seconds of one core. Ours: effort "quick", one start, ridges .003, .001 and .0003.

Answer (an AMD EPYC, two cores shared with other work, torch 2.13.0 CPU, November 2026; all in docs/comparison.md):
span   2 of 2 combinations each time, nearer than OPG and MAVE without noise, as near with it, fifty times slower
count  4 of 4 ranks right, 3 confident, where cross-validated PLS has 6 to 8 components for 2 to 5
x      2 of 3 right, all doubtful; TwoNN and MLE have the plane that is missed, and hundredths of a second
cut    7197, 2578 and 3785 of 21032 parameters, data-aware SVD 9856, 5632 and 6936
"""

import argparse
import platform
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from torch import nn

import isthmus
from isthmus import tasks
from isthmus.tasks import gradient_covariance
from isthmus.tasks.multi_index import multi_index_map
from measured.inverse_regression import save, sir
from measured.local_regression import local_linear
from measured.rivals import Split, neighbour_estimates
from measured.rows import Row, Rows
from measured.spans import distance

ROWS = Path(__file__).parent / "measured" / "comparison.json"
OURS: dict[str, Any] = {"effort": "quick", "starts": 1, "ridge": (3e-3, 1e-3, 3e-4), "seed": 0}
FOLDS, MOST, TOLERANCE = 5, 8, 0.05
Case = tuple[str, Callable[[], Row]]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and the CPU seconds that it took."""
    began = time.process_time()
    found = call()
    return found, round(time.process_time() - began, 2)


def pls_count(x: np.ndarray, y: np.ndarray) -> int:
    """Least number of components whose cross-validated error is within one standard error of the least."""
    found: list[tuple[float, float]] = []
    for k in range(1, MOST + 1):
        scores = -cross_val_score(PLSRegression(k), x, y, cv=FOLDS, scoring="neg_mean_squared_error")
        found.append((float(scores.mean()), float(scores.std() / np.sqrt(FOLDS))))
    best = min(found)
    return next(k for k, (error, _) in enumerate(found, 1) if error <= best[0] + best[1])


def counted(rank: int, noise: float) -> Row:
    """A teacher of known rank."""
    task = tasks.teacher(rank, d_in=16, d_out=10, latent_dim=7, num_samples=500, noise=noise, seed=rank)
    split = Split.of(task)
    found, seconds = timed(lambda: isthmus.discover(task.x, task.y, **OURS))
    pls, pls_seconds = timed(lambda: pls_count(split.x, split.y))
    near = neighbour_estimates(task.x)
    through = int(min(rank, found.scree.sizes["rank"])) - 1
    forest: Any = RandomForestRegressor(300, random_state=0)
    components: Any = make_pipeline(PCA(rank), LinearRegression())
    return {
        "true": rank, "noise": noise, "ours": found.rank, "verdict": found.verdict.name, "seconds": seconds,
        "pls": pls, "pls_seconds": pls_seconds, "pca": near["pca"], "two_nn": near["two_nn"], "mle": near["mle"],
        "error_ours": float(found.scree["heldout_error"].values[through]),
        "error_pls": split.error(PLSRegression(rank)), "error_pca": split.error(components),
        "error_forest": split.error(forest),
    }  # fmt: skip


def rows_alone(name: str, x: np.ndarray, true: int) -> Row:
    """Rows of x, autoencoded; `true` is the least number of coordinates from which a row can be made again."""
    found, seconds = timed(lambda: isthmus.discover(x, **OURS))
    near, near_seconds = timed(lambda: neighbour_estimates(x))
    return {
        "name": name, "true": true, "ours": found.rank, "verdict": found.verdict.name, "seconds": seconds,
        "pca": near["pca"], "two_nn": near["two_nn"], "mle": near["mle"], "near_seconds": near_seconds,
    }  # fmt: skip


def spanned(noise: float, seed: int) -> Row:
    """Two combinations of ten inputs, one target."""
    options: dict[str, Any] = {"d_in": 10, "num_samples": 400, "seed": seed}
    task = tasks.multi_index(2, noise=noise, **options)
    truth = np.asarray(task.directions)
    found, seconds = timed(lambda: isthmus.discover(task.x, task.y, encoder="linear", **OURS))
    x, y = task.x, task.y
    exact = gradient_covariance(multi_index_map(2, **options), torch.from_numpy(x))
    active = torch.linalg.eigh(exact)[1][:, -2:].T.numpy()
    local, local_seconds = timed(lambda: local_linear(x, y, 2))
    rivals = {"sir": sir(x, y, 2), "save": save(x, y, 2), **local, "active": active}
    return {
        "noise": noise, "seed": seed, "ours_rank": found.rank, "verdict": found.verdict.name, "seconds": seconds,
        "ours": distance(np.asarray(found.directions), truth), "local_seconds": local_seconds,
        **{name: distance(rows, truth) for name, rows in rivals.items()},
    }  # fmt: skip


def trained(seed: int, decay: float) -> tuple[nn.Sequential, torch.Tensor]:
    """A stack trained by Adam with L2, and rows, the last of which it has not seen."""
    task = tasks.teacher(3, d_in=16, d_out=8, latent_dim=5, num_samples=3000, seed=seed)
    x, y = torch.from_numpy(task.x).float(), torch.from_numpy(task.target).float()
    y = (y - y.mean(0)) / y.std(0)
    torch.manual_seed(seed)
    sizes = [(16, 96), (96, 96), (96, 96)]
    layers = [layer for size in sizes for layer in (nn.Linear(*size), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(96, 8))
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=decay)
    for _ in range(1000):
        optimiser.zero_grad()
        (model(x[:1000]) - y[:1000]).square().mean().backward()
        optimiser.step()
    return model.eval(), x


def factored(model: nn.Sequential, x: torch.Tensor, share: float, *, of_data: bool) -> tuple[nn.Sequential, int]:
    """Every matrix in two, its least squares through as many directions as hold a share of its energy on the rows.

    Of the matrix itself, or of what it makes of the data (data-aware); where two are larger than one, it stays.
    """
    made: list[nn.Module] = []
    count, state = 0, x
    for layer in model:
        if not isinstance(layer, nn.Linear):
            made.append(layer)
            state = layer(state)
            continue
        weight, out = layer.weight, state @ layer.weight.T
        u, s, _ = torch.linalg.svd((out - out.mean(0)).T @ (out - out.mean(0)) if of_data else weight @ weight.T)
        k = int((torch.cumsum(s, 0) / s.sum() < share).sum()) + 1
        split = k * sum(weight.shape) < weight.numel()
        p = u[:, :k] if split else torch.eye(len(weight))
        new = nn.Linear(layer.in_features, layer.out_features)
        new.weight.data = p @ p.T @ weight
        # what the cut leaves out is held at its mean; without data that is not known
        mean = out.mean(0) if of_data else torch.zeros(len(weight))
        new.bias.data = layer.bias + mean - p @ p.T @ mean
        made.append(new)
        count += (k * sum(weight.shape) if split else weight.numel()) + len(weight)
        state = layer(state)
    return nn.Sequential(*made), count


def relative_error(new: nn.Module, old: nn.Module, x: torch.Tensor) -> float:
    """|new - old| over the spread of old, on rows."""
    a, b = new(x), old(x)
    return float((a - b).norm() / (b - b.mean(0)).norm())


@torch.no_grad()
def least(model: nn.Sequential, x: torch.Tensor, *, of_data: bool) -> tuple[int, float]:
    """Parameters and error of the smallest that keeps the tolerance on rows 1000 to 2000, measured on the others."""
    before = sum(p.numel() for p in model.parameters())
    found = [(before, 0.0)]
    for share in 1 - np.logspace(-6, -0.5, 60):
        new, count = factored(model, x[:1000], float(share), of_data=of_data)
        if relative_error(new, model, x[1000:2000]) <= TOLERANCE:
            found.append((count, relative_error(new, model, x[2000:])))
    return min(found)


def cut(seed: int, decay: float) -> Row:
    """A network made smaller three ways."""
    model, x = trained(seed, decay)
    small, seconds = timed(lambda: isthmus.compress(model, x[:2000], tolerance=TOLERANCE))
    (aware, aware_error), aware_seconds = timed(lambda: least(model, x, of_data=True))
    (plain, plain_error), _ = timed(lambda: least(model, x, of_data=False))
    with torch.no_grad():
        error = relative_error(small.module, model, x[2000:])
    return {
        "decay": decay, "seed": seed, "before": small.parameters_before, "ours": small.parameters_after,
        "ours_error": error, "seconds": seconds, "aware": aware, "aware_error": aware_error,
        "aware_seconds": aware_seconds, "plain": plain, "plain_error": plain_error,
    }  # fmt: skip


def cases(suite: str) -> Iterator[Case]:
    """Name and call of each case of a suite."""
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 10)) + 0.01 * rng.normal(size=(500, 10))
    if suite == "count":
        for rank, noise in ((2, 0.0), (3, 0.0), (3, 0.2), (5, 0.0)):
            yield f"count {rank} {noise}", lambda rank=rank, noise=noise: counted(rank, noise)
    elif suite == "x":
        yield "x flat", lambda: rows_alone("flat cloud of 3 in 10 columns, 1 % noise", flat, 3)
        plane = tasks.curved_plane(dimension=2, num_columns=10, num_samples=500)
        yield "x plane", lambda: rows_alone("plane of 2 with waves, 10 columns", plane.x, 2)
        yield "x circle", lambda: rows_alone("circle in 2 columns", tasks.circle(num_samples=400).x, 2)
    elif suite == "span":
        for noise, seed in ((0.0, 0), (0.05, 1), (0.2, 2)):
            yield f"span {noise} {seed}", lambda noise=noise, seed=seed: spanned(noise, seed)
    else:
        for decay, seed in ((1e-4, 0), (1e-3, 0), (1e-3, 1)):
            yield f"cut {decay} {seed}", lambda decay=decay, seed=seed: cut(seed, decay)


SUITES = ("span", "count", "x", "cut")
HEADS: dict[str, dict[str, str]] = {
    "count": {"true": "rank", "noise": "noise", "ours": "isthmus", "verdict": "verdict", "pls": "PLS",
              "pca": "PCA of x", "two_nn": "TwoNN of x", "mle": "MLE of x", "error_ours": "error: isthmus",
              "error_pls": "PLS", "error_pca": "PCA", "error_forest": "forest",
              "seconds": "s", "pls_seconds": "s of PLS"},
    "x": {"name": "rows", "true": "coordinates", "ours": "isthmus", "verdict": "verdict", "pca": "PCA",
          "two_nn": "TwoNN", "mle": "MLE", "seconds": "s", "near_seconds": "s of the others"},
    "span": {"noise": "noise", "ours_rank": "isthmus counts", "verdict": "verdict", "ours": "isthmus", "sir": "SIR",
             "save": "SAVE", "opg": "OPG", "mave": "MAVE", "active": "active subspaces", "seconds": "s",
             "local_seconds": "s of OPG and MAVE"},
    "cut": {"decay": "weight decay", "before": "parameters", "ours": "compress", "aware": "data-aware SVD",
            "plain": "SVD", "ours_error": "error: compress", "aware_error": "data-aware", "plain_error": "SVD",
            "seconds": "s", "aware_seconds": "s of data-aware"},
}  # fmt: skip


def tables(rows: Rows) -> Iterator[tuple[str, str]]:
    """Each suite with its rows as a table of markdown."""
    for suite, heads in HEADS.items():
        found = [row for name, row in rows.found.items() if name.split()[0] == suite]
        lines = [f"| {' | '.join(heads.values())} |", f"|{'---|' * len(heads)}"]
        lines += [f"| {' | '.join(shown(row[key]) for key in heads)} |" for row in found]
        yield suite, "\n".join(lines)


def shown(value: object) -> str:
    """A number to three digits, a verdict in small letters."""
    if isinstance(value, float):
        return f"{value:.3g}"
    return value.lower().replace("_", " ") if isinstance(value, str) and value.isupper() else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=SUITES, action="append", help="this one only; several times for several")
    parser.add_argument("--out", type=Path, default=ROWS)
    parser.add_argument("--tables", action="store_true", help="print the tables of the rows that there are")
    parser.add_argument("--quick", action="store_true", help="one case, kept nowhere")
    chosen = parser.parse_args()
    rows = Rows.of(None if chosen.quick else chosen.out)
    if chosen.tables:
        print("\n\n".join(f"{suite}\n\n{table}" for suite, table in tables(rows)))
        return
    for suite in ("cut",) if chosen.quick else chosen.suite or SUITES:
        for name, call in list(cases(suite))[: 1 if chosen.quick else None]:
            if name not in rows.found:
                where = {"machine": platform.processor() or platform.machine(), "torch": torch.__version__}
                rows.add(name, call() | where | {"date": datetime.now(UTC).date().isoformat()})
                print(name, rows.found[name], sep="\n", flush=True)


if __name__ == "__main__":
    main()
