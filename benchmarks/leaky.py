"""Question: does training of leaky networks reach true critical points, and what do their energies say there?

Prints: stationarity of the small and of the main net, spread of the Hamiltonians and slope of the balancedness law over
depth at critical points, what adaptive steps gain, and the time of all diagnostics of a long and wide network.

    python benchmarks/leaky.py [--quick] [--only small relu main hamiltonian spread adaptive lt diagnostics]
    python benchmarks/leaky.py --only paper recipe [--lt 4 10 22] [--folder FOLDER] [--device cuda] [--seconds S]

Answer (one core of a busy Intel Xeon, torch 2.13.0 CPU, November 2026). Small net: stationarity 8.5e-8, objective
0.35348 after 901 evaluations, 8.1 CPU s. Main net: 7.8e-7, 0.34776 after 2,674 evaluations, 109 CPU s. Narrowed to
the relu itself the small net ends at 0.35016 after 3,059 evaluations, 27 CPU s; with the best slopes at the 249 of
16,000 entries on kinks its stationarity is 9.0e-4, that of the derivative alone 0.11. Exponents of the spread in
depth (20 to 160): mixed 0.99, same-level 1.03, 4-point 1.98; 4-point spread at L = 80 0.0035 (stationarity 8.8e-7, 37
CPU s). Balancedness slope at L = 20, 40, 80, 160: 1.578, 1.736, 1.854, 1.922, with what the smoothed relu adds to the
biases (0.841, 1.005, 1.103, 1.162 without). The rank 2 of a teacher is read at Lt = 11.25 (1.91, 2.01, 1.86; ridge
0.05) in 33 CPU s, the trial of one direction fewer included.

All diagnostics of L = 50, w = 200, N = 10,000, once more: 7.4 CPU s, 1.60 times the four Gram products that they need
and 2.07 times the three without the same level. Steps at Lt = 10, at a stationarity of 1e-5: 25 adaptive layers (rho
Lt 0.15 to 0.73) from a cold start end at objective 0.43880 after 3,833 evaluations, 15 CPU s; 100 equal ones that begin
there at 0.43807. From there on one branch, three times to and fro: 0.437799 and 0.437919, 0.437909 and 0.437916,
0.437932 and 0.437916, so adaptive layers are 1.2e-4, then 7e-6 and 1.6e-5 from four times as many equal ones; as few
equal ones are 5.4e-3 away, at 0.43248. 200 equal ones end at 0.43843, so the limit is about 0.4389. Minima lie close to
each other here: with other numbers of rounds adaptive layers ended 6e-6 to 1.7e-4 from the equal ones.

Size of the papers, float32. Lt = 10: the preconditioned solver, by all outputs of 100 rows, is at objective 0.355 after
497 evaluations, 0.212 after 1,361, 0.2038 after 1,743, and from there, its pairs forgotten, at 0.1940 after 1,249 more.
The recipe (`--only recipe`, 3,602 CPU s of a newer Xeon for 28,898 evaluations) is at 1.1075 after 19,499, at 1.0805
after 20,714 and ends at 1.0803 after 30,000, 5 times as high as the solver after 1,743, with a stationarity of 2.9 and
singular values in the middle layer that fall without a step (18.7, 18.0, 17.4, 17.0, 16.5, 14.0, 12.9, 12.5, ...).
Plain L-BFGS had 0.846 after 728. At 0.1940 the stationarity is 3.9, far from the goal of 1e-4, and the middle weights
have six singular values (18.5 to 17.0, 14.1, then 0.02). Trained anew, 0.2055 after 1,405, they are 19.1, 18.5, 18.4,
18.1, 17.4, 14.5, 0.06, and the sixth carries the mean of the activations (cosine 0.989): without that direction they
are 19.1 to 17.4 and 0.07, rank 5. The activations still hold a sixth one that the weights let fade (0.39 of the first
in layer 20, 0.31 in 25, 0.10 in 40).

Lt = 22, by combinations of the outputs of all rows: 0.2857 after 1,487, 0.2355 after 4,674 (2,400 CPU s), stationarity
20. Rank 5: the middle weights without the direction of the mean (cosine 0.996) have 30.7 to 29.1 and 0.04, the centred
activations 1, 0.62, 0.58, 0.54, 0.48, 0.001 over the first, with such a step from layer 10 to 45. Lt = 4: 0.2181 after
1,092, 0.2019 after 4,507 (2,400 CPU s), stationarity 2.5; without the mean 12.1 to 10.5, 2.0, 0.4. The recipe ends
after 30,000 evaluations (about 3,800 CPU s) at 3.8649 for Lt = 22, stationarity 4.0, and at 0.32678 for Lt = 4, 3.9,
with no step in its singular values in either (34.2 to 31.7; 12.3, 11.5, 11.2, 10.7, 9.9, 5.4, 4.9, 4.2): the solver is
below it in a twentieth (14 times) and in a twenty-seventh (by a third) of its evaluations.

Seconds to pass the recipe's end, one core of an AMD EPYC without AVX-512: about 160 (Lt = 10, after 265 evaluations),
200 (Lt = 4, 287) and 200 (Lt = 22, 352); after 300 s they are at 0.353, 0.277 and 2.18. On an NVIDIA H100 (--device
cuda, Lt = 10): 0.251 after 10 s, below the recipe already, 0.204 after 20, 0.1942 after 30, 0.1897 after 45 s and 3,249
evaluations, stationarity 4.6, rank 5 (18.2 to 17.0 and 0.04 without the mean). On an NVIDIA H200, with the model of the
curvature as graphs: 1,591 evaluations in 10 s (6.3 ms for the 13.7 of the H100), objective 0.202.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from isthmus import LeakyResNet, effective_depth, fit, tasks, walk
from isthmus.diagnostics import kink_stationarity, leaky_diagnosis, leaky_path
from isthmus.theory import alignment_changes, balancedness_slope, features
from isthmus.training import FitEvent
from isthmus.training.solvers.adaptive_steps import AdaptiveSteps, resampled
from isthmus.training.solvers.preconditioned import TO_RELU, PreconditionedLBFGS
from isthmus.training.solvers.schedule import papers_schedule
from isthmus.training.solvers.solver import Solver
from training_tables.timing import clock_of

TOLD_EVERY = 150.0  # CPU seconds between two lines of a long part


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks of the long parts."""

    quick: bool
    folder: Path | None
    device: str
    seconds: float | None


def data(rank: int, dimension: int, num_samples: int, *, outputs: int | None = None) -> tuple[Tensor, Tensor]:
    """A random teacher with standardised columns."""
    task = tasks.teacher(rank, d_in=dimension, d_out=outputs or dimension, num_samples=num_samples, seed=0)
    x, y = torch.from_numpy(task.x), torch.from_numpy(task.target)
    return (x - x.mean(0)) / x.std(0), (y - y.mean(0)) / y.std(0)


def network(dimension: int, width: int, depth: int, leak: float, **steps: str | Tensor) -> LeakyResNet:
    """A float64 network with equal dimensions on both sides."""
    return LeakyResNet(
        dimension, dimension, width=width, depth=depth, effective_depth=leak, seed=0, dtype=torch.float64,
        steps=steps.get("steps", "equidistant"),
    )  # fmt: skip


def stationarity(name: str, goal: float, leaky: LeakyResNet, x: Tensor, y: Tensor, ridge: float, last: float) -> None:
    """Train to the goal and say how far it came."""
    began = time.process_time()
    solver = PreconditionedLBFGS(smoothing=(0.1, last), tolerance=goal, evaluations=30_000)
    found = fit(leaky, x, y, ridge=ridge, solver=solver)
    worst = float(leaky_path(leaky, x, y, ridge=ridge).stationarity.max())
    print(
        f"{name:>10}: stationarity {found.stationarity:.1e} (worst layer {worst:.1e}), "
        f"objective {found.objective:.5f}, {found.gradient_evaluations} evaluations, "
        f"{time.process_time() - began:.1f} CPU s",
        flush=True,
    )


def small(quick: bool) -> None:
    """Width 20, 20 layers, 40 samples, rank 2 in 6 dimensions, Lt = 5."""
    stationarity("small", 1e-2 if quick else 1e-7, network(6, 20, 20, 5.0), *data(2, 6, 40), 0.02, 0.03)


def relu(quick: bool) -> None:
    """The small net, its smoothed relu narrowed in stages to the relu itself, and how critical its kinks leave it."""
    leaky, (x, y) = network(6, 20, 20, 5.0), data(2, 6, 40)
    solver = PreconditionedLBFGS(smoothing=TO_RELU, tolerance=1e-3, evaluations=200 if quick else 6000)
    began = time.process_time()
    found = fit(leaky, x, y, ridge=0.02, solver=solver)
    took = time.process_time() - began
    kinks = kink_stationarity(leaky, x, y, ridge=0.02, width=3 * TO_RELU[-2])
    print(
        f"{'relu':>10}: smoothing {float(leaky.smoothing):g}, stationarity {found.stationarity:.1e}, objective "
        f"{found.objective:.5f}, {found.gradient_evaluations} evaluations, {found.outcome.name}, "
        f"{took:.1f} CPU s; with the best slopes at {kinks.kinks} of {kinks.entries} entries {kinks.generalised:.1e}",
        flush=True,
    )


def main_net(quick: bool) -> None:
    """Width 40, 30 layers, 100 samples, rank 3 in 10 dimensions, Lt = 6."""
    if not quick:
        stationarity("main", 1e-6, network(10, 40, 30, 6.0), *data(3, 10, 100), 0.01, 0.03)


def refined(leaky: LeakyResNet) -> LeakyResNet:
    """Twice as many layers, each weight used twice: the start of the next depth."""
    finer = network(leaky.d_in, leaky.width, 2 * leaky.depth, leaky.effective_depth)
    with torch.no_grad():
        finer.weights.copy_(leaky.weights.repeat_interleave(2, 0))
        finer.embedding.copy_(leaky.embedding)
        finer.unembedding.copy_(leaky.unembedding)
    return finer


def hamiltonian(quick: bool) -> None:
    """Relative spread of three forms over the layers, and the slope of the balancedness law, while depth doubles."""
    x, y = data(2, 6, 40)
    leaky, ridge = network(6, 20, 10 if quick else 20, 5.0), 0.02
    solver = PreconditionedLBFGS(smoothing=(0.1,), tolerance=1e-3 if quick else 1e-7, evaluations=20_000)
    print(
        "hamiltonian: depth stationarity | spread: mixed same-level 4-point | rank | balancedness slope, biases alone"
    )
    rows: list[list[float]] = []
    for round_number in range(2 if quick else 4):
        leaky = refined(leaky) if round_number else leaky
        found = fit(leaky, x, y, ridge=ridge, solver=solver)
        table = leaky_diagnosis(leaky, x, y, ridge=ridge)
        forms = [table[f"hamiltonian{name}"].to_numpy() for name in ("_mixed", "_same_level", "")]
        spreads = [float(np.ptp(h) / abs(np.median(h))) for h in forms]
        path = leaky_path(leaky, x, y, ridge=ridge)
        added = alignment_changes(
            path.activations, path.momenta, path.weights, path.steps, smoothing=float(leaky.smoothing)
        )
        slope, of_biases = (
            balancedness_slope(path.weights, path.steps, effective_depth=leaky.effective_depth, alignment=alignment)
            for alignment in (added, None)
        )
        rows.append([leaky.depth, *spreads])
        print(
            f"{'':>11}  {leaky.depth:>5} {found.stationarity:>12.1e} | {spreads[0]:>13.4f} {spreads[1]:>10.4f} "
            f"{spreads[2]:>7.4f} | {float(table.rank_from_hamiltonian.median()):>4.2f} | {slope:.3f}, {of_biases:.3f}",
            flush=True,
        )
    logs = np.log(np.array(rows))
    mixed, same, averaged = (-np.polyfit(logs[:, 0], logs[:, i], 1)[0] for i in (1, 2, 3))
    print(f"{'':>11}  exponents in depth: mixed {mixed:.2f}, same-level {same:.2f}, 4-point {averaged:.2f}")


def spread(quick: bool) -> None:
    """Relative spread of the 4-point Hamiltonian of the small net at L = 80."""
    (x, y), depth = data(2, 6, 40), 10 if quick else 80
    leaky, began = network(6, 20, depth, 5.0), time.process_time()
    solver = PreconditionedLBFGS(smoothing=(0.1,), tolerance=1e-2 if quick else 1e-6, evaluations=20_000)
    found = fit(leaky, x, y, ridge=0.02, solver=solver)
    values = leaky_diagnosis(leaky, x, y, ridge=0.02)["hamiltonian"].to_numpy()
    print(
        f"{'spread':>10}: L={depth}, 4-point spread {float(np.ptp(values) / abs(np.median(values))):.4f}, stationarity "
        f"{found.stationarity:.1e}, {time.process_time() - began:.0f} CPU s",
        flush=True,
    )


def lt(quick: bool) -> None:
    """The Lt at which Hamiltonian, cost of identity and objective agree on the rank of a teacher of rank 2."""
    x, y = data(2, 5, 30, outputs=4)
    leaky = LeakyResNet(5, 4, width=12, depth=20, effective_depth=5.0, seed=0, dtype=torch.float64)
    began = time.process_time()
    found = effective_depth(leaky, x, y, ridge=0.05, most=6.0 if quick else 18.0)
    print(f"{'lt':>10}: {found.reason} {time.process_time() - began:.0f} CPU s", flush=True)


def resampled_to(source: LeakyResNet, depth: int, steps: Tensor | None = None) -> LeakyResNet:
    """The weights of a network as a function of time, read at other steps: the start there of the same branch."""
    there = network(source.d_in, source.width, depth, source.effective_depth)
    if steps is not None:
        there.steps.copy_(steps)
    with torch.no_grad():
        there.weights.copy_(resampled(source.weights, source.steps.double(), there.steps.double()))
        there.embedding.copy_(source.embedding)
        there.unembedding.copy_(source.unembedding)
    return there


def adaptive(quick: bool) -> None:
    """Objective of few adaptive layers against many equal ones on one branch; Lt = 10, rank 2.

    The limit of many layers is that of equal ones with an error in 1 / depth: twice the deepest less the one before.
    """
    x, y = data(2, 6, 40)
    few, many, evaluations = (12, 24, 100) if quick else (25, 100, 8000)
    cold = PreconditionedLBFGS(smoothing=(0.1, 0.03), tolerance=1e-5, evaluations=evaluations)
    warm = PreconditionedLBFGS(smoothing=(0.03,), tolerance=1e-5, evaluations=evaluations)

    def trained(name: str, leaky: LeakyResNet, solver: PreconditionedLBFGS | AdaptiveSteps) -> LeakyResNet:
        began = time.process_time()
        found = fit(leaky, x, y, ridge=0.02, solver=solver)
        leak = leaky.steps * leaky.effective_depth
        print(
            f"{'adaptive':>10}: {leaky.depth:>3} {name}: objective {found.objective:.6f}, "
            f"stationarity {found.stationarity:.1e}, {found.gradient_evaluations} evaluations, "
            f"rho Lt {float(leak.min()):.2f} to {float(leak.max()):.2f}, {time.process_time() - began:.0f} CPU s",
            flush=True,
        )
        return leaky

    shallow = trained("adaptive, cold", network(6, 20, few, 10.0, steps="adaptive"), AdaptiveSteps(cold))
    deep = trained("equal from these", resampled_to(shallow, many), warm)
    for _ in range(1 if quick else 3):  # there and back until both are on the same branch
        there = network(6, 20, few, 10.0, steps="adaptive")
        there.load_state_dict(resampled_to(deep, few, shallow.steps).state_dict())
        shallow = trained("adaptive from those", there, AdaptiveSteps(warm))
        deep = trained("equal from these", resampled_to(shallow, many), warm)
    trained("equal from those", resampled_to(deep, few), warm)
    if not quick:
        trained("equal from those", resampled_to(deep, 2 * many), warm)


def diagnostics(quick: bool) -> None:
    """Time of all diagnostics against the float64 Gram products that they need.

    S^T S, S^T A and S^T B of the layer above serve the costs of identity and the mixed Hamiltonian, S^T B of the level
    itself the 4-point one: four in all. The ratio to the first three is printed too.
    """
    depth, width, num_samples = (10, 50, 1000) if quick else (50, 200, 10_000)
    leaky = network(20, width, depth, 6.0)
    x, y = (torch.randn(num_samples, 20, dtype=torch.float64) for _ in range(2))
    with torch.no_grad():
        stream = [s.activation for s in leaky.layer_states(x)[:-1]]

    def products(count: int) -> None:
        for a in stream[:-1]:
            S = features(a)
            torch.mm(S.t(), S)
            for _ in range(count - 1):
                torch.mm(S.t(), a)

    calls: dict[str, Callable[[], object]] = {
        "diagnostics": lambda: leaky_diagnosis(leaky, x, y, ridge=0.01),
        "three": partial(products, 3),
        "four": partial(products, 4),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a random network is far from critical
        for _ in range(3):
            for name, call in calls.items():
                began = time.process_time()
                call()
                times[name].append(time.process_time() - began)
    took, three, four = (float(np.median(times[name])) for name in calls)
    print(
        f"diagnostics: L={depth}, w={width}, N={num_samples}: {took:.2f} CPU s, {took / four:.2f} x the four Gram "
        f"products ({four:.2f} s), {took / three:.2f} x three of them"
    )


def at_paper_size(name: str, leak: float, asked: Asked, solver: Solver | tuple[Solver, ...], seconds: float) -> None:
    """Width 200, 50 layers, 1000 samples, 20 -> 5 -> 20, ridge 0.002, float32: train, tell how far, read the rank."""
    width, depth, num_samples = (30, 8, 100) if asked.quick else (200, 50, 1000)
    x, y = (part.float() for part in data(5, 20, num_samples))
    leaky = LeakyResNet(20, 20, width=width, depth=depth, effective_depth=leak, seed=0)
    clock, every = clock_of(asked.device), TOLD_EVERY if asked.device == "cpu" else TOLD_EVERY / 15
    began, told, seconds = clock(), -math.inf, asked.seconds or seconds

    def tell(event: FitEvent) -> bool:
        nonlocal told
        spent = clock() - began
        if spent > told + every:
            told = spent
            print(
                f"{name:>10}: Lt = {leak:g}, {spent:5.0f} {'CPU ' * (asked.device == 'cpu')}s, {event.evaluations} "
                f"evaluations, objective {event.objective:.5f}",
                flush=True,
            )
        return spent > seconds

    checkpoint = None if asked.folder is None else asked.folder / f"{name}-{leak:g}.pt"
    found = fit(leaky, x, y, ridge=0.002, solver=solver, callback=tell, checkpoint=checkpoint, device=asked.device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # far from critical where the time was up
        table = leaky_diagnosis(leaky.double(), x.double(), y.double(), ridge=0.002)
    with torch.no_grad():
        stream = walk(leaky, x.double())[depth // 2].activation
    # the mean is carried by a direction of the weights of its own, which is no dimension of the data
    mean = stream.mean(0) / stream.mean(0).norm()
    centred = torch.linalg.svdvals(stream - stream.mean(0))
    aside = torch.eye(width, dtype=torch.float64) - torch.outer(mean, mean)
    values = torch.linalg.svdvals(aside @ leaky.weights.detach()[depth // 2, :, :width] @ aside)
    print(
        f"{name:>10}: Lt = {leak:g}, {found.outcome.name}, {found.gradient_evaluations} evaluations, objective "
        f"{found.objective:.5f}, stationarity {found.stationarity:.1e}; rank by the Hamiltonian "
        f"{float(table.rank_from_hamiltonian.median()):.2f}, least cost of identity "
        f"{float(table.cost_of_identity.min()):.2f}; middle layer: singular values of the weights without the mean, "
        + " ".join(f"{v:.2f}" for v in values[:8].tolist())
        + ", of the centred activations over the first, "
        + " ".join(f"{v:.4f}" for v in (centred[:8] / centred[0]).tolist()),
        flush=True,
    )


def paper(leak: float, asked: Asked) -> None:
    """The preconditioned solver for 40 CPU minutes."""
    memory = 0 if asked.quick else PreconditionedLBFGS().memory
    at_paper_size("paper", leak, asked, PreconditionedLBFGS(1_000_000, memory=memory), 2.0 if asked.quick else 2400.0)


def recipe(leak: float, asked: Asked) -> None:
    """The recipe of the papers, Adam and then gradient descent."""
    steps = (20, 10) if asked.quick else (20_000, 10_000)
    solver = papers_schedule(*steps)
    at_paper_size("recipe", leak, asked, solver, math.inf)


PARTS = {
    "small": small, "relu": relu, "main": main_net, "hamiltonian": hamiltonian, "spread": spread, "adaptive": adaptive,
    "lt": lt, "diagnostics": diagnostics,
}  # fmt: skip
LONG = {"paper": paper, "recipe": recipe}


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes and loose goals: whether it runs")
    parser.add_argument(
        "--only", nargs="+", choices=[*PARTS, *LONG], default=list(PARTS),
        help="parts to run; all but paper (40 CPU minutes for each Lt) and recipe (two hours), unless given",
    )  # fmt: skip
    parser.add_argument("--lt", nargs="+", type=float, default=[4.0, 10.0, 22.0], help="Lt of paper and recipe")
    parser.add_argument("--folder", type=Path, help="keeps checkpoints of paper and recipe, which go on from there")
    parser.add_argument(
        "--device", default="cpu", help="where paper and recipe are trained; seconds by the clock there"
    )
    parser.add_argument("--seconds", type=float, help="how long each of paper and recipe may train")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    asked = Asked(arguments.quick, arguments.folder, arguments.device, arguments.seconds)
    for name in arguments.only:
        if name in PARTS:
            PARTS[name](asked.quick)
        else:
            for leak in [2.0] if asked.quick else arguments.lt:
                LONG[name](leak, asked)


if __name__ == "__main__":
    main()
