"""Learning a hidden symmetry: coordinates in the middle of the network are the two summary statistics (figure 6).

The task and its closed recursion: `tasks.symmetry`. Paths of samples through layers: `plots.planes`.
"""

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsRegressor

from isthmus import tasks
from isthmus.discovery.data.scaling import Scaling, Standardiser
from isthmus.figures.claims import Claim, unlearned
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.panels import Curve, Frame, panel
from isthmus.figures.workshop import FinishedTraining, Workshop
from isthmus.networks import walk
from isthmus.reports.picture import Picture
from isthmus.sweeps import Plan

RANK, STEP = 2, 0.02
TRAJECTORIES = 12
NEIGHBOURS = 8
LEARNED = 0.1  # of the variance: a data loss above it says that the task was not learned
ENTRIES = 0.01  # standard deviation of the entries of the noise E, which breaks the symmetry


@dataclass(frozen=True, slots=True)
class SymmetrySizes:
    """Numbers of a preset.

    Attributes:
        dimension: of v.
        num_steps: losses T.
        num_samples: starting points.
        depth: L.
        width: of every hidden layer.
        lam: lambda of the paper; the ridge is lambda / L.
        evaluations: gradients.
        noisy_starts: with the noise E, of which the claims take the mean and the spread.
    """

    dimension: int
    num_steps: int
    num_samples: int
    depth: int
    width: int
    lam: float
    evaluations: int
    noisy_starts: int


PRESETS = {
    Preset.PAPER: SymmetrySizes(30, 30, 3000, 25, 200, 0.0002, 10_000, 3),
    Preset.QUICK: SymmetrySizes(10, 10, 600, 8, 30, 0.01, 2000, 4),
    Preset.TINY: SymmetrySizes(4, 4, 60, 4, 8, 0.01, 120, 2),
}


def plan(preset: Preset) -> FigurePlan[SymmetrySizes]:
    """Losses along gradient descent from v (FC-51; dimension, steps, step size and samples are lost, ours)."""
    sizes = PRESETS[preset]
    task = {"name": "gradient_descent_symmetry", "dimension": sizes.dimension, "num_steps": sizes.num_steps,
            "num_samples": sizes.num_samples, "step_size": STEP}  # fmt: skip
    network, fit = {"width": sizes.width}, {"ridge": sizes.lam / sizes.depth, "evaluations": sizes.evaluations}
    exact = Plan(task, network, fit, grid={"depth": [sizes.depth]}, name="symmetry")
    starts = {"depth": [sizes.depth], "seed": list(range(sizes.noisy_starts))}
    noisy = Plan({**task, "noise": ENTRIES}, network, fit, grid=starts, name="symmetry-noisy")
    return FigurePlan(sizes, {"descent": exact, "noisy": noisy})


def compute(plan: FigurePlan[SymmetrySizes], workshop: Workshop) -> xr.Dataset:
    """Learned coordinates and true statistics of the samples, trajectories in both, how well one gives the other."""
    sizes = plan.sizes
    [run] = workshop.trained(plan.sweeps["descent"])
    made, statistics = _task(sizes, noise=0.0)
    scaler = Standardiser.of(made.x, scaling=Scaling.COLUMN)
    middle = _Middle(run, scaler.apply(made.x))
    learned = middle.coordinates(scaler.apply(made.x))
    paths = descents(made.x[:TRAJECTORIES], signal(made.x, statistics[:, 0]), sizes.num_steps)
    moved = np.stack([middle.coordinates(scaler.apply(place)) for place in paths], 1)
    numbers = {
        "lost": run.number("data_loss"),
        "dimensions": float(run.table()["dimension_activation"].isel(layer=slice(1, -1)).min()),
        "to_statistics": explained(learned, statistics),
        "from_statistics": explained(statistics, learned),
        "crossings": crossings(moved),
    }
    data = xr.Dataset({name: ((), value) for name, value in numbers.items()})
    noisy, true = _task(sizes, noise=ENTRIES)
    found = [
        _Middle(noisy_run, scaler.apply(noisy.x)).coordinates(scaler.apply(noisy.x))
        for noisy_run in workshop.trained(plan.sweeps["noisy"])
    ]
    data["noisy_to_statistics"] = ("noisy_start", [explained(coordinates, true) for coordinates in found])
    data["noisy_from_statistics"] = ("noisy_start", [explained(true, coordinates) for coordinates in found])
    data["learned"] = (("sample", "axis"), learned[:500])
    data["statistics"] = (("sample", "axis"), statistics[:500])
    return data.assign(paths=(("start", "step", "axis"), moved))


def _task(sizes: SymmetrySizes, *, noise: float) -> tuple[tasks.Task, np.ndarray]:
    """The task with its true statistics."""
    made = tasks.gradient_descent_symmetry(
        dimension=sizes.dimension, num_steps=sizes.num_steps, num_samples=sizes.num_samples, step_size=STEP,
        noise=noise, seed=0,
    )  # fmt: skip
    assert made.latent is not None
    return made, made.latent


class _Middle:
    """The two principal components of the activations of the middle layer."""

    def __init__(self, run: FinishedTraining, x: np.ndarray) -> None:
        self.network = run.connected().double()
        rows = self._activations(x)
        self.centre = rows.mean(0)
        self.axes = np.linalg.svd(rows - self.centre, full_matrices=False)[2][:RANK]

    def _activations(self, x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            states = walk(self.network, torch.from_numpy(x))
        return states[self.network.depth // 2 - 1].activation.numpy()

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """Of samples as rows, scaled."""
        return (self._activations(x) - self.centre) @ self.axes.T


def signal(x: np.ndarray, aligned: np.ndarray) -> np.ndarray:
    """The unit vector w with (w . x)^2 = aligned on every row, up to sign: the solution of a linear system in w w^T."""
    products = np.einsum("ni,nj->nij", x, x).reshape(len(x), -1)
    square = np.linalg.lstsq(products, aligned, rcond=None)[0].reshape(x.shape[1], -1)
    values, vectors = np.linalg.eigh((square + square.T) / 2)
    assert abs(values[-1] - 1) < 1e-6
    return vectors[:, -1]


def descents(v: np.ndarray, w: np.ndarray, num_steps: int) -> list[np.ndarray]:
    """The places of gradient descent on |v v^T - w w^T|^2 from each row of v, start included."""
    found = [v]
    for _ in range(num_steps):
        v = v - 4 * STEP * (v * (v**2).sum(1, keepdims=True) - (v @ w)[:, None] * w)
        found.append(v)
    return found


def explained(known: np.ndarray, sought: np.ndarray) -> float:
    """Share of the variance of `sought`, column by column, that neighbours in `known` predict out of sample."""
    known = known / known.std(0)
    guess = cross_val_predict(KNeighborsRegressor(NEIGHBOURS, weights="distance"), known, sought, cv=5)
    return float(np.mean(1 - ((guess - sought) ** 2).mean(0) / sought.var(0)))


def crossings(paths: np.ndarray) -> float:
    """Share of the pairs of paths (start, step, 2) of which two segments cross."""
    begin, end = paths[:, :-1], paths[:, 1:]

    def side(i: int, j: int) -> np.ndarray:
        """On which side of each segment of path i lie both ends of each segment of path j: the product of the signs."""
        along = (end[i] - begin[i])[:, None]
        first, second = begin[j][None] - begin[i][:, None], end[j][None] - begin[i][:, None]
        turns = [along[..., 0] * to[..., 1] - along[..., 1] * to[..., 0] for to in (first, second)]
        return np.sign(turns[0]) * np.sign(turns[1])

    pairs = [(i, j) for i in range(len(paths)) for j in range(i)]
    crossed = [bool(((side(i, j) < 0) & (side(j, i).T < 0)).any()) for i, j in pairs]
    return float(np.mean(crossed))


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """Statistics against learned coordinates, and the trajectories in these."""
    a, b = data["statistics"].values.T
    u, v = data["learned"].values.T
    low = a < np.quantile(a, 1 / 3)
    high = a > np.quantile(a, 2 / 3)
    groups = (("least third", low), ("middle third", ~low & ~high), ("largest third", high))
    paths = [Curve("", path[:, 0], path[:, 1], "both", i % 4) for i, path in enumerate(data["paths"].values)]
    return (
        panel(
            "symmetry-coordinates",
            "Samples in the two principal components of the middle layer, by the true statistic a² = (w . v)².",
            [Curve(f"{name} of a²", u[there], v[there], "points") for name, there in groups],
            Frame("learned coordinate 1", "learned coordinate 2"),
        ),
        panel(
            "symmetry-statistics",
            "The same samples in the true statistics a² and b² = |v|² - a².",
            [Curve(f"{name} of a²", a[there], b[there], "points") for name, there in groups],
            Frame("a²", "b²"),
        ),
        panel(
            "symmetry-trajectories",
            "Gradient descents from a dozen starts in the learned coordinates: where these are statistics of the "
            "descent, two descents cannot cross.",
            paths,
            Frame("learned coordinate 1", "learned coordinate 2"),
        ),
    )


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """Two dimensions, the same information both ways, no crossings."""
    doubt = unlearned(float(data["lost"]), most=LEARNED)
    return (
        Claim(
            "The hidden representations are two-dimensional.", "Jacot 2023b, Figure 2",
            "least gap of the centred activations over the hidden layers", float(data["dimensions"]), least=RANK,
            most=RANK, doubt=doubt,
        ),
        Claim(
            "The learned coordinates determine the summary statistics.", "Jacot 2023b, Figure 2",
            "share of their variance that neighbours predict", float(data["to_statistics"]), least=0.9, doubt=doubt,
        ),
        Claim(
            "The summary statistics determine the learned coordinates.", "Jacot 2023b, Figure 2",
            "share of their variance that neighbours predict", float(data["from_statistics"]), least=0.9, doubt=doubt,
        ),
        Claim(
            "Descents do not cross in the learned coordinates.", "Jacot 2023b, Figure 2", "share of pairs that cross",
            float(data["crossings"]), most=0.05, doubt=doubt,
        ),
        Claim.over_starts(
            "With noise in the matrix the coordinates still determine the statistics.", "Jacot 2023b, Figure 2",
            f"the same at entries of {ENTRIES}", data["noisy_to_statistics"].values.tolist(), least=0.9, doubt=doubt,
        ),
        Claim.over_starts(
            "And the statistics the coordinates.", "Jacot 2023b, Figure 2", "the same the other way",
            data["noisy_from_statistics"].values.tolist(), least=0.9, doubt=doubt,
        ),
    )  # fmt: skip


FIGURE = PaperFigure(
    6,
    "symmetry",
    "Symmetry learning",
    "Jacot 2023b, Figure 2",
    "Losses along gradient descent on |v v^T - w w^T|^2, each of unit variance; dimension, steps, step size and "
    "samples are ours, the paper's are lost.",
    plan,
    compute,
    draw,
    verdict,
)
