"""A kind of network that the library does not have: one file, one row, and everything takes it."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

import isthmus
from isthmus.networks import FullyConnected, LayerState
from isthmus.networks.kinds import SHAPE, KindOfNetwork, register
from isthmus.networks.residual_rewriting import Map, chained, narrowed
from isthmus.networks.residual_stream import ResidualStream


class GatedResNet(ResidualStream):
    """Residual blocks with a learned gate, which can shut a block off.

    z_0 = x E^T;   z_l = z_{l-1} + g_l relu(z_{l-1} W_{l,1}^T) W_{l,2}^T;   f(x) = z_L U^T
    penalty = 1/2 (|E|^2 + |U|^2 + sum |W_{l,1}|^2 + |W_{l,2}|^2 + g_l^2)
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        *,
        width: int,
        depth: int,
        seed: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.d_in, self.d_out, self.width, self.matrices_per_layer, self.waist = d_in, d_out, width, 2, None
        generator = torch.Generator().manual_seed(torch.seed() % 2**63 if seed is None else seed)

        def drawn(rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, columns, generator=generator, dtype=dtype) / columns**0.5)

        self.embedding = drawn(width, d_in)
        self.block_weights = nn.ParameterList(drawn(width, width) for _ in range(2 * depth))
        self.unembedding = drawn(d_out, width)
        self.gates = nn.Parameter(torch.full((depth,), 0.5, dtype=dtype))

    @property
    def depth(self) -> int:
        """Number of blocks L."""
        return len(self.gates)

    def layer_states(self, x: Tensor) -> list[LayerState]:
        """The gate stands behind the second matrix of its block."""
        z = self.behind(0, x @ self.embedding.mT)
        states = [LayerState(1, z, z, self.embedding, None, "embedding")]
        for l, gate in enumerate(self.gates):
            first, second = self.block_weights[2 * l], self.block_weights[2 * l + 1]
            inner = z @ first.mT
            states.append(LayerState(2 * l + 2, inner, inner.relu(), first, None, f"block_weights.{2 * l}"))
            added = states[-1].activation @ second.mT
            z = self.behind(l + 1, z + gate * added)
            states.append(LayerState(2 * l + 3, added, z, second, None, f"block_weights.{2 * l + 1}"))
        y = z @ self.unembedding.mT
        return [*states, LayerState(2 * self.depth + 2, y, y, self.unembedding, None, "unembedding")]

    def penalty(self) -> Tensor:
        """Half the squared norm of all parameters, the gates among them."""
        return torch.stack([p.square().sum() for p in self.parameters()]).sum() / 2

    def as_fully_connected(self) -> FullyConnected:
        """The stream is carried by its positive and its negative part, beside what the block makes."""
        eye = torch.eye(self.width, dtype=torch.float64)
        zero = eye.new_zeros(self.width)
        matrices = [w.detach().double() for w in self.block_weights]
        gates = self.gates.detach().double()
        maps: list[Map] = [(self.embedding.detach().double(), zero)]
        maps += [(torch.cat([eye, -eye, g * w], 1), zero) for g, w in zip(gates, matrices[1::2], strict=True)]
        parts = [torch.cat([eye, -eye, w]) for w in matrices[::2]] + [torch.cat([eye, -eye])]
        end = self.unembedding.detach().double()
        return chained(
            narrowed(maps, self.waist),
            [(p, p.new_zeros(len(p))) for p in parts],
            (torch.cat([end, -end], 1), end.new_zeros(self.d_out)),
            linear=False,
        )

    def description(self) -> dict[str, object]:
        """What the tensors do not say."""
        self.check_storable()
        return {"class": "GatedResNet", "dimensions": [self.d_in, self.width, self.d_out], "depth": self.depth}

    @classmethod
    def from_description(
        cls, description: Mapping[str, Any], tensors: Mapping[str, Tensor], name: str
    ) -> "GatedResNet":
        """Made only if the tensors have the sizes that it says."""
        d_in, width, d_out = cls.check_maps(description, tensors, name)
        depth = int(description["depth"])
        stored = [tuple(t.shape) for key, t in tensors.items() if key.startswith("block_weights.")]
        if len(stored) != 2 * depth or set(stored) > {(width, width)} or len(tensors["gates"]) != depth:
            raise ValueError(
                f"{name}: {len(stored)} matrices and {len(tensors['gates'])} gates do not fit {depth} blocks"
            )
        network = cls(d_in, d_out, width=width, depth=depth, seed=0, dtype=tensors["embedding"].dtype)
        network.load_state_dict(dict(tensors))
        return network


register(KindOfNetwork("gated", GatedResNet, SHAPE, examples=({"width": 6, "depth": 3},)))


def main() -> None:
    """Train one, and see which blocks it uses."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 4, generator=generator)
    network = GatedResNet(4, 1, width=8, depth=4, seed=0)
    result = isthmus.fit(network, x, (x[:, :1] * x[:, 1:2]).relu(), ridge=1e-3, limits=isthmus.Limits(evaluations=800))
    print(f"{result.outcome.value}; objective {result.objective:.3f}")
    print("gates: " + ", ".join(f"{abs(gate):.2f}" for gate in network.gates.tolist()))
    print(f"{len(isthmus.diagnose(network, x).layers.layer)} rows in the table by layer")
    halves = isthmus.factorise(network, x, 2)
    print(f"cut at layer {halves.layer} through 2 dimensions: relative error {halves.relative_error:.2f}")


if __name__ == "__main__":
    main()
