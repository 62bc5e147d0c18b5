"""What discovery computes: trained starts, the objective curve, the scree curve. One function per unit of work."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from isthmus.discovery.factorisation import factorise, joined
from isthmus.discovery.problem import Problem
from isthmus.discovery.rank_starts import narrow_network
from isthmus.discovery.settings import Settings, StartKind
from isthmus.discovery.starts import new_network, start_linear
from isthmus.networks import FullyConnected, jacobians
from isthmus.networks.folding import merge_linear_runs
from isthmus.networks.narrow_runs import narrow_linear_run, widen_linear_run
from isthmus.theory.spectra import spectral_gap_rank
from isthmus.training import FitEvent, FitResult, Limits, Outcome, fit
from isthmus.training.moves import middle_rank, rebalancing, truncate_middle
from isthmus.training.rank_raising import raise_rank
from isthmus.training.solvers import LBFGS, Adam, Solver
from isthmus.training.trials import RankTrials

Result = dict[str, Any]
Callback = Callable[[FitEvent], bool]
JACOBIAN_POINTS = 64
M = TypeVar("M", bound=nn.Module)


def trained(  # noqa: PLR0913
    problem: Problem,
    network: nn.Module,
    ridge: float,
    solver: Solver | tuple[Solver, ...],
    *,
    seconds: float | None,
    checkpoint: Path | None,
    callback: Callback,
) -> FitResult:
    """Train a network on the problem, in place: what every unit of work does."""
    return fit(
        network, problem.x, problem.y, ridge=ridge, loss=problem.loss, solver=solver, sample_weight=problem.weight,
        limits=Limits(seconds=seconds), checkpoint=checkpoint, callback=callback,
    )  # fmt: skip


def trained_start(  # noqa: PLR0913
    problem: Problem,
    settings: Settings,
    *,
    ridge: float,
    number: int,
    seconds: float | None,
    checkpoint: Path | None,
    callback: Callback,
) -> Result:
    """Train start `number` at `ridge` and measure it."""
    kind = settings.starts[number]
    seed = 1000 * settings.seed + number
    network = new_network(problem.d_in, problem.d_out, settings, seed=seed)
    steps, rate = settings.adam_steps, 3e-3
    if kind == StartKind.LINEAR:
        start_linear(network, problem.x, regression_target(problem), settings)
        # begun too early, L-BFGS leaves it with one or two dimensions at a large ridge
        steps, rate = settings.linear_steps, rate / 3
    solver = (
        Adam(steps, rate, moves=(rebalancing,), move_every=20),
        LBFGS(settings.lbfgs_evaluations),
    )
    result = trained(problem, network, ridge, solver, seconds=seconds, checkpoint=checkpoint, callback=callback)
    return measured_connected(problem, network, result) | {"ridge": ridge, "start": number, "kind": str(kind)}


def raised_start(  # noqa: PLR0913
    problem: Problem,
    settings: Settings,
    base: Result,
    *,
    seconds: float | None,
    checkpoint: Path | None,
    callback: Callback,
) -> Result:
    """Try one rank more from a trained start, at its ridge; the start itself where the objective is no lower."""
    network = network_of(problem, settings, base["theta"])
    solver = RankTrials(LBFGS(settings.raise_evaluations), most=1, attempt=raise_rank)
    result = trained(problem, network, base["ridge"], solver, seconds=seconds, checkpoint=checkpoint, callback=callback)
    about = {"ridge": base["ridge"], "start": base["start"], "kind": str(StartKind.RAISED)}
    return measured_connected(problem, network, result) | about


def truncated(  # noqa: PLR0913
    problem: Problem,
    settings: Settings,
    base: Result,
    *,
    rank: int,
    seconds: float | None,
    checkpoint: Path | None,
    callback: Callback,
) -> Result:
    """Truncate the middle matrices of a trained start to `rank` and polish at its ridge."""
    network = network_of(problem, settings, base["theta"])
    truncate_middle(network, rank)
    # as many neurons as the rank: a fifth fewer products, and biases cannot add a direction
    narrow, solver = narrow_linear_run(network, rank), LBFGS(settings.polish_evaluations)
    result = trained(problem, narrow, base["ridge"], solver, seconds=seconds, checkpoint=checkpoint, callback=callback)
    widen_linear_run(narrow, network)
    return measured_connected(problem, network, result) | {"ridge": base["ridge"], "rank": rank}


def refined_halves(  # noqa: PLR0913
    problem: Problem,
    settings: Settings,
    base: Result,
    *,
    rank: int,
    seconds: float | None,
    checkpoint: Path | None,
    callback: Callback,
) -> Result:
    """Cut a trained network through `rank` coordinates and refine both halves, see `refine`."""
    network = network_of(problem, settings, base["theta"])
    narrow = narrowed(network, problem.x, rank, layer=settings.relu_layers + 1)
    result = refine(problem, settings, narrow, base["ridge"], seconds=seconds, checkpoint=checkpoint, callback=callback)
    return measured_connected(problem, narrow, result) | {"rank": rank}


def refine(  # noqa: PLR0913
    problem: Problem,
    settings: Settings,
    network: nn.Module,
    ridge: float,
    *,
    seconds: float | None,
    checkpoint: Path | None,
    callback: Callback,
) -> FitResult:
    """Train at a ridge smaller than this one, in place; back to where it began if the held-out error rose.

    Few or noisy rows are fitted too closely at the smaller ridge. What is given back says how the training ended.
    """
    began, error = flat_parameters(network), problem.heldout_error(network)
    solver = LBFGS(settings.refine_evaluations)
    result = trained(
        problem, network, ridge * settings.refine_ridge, solver,
        seconds=seconds, checkpoint=checkpoint, callback=callback,
    )  # fmt: skip
    if not problem.heldout_error(network) <= error:
        fill(network, began)
    return result


def narrowed(network: FullyConnected, x: Tensor, rank: int, *, layer: int) -> FullyConnected:
    """The network with one linear hidden layer of `rank` neurons where its middle was."""
    halves = factorise(network, x, rank, layer=layer)
    merged = dataclasses.replace(halves, decoder=merge_linear_runs(halves.decoder))
    return joined(merged, dtype=network.weights[0].dtype)


def measured_connected(problem: Problem, network: FullyConnected, result: FitResult) -> Result:
    """`measured` of a fully connected network, whose middle has a rank of its own."""
    return measured(problem, network, result, written=network, activation_rank=middle_rank(network))


def measured(
    problem: Problem, network: nn.Module, result: FitResult, *, written: FullyConnected, activation_rank: int
) -> Result:
    """The numbers of a trained network that the decision needs, with its parameters.

    Args:
        problem: the data.
        network: any.
        result: how its training ended.
        written: the same function, as a fully connected network, for its Jacobians.
        activation_rank: directions that stand out in its middle.
    """
    spectrum = median_jacobian_spectrum(written, problem.x)
    return {
        "theta": flat_parameters(network),
        "objective": result.objective,
        "data_loss": result.data_loss,
        "penalty": result.penalty,
        "stationarity": result.stationarity,
        "outcome": result.outcome.name,
        "gradient_evaluations": result.gradient_evaluations,
        "seconds": result.seconds,
        "train_error": problem.train_error(network),
        "heldout_error": problem.heldout_error(network),
        "jacobian_spectrum": spectrum.tolist(),
        "jacobian_rank": int(spectral_gap_rank(spectrum)),
        "activation_rank": activation_rank,
        **({"heldout_accuracy": problem.heldout_accuracy(network)} if problem.classes else {}),
        "usable": result.outcome not in {Outcome.DIVERGED},
    }


def median_jacobian_spectrum(network: FullyConnected, x: Tensor) -> Tensor:
    """Median over spread data points of the singular values of the network's Jacobian, in float64."""
    points = x[torch.linspace(0, len(x) - 1, min(JACOBIAN_POINTS, len(x))).long()]
    exact = network.rewritten(*network.written_layers()).double()
    return torch.linalg.svdvals(jacobians(exact, points.double())).median(0).values


def flat_parameters(network: nn.Module) -> Tensor:
    """All parameters in one vector, in the order of `network.parameters()`."""
    return torch.cat([p.detach().reshape(-1) for p in network.parameters()])


def network_of(problem: Problem, settings: Settings, theta: Tensor) -> FullyConnected:
    """The network whose parameters are `theta`."""
    return fill(new_network(problem.d_in, problem.d_out, settings, seed=0), theta)


def narrow_network_of(
    problem: Problem, settings: Settings, theta: Tensor, rank: int, *, middle: int = 1
) -> FullyConnected:
    """The network with `middle` linear layers of `rank` neurons whose parameters are `theta`."""
    return fill(narrow_network(problem.d_in, problem.d_out, settings, rank=rank, middle=middle, seed=0), theta)


def fill(network: M, theta: Tensor) -> M:
    """Make `theta`, in the order of `network.parameters()`, its parameters; the network itself."""
    # a copy: vector_to_parameters makes views, and units that run side by side share `theta`
    torch.nn.utils.vector_to_parameters(theta.clone(), network.parameters())
    return network


def regression_target(problem: Problem) -> Tensor:
    """What a linear start regresses on: the targets, or centred class indicators."""
    if problem.y.is_floating_point():
        return problem.y
    indicators = torch.nn.functional.one_hot(problem.y, problem.d_out).float()
    return indicators - indicators.mean(0)
