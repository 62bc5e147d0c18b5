"""Two networks that settle a question: ranks can differ (FC-05), representations may have to diverge (FC-36).

Families with a chosen rank: `constructions.bijections`.
"""

from dataclasses import dataclass
from math import cosh, exp, inf, sqrt

import torch

from isthmus.networks import FullyConnected


@dataclass(frozen=True, slots=True)
class XCross:
    """The map whose Jacobian rank is 1 and whose bottleneck rank is 2.

    Attributes:
        network: the ReLU network, widths (2, 4, 8, 2), no biases, penalty 38.
        jacobian_rank: 1, in each of the 8 sectors (*exact*).
        bottleneck_rank: 2, since the map is the identity on a cross, which embeds in no line (*exact*).

    >>> made = constructions.x_cross_example()
    >>> made.jacobian_rank, made.bottleneck_rank
    (1, 2)
    """

    network: FullyConnected
    jacobian_rank: int = 1
    bottleneck_rank: int = 2


@dataclass(frozen=True, slots=True)
class DivergentRepresentation:
    """A map whose networks of least norm cannot stay uniformly Lipschitz as the depth grows.

    Attributes:
        network: the network, without biases, exact on non-negative inputs, in particular the unit cube.
        rank: 3, Jacobian and bottleneck rank.
        squared_norm: L (2 cosh 2e + cosh 4e) + 3 c^2, the network's penalty (*exact*); 3 L + 12 L e^2 + ... .
        largest_activation: the largest on the unit cube (*exact*): e^{(L/2) e}, which diverges where L e does, unless
            the kink is strong enough to exceed it: max{e^{(L/2) e}, (1 + alpha) e^{-2e} (L > 2), c e^{(L/2 - 1) e}}.

    >>> constructions.divergent_representation_example(10).rank
    3
    """

    network: FullyConnected
    rank: int
    squared_norm: float
    largest_activation: float


def x_cross_example() -> XCross:
    """f(x_0, x_1) = (sign(x_0) m, sign(x_1) m), m = min(|x_0|, |x_1|), as a ReLU network of depth 3 (*exact*).

        h = (x_0^+, x_0^-, x_1^+, x_1^-);   f_0 = (| x_0 + |x_1| | - | x_0 - |x_1| |) / 2,   f_1 likewise

    The identity on the cross |x_0| = |x_1| and zero on both axes.

    Source: Jacot 2023a, Example 1, whose two cases are printed in the wrong order (the printed map jumps). Test: FC-05.

    >>> x = torch.tensor([[2.0, -1.0], [1.0, 1.0]], dtype=torch.float64)
    >>> constructions.x_cross_example().network(x).tolist()
    [[1.0, -1.0], [1.0, 1.0]]
    """
    x0, x1 = torch.tensor([1.0, -1, 0, 0]), torch.tensor([0.0, 0, 1, -1])
    abs0, abs1 = x0.abs(), x1.abs()
    first = torch.tensor([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    sums = [x0 + abs1, x0 - abs1, x1 + abs0, x1 - abs0]
    second = torch.stack([signed for row in sums for signed in (row, -row)])
    last = torch.tensor([[1.0, 1, -1, -1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, -1, -1]]) / 2
    return XCross(FullyConnected.from_layers([first, second, last]))


def divergent_representation_example(
    depth: int, *, alpha: float = 1.0, epsilon: float = 0.1
) -> DivergentRepresentation:
    """f(x, y, z) = (x, y, z + alpha relu(x - y)) on the unit cube, as a ReLU network of even depth (*exact* there).

        W_l = D = diag(e^e, e^e, e^{-2e}) up to l = L/2, then D^{-1}; in the middle one extra neuron (c, -c, 0), read
        into z with weight c;  c = sqrt(alpha) e^{-(3/4)(L - 2) e}

    With epsilon = L^{-g}, 1/2 < g < 1, the squared norm is 3 L + O(L^{1-2g}) while activations diverge.

    Args:
        depth: number of weight matrices L, even and at least 2.
        alpha: size of the kink, at least 0.
        epsilon: stretching per layer, at least 0.

    Raises:
        ValueError: an odd depth or one below 2, alpha < 0, epsilon < 0 or beyond 300 / L, where numbers overflow.

    Source: Jacot 2023b, Example 20. Test: FC-36.

    >>> made = constructions.divergent_representation_example(10, alpha=1.0)
    >>> made.network(torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)).round(decimals=6).tolist()
    [[1.0, 0.0, 1.0]]
    """
    if depth < 2 or depth % 2 or not 0 <= alpha < inf or not 0 <= epsilon * depth <= 300:
        raise ValueError(
            f"divergent_representation_example(depth={depth}, alpha={alpha}, epsilon={epsilon}): needs an even depth "
            ">= 2, alpha >= 0 and 0 <= epsilon <= 300 / depth. Try epsilon = depth**-0.75."
        )
    c = sqrt(alpha) * exp(-0.75 * (depth - 2) * epsilon)
    stretch = torch.tensor([exp(epsilon), exp(epsilon), exp(-2 * epsilon)], dtype=torch.float64).diag()
    back = torch.tensor([exp(-epsilon), exp(-epsilon), exp(2 * epsilon)], dtype=torch.float64).diag()
    kink = torch.tensor([[c, -c, 0.0]], dtype=torch.float64)
    read = torch.tensor([[0.0], [0.0], [c]], dtype=torch.float64)
    half = depth // 2 - 1
    middle = [torch.cat([stretch, kink]), torch.cat([back, read], 1)]
    network = FullyConnected.from_layers([*[stretch] * half, *middle, *[back] * half])
    squared_norm = depth * (2 * cosh(2 * epsilon) + cosh(4 * epsilon)) + 3 * c * c
    kept, bent = exp(depth / 2 * epsilon), (1 + alpha) * exp(-2 * epsilon) if depth > 2 else 0.0
    largest = max(kept, bent, c * exp((depth / 2 - 1) * epsilon))
    return DivergentRepresentation(network, 3, squared_norm, largest)
