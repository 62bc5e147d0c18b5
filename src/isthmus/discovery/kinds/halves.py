"""The two halves of the network that a discovery trains, as objects: what lies before its middle, and what behind it.

How halves and middle make a network: `kinds.connected`. The halves of a network that was cut: `factors`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Half:
    """An encoder or a decoder of ReLU layers of one width; without any layer it is a linear map.

    Attributes:
        layers: number of ReLU layers.
        width: of each.
    """

    layers: int
    width: int

    @property
    def widths(self) -> list[int]:
        """Of its hidden layers, in order."""
        return [self.width] * self.layers

    def carries(self) -> int | None:
        """Coordinates that it can hand through its ReLU layers by their two signs; None for any number."""
        return self.width // 2 if self.layers else None

    def add_linear_map(self, weights: Sequence[Tensor], before: Tensor, after: Tensor) -> None:
        """Add `after` @ `before` to what its weights compute, in place.

            h = (relu(B x), relu(-B x)) is carried by identities;   y = A (h_+ - h_-)

        Args:
            weights: its matrices, one more than ReLU layers, from its inputs to its outputs.
            before: B (m, inputs).
            after: A (outputs or the first of them, m).
        """
        m = len(before)
        if not self.layers:
            weights[0][: len(after)] += after @ before
            return
        eye = torch.eye(m, dtype=before.dtype)
        signs = torch.cat([eye, -eye])
        weights[0][: 2 * m] += signs @ before
        for weight in weights[1:-1]:
            weight[: 2 * m, : 2 * m] += torch.eye(2 * m, dtype=before.dtype)
        weights[-1][: len(after), : 2 * m] += after @ signs.T
