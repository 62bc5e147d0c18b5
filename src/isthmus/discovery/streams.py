"""What discovery computes with residual networks: trained starts, waists of every rank, refined halves.

The stream of a trained start is led through its r leading principal directions in the middle layer and trained on; the
classes are nested in r, as those of rank-r matrices are. Fully connected networks: `curves`.
"""

from pathlib import Path

import torch
from torch import Tensor

from isthmus.discovery.curves import (
    Callback,
    Result,
    fill,
    flat_parameters,
    measured,
    refine,
    regression_target,
    trained,
)
from isthmus.discovery.halves import principal_axes
from isthmus.discovery.problem import Problem
from isthmus.discovery.settings import NetworkKind, Settings, StartKind
from isthmus.discovery.starts import LINEAR_START_NOISE, reduced_rank_map
from isthmus.networks import LeakyResNet, ResNet, Waist, as_fully_connected, walk
from isthmus.training import FitResult
from isthmus.training.solvers import LBFGS, Adam

Stream = LeakyResNet | ResNet
RATES = {NetworkKind.LEAKY: 2e-2, NetworkKind.RESNET: 3e-3}  # of Adam; leaky weights are Lt times as large
VISIBLE = 0.1  # share of the largest singular value of the middle stream above which a direction counts


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
    kind, rate = settings.starts[number], RATES[NetworkKind(settings.network)]
    network = new_stream(problem.d_in, problem.d_out, settings, seed=1000 * settings.seed + number)
    if kind == StartKind.LINEAR:
        start_linear(network, problem.x, regression_target(problem))
        rate /= 3
    solvers = (Adam(settings.adam_steps, rate), LBFGS(settings.lbfgs_evaluations))
    end = trained(problem, network, ridge, solvers, seconds=seconds, checkpoint=checkpoint, callback=callback)
    return _measured(problem, settings, network, end) | {"ridge": ridge, "start": number, "kind": str(kind)}


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
    """Give a trained start a waist of `rank` dimensions and polish at its ridge."""
    network = network_of(problem, settings, base)
    network.narrow(waist_of(network, problem.x, rank, layer=waist_layer(settings)))
    solver = LBFGS(settings.polish_evaluations)
    end = trained(problem, network, base["ridge"], solver, seconds=seconds, checkpoint=checkpoint, callback=callback)
    return _measured(problem, settings, network, end) | {"ridge": base["ridge"], "rank": rank}


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
    """Refine both sides of a waist, see `curves.refine`."""
    network = network_of(problem, settings, base)
    end = refine(problem, settings, network, base["ridge"], seconds=seconds, checkpoint=checkpoint, callback=callback)
    return _measured(problem, settings, network, end) | {"rank": rank}


def new_stream(d_in: int, d_out: int, settings: Settings, *, seed: int) -> Stream:
    """An untrained network with learned maps; a leaky one steps exponentially, so that any depth goes."""
    width = stream_width(d_in, d_out, settings)
    if settings.network == NetworkKind.LEAKY:
        return LeakyResNet(
            d_in, d_out, width=width, depth=settings.stream_layers, effective_depth=settings.effective_depth,
            maps="learned", scheme="exponential", seed=seed, dtype=torch.float32,
        )  # fmt: skip
    return ResNet(d_in, d_out, width=width, depth=settings.stream_layers, block_depth=1, seed=seed, dtype=torch.float32)


def stream_width(d_in: int, d_out: int, settings: Settings) -> int:
    """Room for the data, and for the positive and the negative part of a linear start."""
    return max(settings.stream_width, d_in, d_out)


def waist_layer(settings: Settings) -> int:
    """The middle layer of the stream."""
    return settings.stream_layers // 2


def waist_of(network: Stream, x: Tensor, rank: int, *, layer: int) -> Waist:
    """The waist through the leading principal directions of the stream behind `layer`, with its mean."""
    with torch.no_grad():
        stream = _stream_behind(network, x, layer).double()
    mean = stream.mean(0)
    return Waist(layer, principal_axes(stream - mean, rank), mean)


def start_linear(network: Stream, x: Tensor, y: Tensor) -> None:
    """Turn random weights into the reduced-rank regression of y on x, plus noise; in place.

    y ~ x C V^T:   a ResNet carries C^T x through blocks near 0, a leaky one its positive and its negative part
    """
    coordinates, back = reduced_rank_map(x, y)
    leaky = isinstance(network, LeakyResNet)
    m = min(network.width // 2 if leaky else network.width, coordinates.shape[1])
    c, v = coordinates[:, :m].to(x.dtype), back[:, :m].to(x.dtype)
    with torch.no_grad():
        E, U = network.embedding.mul_(LINEAR_START_NOISE), network.unembedding.mul_(LINEAR_START_NOISE)
        E[:m] += c.T
        U[:, :m] += v
        if isinstance(network, LeakyResNet):
            E[m : 2 * m] -= c.T
            U[:, m : 2 * m] -= v
            return
        for weight in network.block_weights:
            weight.mul_(LINEAR_START_NOISE)


def network_of(problem: Problem, settings: Settings, result: Result) -> Stream:
    """The network that a unit of work ended with, its waist included."""
    network = new_stream(problem.d_in, problem.d_out, settings, seed=0)
    fill(network, result["theta"])
    if result["waist_rank"] is not None:
        network.narrow(Waist(waist_layer(settings), result["waist_axes"], result["waist_mean"]))
    return network


def _measured(problem: Problem, settings: Settings, network: Stream, result: FitResult) -> Result:
    found = measured(
        problem, network, result, written=as_fully_connected(network),
        activation_rank=visible_rank(network, problem.x, waist_layer(settings)),
    )  # fmt: skip
    return found | {"theta": flat_parameters(network)} | _waist_fields(network.waist)


def _waist_fields(waist: Waist | None) -> Result:
    if waist is None:
        return {"waist_rank": None, "waist_axes": None, "waist_mean": None}
    axes = torch.linalg.eigh(waist.projection.double()).eigenvectors[:, -waist.rank :]
    return {"waist_rank": waist.rank, "waist_axes": axes, "waist_mean": waist.offset.double()}


def visible_rank(network: Stream, x: Tensor, layer: int) -> int:
    """Number of principal directions of the stream behind `layer` that stand out (*estimate*)."""
    with torch.no_grad():
        stream = _stream_behind(network, x, layer).double()
    if not bool(torch.isfinite(stream).all()):
        return 0  # diverged: there is no stream whose rank could be read
    s = torch.linalg.svdvals(stream - stream.mean(0))
    return int((s > VISIBLE * s[0]).sum()) if float(s[0]) > 0 else 0


def _stream_behind(network: Stream, x: Tensor, layer: int) -> Tensor:
    """A_l; blocks of a ResNet made here hold one matrix each, so that its states are numbered alike."""
    return walk(network, x)[layer].activation
