"""What the ledger asks of a network: norms, layers and Jacobians at some samples, as plain tensors.

`facts_of` is the one place where kinds of networks differ: `networks.facts` registers those of this library there,
and whoever writes a kind of their own does the same. What is made of the facts: `ledger`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import cast

from torch import Tensor

import isthmus
from isthmus.theory.differentiation import function_jacobians, function_values, in_precision_of


@dataclass(frozen=True, slots=True, eq=False)
class ConnectedLayers:
    """A fully connected network, sigma_a behind its hidden layers.

    Attributes:
        penalty: sum |W_l|_F^2 + |b_l|^2.
        weights: W_1 .. W_L.
        biases: b_1 .. b_L, None for a layer without.
        negative_slope: a.
        linear: whether no hidden layer has an activation.
        enters: a_0 .. a_{L-1} at the samples.
        preactivations: z_1 .. z_{L-1}.
        derivatives: sigma'(z_1) .. sigma'(z_{L-1}), 1 where a layer has no activation.
        activated: of each hidden layer whether it has one; empty where that is not known.
    """

    penalty: float
    weights: tuple[Tensor, ...]
    biases: tuple[Tensor | None, ...]
    negative_slope: float
    linear: bool
    enters: tuple[Tensor, ...] = ()
    preactivations: tuple[Tensor, ...] = ()
    derivatives: tuple[Tensor, ...] = ()
    activated: tuple[bool, ...] = ()

    @property
    def depth(self) -> int:
        """Number of weight matrices L."""
        return len(self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class ResidualBlocks:
    """A residual network: its cost, and whether it is linear, so that its chain is the map it computes."""

    penalty: float
    residual_weight: float
    depth: int
    block_depth: int
    linear: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class LeakyStream:
    """A leaky residual network: its cost, and the stream A_0 .. A_L at the samples, (L + 1, n, width)."""

    penalty: float
    effective_depth: float
    bias: bool
    activations: Tensor | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NetworkFacts:
    """A network or function at some samples.

    Attributes:
        x: samples as rows; None where only costs are asked for.
        values: f(x).
        jacobians: Jf(x).
        error: bound on the operator norm of what is wrong with each Jacobian; None where nothing is proved.
        chain: weights of a chain of layers that computes f, whatever its norm.
        layers: if fully connected.
        blocks: if a residual network.
        stream: if a leaky one.
        departure: what lets a network compute something else than its weights say, which then are not read.
        passed_over: which of the samples that were given are not among these: they lie on kinks.
    """

    x: Tensor | None = None
    values: Tensor | None = None
    jacobians: Tensor | None = None
    error: Tensor | None = None
    chain: tuple[Tensor, ...] = ()
    layers: ConnectedLayers | None = None
    blocks: ResidualBlocks | None = None
    stream: LeakyStream | None = None
    departure: str = ""
    passed_over: tuple[int, ...] = ()

    @property
    def told_passed_over(self) -> str:
        """Which samples these are not, in words; nothing where they are all."""
        if self.x is None or not self.passed_over:
            return ""
        rows = ", ".join(str(row + 1) for row in self.passed_over[:8]) + (", ..." if len(self.passed_over) > 8 else "")
        total = len(self.x) + len(self.passed_over)
        return f"of the {len(self.x)} of {total} samples off kinks alone; on kinks lie those of rows {rows}"


@singledispatch
def facts_of(network: object, x: Tensor | None) -> NetworkFacts:
    """What is known of `network`, and of f at the samples `x`; of a mere function f(x) and Jf(x).

    Args:
        network: any function of rows of tensors; other kinds of networks are registered.
        x: samples as rows, or None for what does not depend on them.
    """
    if x is None:
        return NetworkFacts()
    function = cast("Callable[[Tensor], Tensor]", network)
    x = in_precision_of(network, x)
    slopes = function_jacobians(function, x)
    return NetworkFacts(x.flatten(1).double(), function_values(function, x).double(), slopes.double())


def known_facts(network: object, x: Tensor | None) -> NetworkFacts:
    """`facts_of` once the kinds of this library and layers of torch are registered, whoever was imported before."""
    isthmus.provided("layers of networks")  # without it an nn.Sequential would be a mere function
    return facts_of(network, x)
