"""Energies of residual streams A+ = A + F(A) in any module: gates on the branches, and what the stream costs.

Where the blocks are: `data_flow`. Formulas, and leaky networks, for which they are exact: `theory.leaky`, `leaky`.
Everything here is *heuristic* beyond ReLU streams: cost of identity and kinetic energy take sigma(A) = [relu(A), 1] as
what a block sees, whatever normalisation or attention it begins with.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge

from isthmus.diagnostics.data_flow import ResidualBlock
from isthmus.diagnostics.evaluation import record
from isthmus.diagnostics.layer_sums import LayerSums, rows_of_stream
from isthmus.diagnostics.listener import Listener, Reading
from isthmus.diagnostics.module_names import Names
from isthmus.diagnostics.objective import LossOverData
from isthmus.diagnostics.replica import Replica
from isthmus.diagnostics.samples import Samples
from isthmus.theory import cost_of_identity, features, layer_gamma, relaxed_norm

RELATIVE_GAMMA = 1e-4
ROWS = 1024  # rows of a stream on which its costs are taken


@dataclass(frozen=True, slots=True)
class StreamNumbers:
    """One number per residual block, in the order of the blocks.

    Attributes:
        cost_of_identity: Tr[A^T (K + gamma)^-1 A] of the stream that enters, gamma = 1e-4 of K's largest eigenvalue.
        kinetic_energy: half of the same with F(A) in place of A outside of K.
    """

    cost_of_identity: list[float]
    kinetic_energy: list[float]


class _Costs(Listener):
    """Takes the costs of every stream as it passes."""

    def __init__(self, blocks: Sequence[ResidualBlock], real: Tensor | None) -> None:
        self.blocks = {block.ordinal: (k, block) for k, block in enumerate(blocks)}
        self.real = real
        self.identity = [math.nan] * len(blocks)
        self.kinetic = [math.nan] * len(blocks)

    def summed(self, ordinal: int, terms: tuple[Tensor, Tensor]) -> None:
        """Cost of identity of the stream, and of the step that the branch makes."""
        if ordinal not in self.blocks:
            return
        k, block = self.blocks[ordinal]
        A, F = (_rows(terms[i], self.real) for i in (1 - block.branch, block.branch))
        S = features(A)
        gamma = layer_gamma(S, relative=RELATIVE_GAMMA)
        self.identity[k] = float(cost_of_identity(A, gamma=gamma))
        self.kinetic[k] = float(relaxed_norm(F, S, gamma=gamma)) / 2


def _rows(tensor: Tensor, real: Tensor | None) -> Tensor:
    """Some rows of the stream, spread evenly."""
    rows = rows_of_stream(tensor.detach(), real).double()
    return rows[:: max(1, -(-len(rows) // ROWS))]


class _Gates(Listener):
    """Multiplies every branch by a number of which a derivative can be taken."""

    def __init__(self, blocks: Sequence[ResidualBlock], gates: Tensor) -> None:
        self.blocks = {block.ordinal: (k, block) for k, block in enumerate(blocks)}
        self.gates = gates
        self.leaving: dict[int, GradientEdge] = {}
        self._block: int | None = None

    def summed(self, ordinal: int, terms: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor] | None:
        """The same terms with the gate on the branch."""
        self._block = None
        if ordinal not in self.blocks:
            return None
        self._block, block = self.blocks[ordinal]
        gated = terms[block.branch] * self.gates[self._block].to(terms[0].dtype)
        return (gated, terms[1]) if block.branch == 0 else (terms[0], gated)

    def saw(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], reading: Reading | None) -> None:
        """Note where the stream leaves the block: what is seen right after its sum."""
        del inputs, reading
        if self._block is not None and outputs:
            self.leaving[self._block] = get_gradient_edge(outputs[0])
        self._block = None


def stream_costs(replica: Replica, samples: Samples, blocks: Sequence[ResidualBlock]) -> StreamNumbers:
    """Cost of identity and kinetic energy of every block on at most 1,024 rows of the samples given."""
    costs = _Costs(blocks, samples.real_tokens)
    with torch.no_grad():
        record(replica, Names(replica.module), samples, costs)
    return StreamNumbers(costs.identity, costs.kinetic)


def gate_derivatives(
    replica: Replica, batches: Iterator[tuple[int, Samples]], blocks: Sequence[ResidualBlock], loss: LossOverData
) -> tuple[Tensor, Tensor]:
    """Derivative of the data loss by the gate of every block, and its squared gradient by the stream that leaves it."""
    by_gate = torch.zeros(len(blocks), dtype=torch.float64)
    squares = torch.zeros(len(blocks), dtype=torch.float64)
    for start, part in batches:
        with torch.enable_grad():
            gates = torch.ones(len(blocks), dtype=torch.float64, device=replica.device, requires_grad=True)
            listener = _Gates(blocks, gates)
            output = record(replica, Names(replica.module), part, listener)
            edges = [listener.leaving[k] for k in range(len(blocks))]
            value = loss.part(output.double(), start)
            found = torch.autograd.grad(value, [get_gradient_edge(gates), *edges])
        by_gate += found[0].cpu()
        squares += torch.stack([g.double().square().sum() for g in found[1:]]).cpu()
    return by_gate, squares


def block_penalty(block: ResidualBlock, layers: Sequence[LayerSums]) -> float:
    """Sum of squares of the weights and biases inside a block."""
    tensors = [t for i in block.layers for t in (layers[i].weight, layers[i].bias) if t is not None]
    return sum(float(t.square().sum()) for t in tensors)
