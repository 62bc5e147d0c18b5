"""What the theorem tests share: assertions that raise, random matrices of a given spectrum, networks as tensors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from isthmus.networks import FullyConnected, walk

Array = NDArray[np.float64]
SEEDS = st.integers(0, 2**31)
DEPTHS = st.integers(1, 12)


def assert_close(actual: Tensor | float, expected: Tensor | float, *, relative: float = 1e-12, absolute: float = 0.0):
    """|actual - expected| <= absolute + relative * largest |expected|, and equal shapes; NaN never passes."""
    a, e = torch.as_tensor(actual, dtype=torch.float64), torch.as_tensor(expected, dtype=torch.float64)
    assert a.shape == e.shape, f"shapes {tuple(a.shape)} and {tuple(e.shape)}"
    if not e.numel():
        return
    error, allowed = float((a - e).abs().max()), absolute + relative * float(e.abs().max())
    assert error <= allowed, f"off by {error:.3e}, allowed {allowed:.3e}: {actual} against {expected}"


def assert_at_most(smaller: Tensor | float, larger: Tensor | float, *, slack: float = 1e-12):
    """smaller <= larger + slack * max(1, |larger|), elementwise; NaN never passes."""
    s, g = torch.as_tensor(smaller, dtype=torch.float64), torch.as_tensor(larger, dtype=torch.float64)
    assert bool((s <= g + slack * g.abs().clamp_min(1)).all()), f"{smaller} exceeds {larger}"


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def with_spectrum(seed: int, values: Sequence[float], d_out: int, d_in: int) -> Tensor:
    """A random matrix with these singular values."""
    left = torch.linalg.qr(normal(seed, d_out, len(values))).Q
    right = torch.linalg.qr(normal(seed + 1, d_in, len(values))).Q
    return (left * torch.tensor(values, dtype=torch.float64)) @ right.mT


def chain(matrices: Sequence[Tensor]) -> Tensor:
    """W_L ... W_1 of a list with the first layer first."""
    product = matrices[0]
    for matrix in matrices[1:]:
        product = matrix @ product
    return product


def squared_norm(matrices: Sequence[Tensor]) -> float:
    return float(sum(matrix.square().sum() for matrix in matrices))


@dataclass(frozen=True)
class Linearised:
    """A network on a batch: its weights, and per layer the activations that enter and the derivatives after it."""

    weights: list[Tensor]
    biases: list[Tensor]
    activations: list[Tensor]
    derivatives: list[Tensor]
    penalty: float

    def point(self, i: int) -> list[Tensor]:
        """Derivative patterns of one sample."""
        return [pattern[i] for pattern in self.derivatives]


def random_network(
    seed: int, dimensions: Sequence[int], *, slope: float = 0.0, bias: float = 0.5, scale: float = 1.0
) -> FullyConnected:
    """A fully connected network with random weights and random biases."""
    network = FullyConnected(
        dimensions[0],
        dimensions[-1],
        width=tuple(dimensions[1:-1]),
        depth=len(dimensions) - 1,
        negative_slope=slope,
        seed=seed,
        dtype=torch.float64,
    )
    with torch.no_grad():
        for l, parameter in enumerate(network.biases):
            parameter.copy_(bias * normal(seed + 7 * l + 1, len(parameter)))
        for weight in network.weights:
            weight.mul_(scale)
    return network


def linearised(network: FullyConnected, x: Tensor) -> Linearised:
    with torch.no_grad():
        states = walk(network, x)
        penalty = float(network.penalty())
    one, a = torch.ones((), dtype=x.dtype), torch.tensor(network.negative_slope, dtype=x.dtype)
    biases = [state.bias.detach() for state in states if state.bias is not None]
    return Linearised(
        [state.weight.detach() for state in states],
        biases,
        [x, *(state.activation for state in states[:-1])],
        [torch.where(state.preactivation >= 0, one, a) for state in states[:-1]],
        penalty,
    )


def folded(seed: int, values: Sequence[float], depth: int) -> FullyConnected:
    """x -> D relu(Q x), D diagonal of `values` > 0 and Q a small rotation, as D^(1/L) in each layer; depth >= 2.

    No linear map, and yet of known cost: the norm is L sum d^(2/L), and where Q x > 0 the Jacobian D Q asks for it.
    """
    root = torch.tensor(values, dtype=torch.float64) ** (1 / depth)
    turn = 0.1 * normal(seed, len(values), len(values))
    first = root[:, None] * torch.linalg.matrix_exp(turn - turn.mT)
    return FullyConnected.from_layers([first, *[torch.diag(root)] * (depth - 1)])


ACTIVE = 3.0  # at this value of all inputs, no neuron of `folded` is off


def rng(seed: int, *shape: int) -> Array:
    return np.random.default_rng(1000 + seed).normal(size=shape)


def tensor(values: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values))


def agree(found: Tensor | Array | float, expected: Array | float, relative: float = 1e-10) -> None:
    one = found.detach().numpy() if isinstance(found, Tensor) else np.asarray(found, dtype=np.float64)
    two = np.asarray(expected, dtype=np.float64)
    assert one.shape == two.shape
    assert np.abs(one - two).max(initial=0) <= relative * max(np.abs(two).max(initial=0), 1e-300)


def run_connected(network: FullyConnected, x: Array) -> Array:
    """f(x) of a fully connected network, layer by layer."""
    weights, biases = ([p.detach().numpy() for p in part] for part in (network.weights, network.biases))
    for l, W in enumerate(weights, 1):
        x = x @ W.T + (biases[l - 1] if len(biases) else 0.0)
        x = np.where(x >= 0, x, network.negative_slope * x) if network.is_activated(l) else x
    return x
