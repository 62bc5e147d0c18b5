"""Explicit networks drawn at random, with what they cost and what every bound of the theory says of them.

Depths 1 to 10^4, residual weights 1e-300 to 1e3, scales 1e-150 to 1e150, ranks deficient on purpose. Costs are summed
in the widest numbers of the machine, so that a bound may be compared without any slack.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from isthmus import FullyConnected
from isthmus.constructions import (
    balanced_linear_network,
    between_bijections,
    completely_positive_path,
    compose_with_identity,
    divergent_representation_example,
    leaky_from_relu,
    max_affine_network,
    rank_one_interpolator,
    residual_composition,
    shallow_residual_composition,
)
from isthmus.networks import enclosed_jacobians, walk
from isthmus.theory import (
    bottleneck_certificate,
    bottleneck_cost_upper_bound,
    curvature_lower_bound,
    enclosed_singular_values,
    large_singular_value_bound,
    last_matrix_lower_bound,
    layer_jacobian_bound,
    linear_cost,
    linear_path_cost,
    nonplanarity_bound,
    optimal_linear_factors,
    optimal_resnet_factors,
    prefix_jacobians,
    rank1_cost_lower_bound,
    regularity_lower_bound,
    resnet_cost,
    resnet_jacobian_lower_bound,
    schatten_lower_bound,
    spectral_gap_bound,
    suffix_jacobians,
    tangent_kernel_curvature,
    trailing_singular_value_bound,
    two_point_bound,
    two_sequence_certificate,
)
from theorem_checks import linearised, random_network

SHALLOW = 40  # depth up to which the bounds that need every layer are taken too
Inequality = tuple[str, float, float]  # name, what must be at most, what


@dataclass
class Case:
    """One explicit network: inequalities that must hold, and those of the formulas that counted rounding."""

    what: str
    inequalities: list[Inequality] = field(default_factory=list[Inequality])
    old: list[Inequality] = field(default_factory=list[Inequality])

    def at_most(self, name: str, smaller: object, larger: object) -> None:
        self.inequalities.append((name, smaller, larger))  # pyright: ignore[reportArgumentType]

    def broken(self) -> list[Inequality]:
        return _broken(self.inequalities)

    def broken_of_old(self) -> list[Inequality]:
        return _broken(self.old)


def _broken(inequalities: Iterable[Inequality]) -> list[Inequality]:
    return [row for row in inequalities if not np.longdouble(row[1]) <= np.longdouble(row[2])]  # NaN breaks it too


def exact_squares(tensors: Iterable[Tensor]) -> np.longdouble:
    """Sum of squares to 1e-19."""
    flat = np.concatenate([tensor.detach().numpy().ravel() for tensor in tensors]).astype(np.longdouble)
    return (flat * flat).sum()


@dataclass
class Draw:
    """Random numbers of one case."""

    random: np.random.Generator
    deep: bool

    def depth(self, least: int = 1) -> int:
        top = 4.0 if self.deep or self.random.random() < 0.15 else 1.6
        return max(least, round(10 ** self.random.uniform(0, top)))

    def scale(self) -> float:
        return 10.0 ** self.random.choice([self.random.uniform(-150, 150), self.random.uniform(-2, 2)])

    def integer(self, least: int, most: int) -> int:
        return int(self.random.integers(least, most + 1))

    def normal(self, *shape: int) -> Tensor:
        return torch.from_numpy(self.random.standard_normal(shape))

    def matrix(self) -> Tensor:
        """A product of factors of a small rank: its other singular values are rounding."""
        rows, columns = self.integer(1, 5), self.integer(1, 5)
        rank = self.integer(1, min(rows, columns))
        graded = torch.from_numpy(10.0 ** self.random.uniform(-3, 0, rank))
        return self.scale() * (self.normal(rows, rank) * graded) @ self.normal(rank, columns)

    def seed(self) -> int:
        return self.integer(0, 2**31)

    def network(self, d_in: int, d_out: int, *, depth: int | None = None) -> FullyConnected:
        sizes = [d_in, *[4] * ((depth or self.integer(1, 4)) - 1), d_out]
        return random_network(self.seed(), sizes, scale=10.0 ** self.random.uniform(-1, 1))


def measured(case: Case, network: FullyConnected, x: Tensor) -> Case:
    """Every bound that a fully connected network has to obey."""
    depth, found = network.depth, enclosed_jacobians(network, x)
    J, error = found.values, found.error
    cost = exact_squares(network.parameters())
    case.at_most("schatten, assumed rounding", schatten_lower_bound(J, depth=depth), cost)
    case.at_most("schatten", schatten_lower_bound(J, depth=depth, error=error), cost)
    case.old.append(("schatten", linear_cost(J, depth=depth).max(), cost))  # pyright: ignore[reportArgumentType]
    certain = enclosed_singular_values(J, error=error).lower
    for rank in range(certain.shape[1] + 1):
        case.at_most("regularity", regularity_lower_bound(J, rank=rank, depth=depth, error=error), cost)
    penalty = float(cost)
    for values in certain:
        for k, value in enumerate(values.tolist()):
            next_value = trailing_singular_value_bound(values[:k], penalty=penalty, depth=depth)
            case.at_most("trailing value", value, next_value)
            if value > 0:
                most = large_singular_value_bound(penalty=penalty, threshold=value, depth=depth)
                case.at_most("count of large values", k + 1, np.floor(most))
    if rank := int((certain[0] > 0).sum()):
        flat = nonplanarity_bound(J, rank=rank, error=error, sweeps=20)
        case.at_most("nonplanarity", flat.value + rank * depth, cost)
        case.at_most("nonplanarity, both ends", flat.value, flat.upper)
    if depth > 1:
        bound = last_matrix_lower_bound(J, network.weights[-1].detach(), depth=depth, error=error)
        case.at_most("last matrix", bound, cost)
        case.at_most("last matrix, assumed rounding",
                     last_matrix_lower_bound(J, network.weights[-1].detach(), depth=depth), cost)  # fmt: skip
    if depth <= SHALLOW:
        _layer_bounds(case, network, x, cost, certain[0])
    return case


def _layer_bounds(case: Case, network: FullyConnected, x: Tensor, cost: np.longdouble, certain: Tensor) -> None:
    """Bounds that are given every layer: of two points, of the kernel's curvature, of near-identities."""
    net = linearised(network, x)
    derivatives = [
        pattern if network.is_activated(l) else torch.ones_like(pattern) for l, pattern in enumerate(net.derivatives, 1)
    ]
    prefix, suffix = prefix_jacobians(net.weights, derivatives), suffix_jacobians(net.weights, derivatives)
    J = (suffix[0] @ net.weights[0]).expand(len(x), -1, -1)
    slope = network.negative_slope
    if network.depth > 1:
        curvature = tangent_kernel_curvature(prefix, suffix)
        norms = torch.linalg.eigvalsh(curvature)[:, -1] * (1 + 1e-13)
        bounds = curvature_lower_bound(J, depth=network.depth, negative_slope=slope)
        case.inequalities += [("curvature", b, n) for b, n in zip(bounds.tolist(), norms.tolist(), strict=True)]
        _gap(case, network, x)
    if slope == 0 and not network.linear and network.depth > 1:
        # rounded up: the bound is for the true norms
        norms = [float(layer_jacobian_bound(part).max()) * (1 + 1e-13) for part in (prefix, suffix)]
        bound = two_point_bound(
            J[0], J[-1], depth=network.depth, prefix_norm=max(norms[0], 1.0), suffix_norm=max(norms[1], 1.0)
        )
        case.at_most("two points", bound, cost)
    narrow = min(min(weight.shape) for weight in net.weights)
    for rank in range(1, narrow + 1):
        if float(certain[rank - 1]) == 0:
            break
        point = [pattern[0] for pattern in derivatives]
        biases = net.biases or [None] * network.depth
        certificates = [two_sequence_certificate, *([bottleneck_certificate] if slope >= 0 else [])]
        for certificate in certificates:
            made = certificate(net.weights, biases, point, rank=rank)
            case.at_most("near-identities", made.residuals.numpy().astype(np.longdouble).sum(), made.bound)


def _gap(case: Case, network: FullyConnected, x: Tensor) -> None:
    """Near rank 1 by the norms of the weights, where outputs differ."""
    with torch.no_grad():
        *hidden, y = (state.activation for state in walk(network, x))
    error = 1e-10 * float(y.abs().max())
    if float((y - y[0]).abs().max()) <= 10 * len(y) * error:
        return
    sizes = [float(w.detach().abs().max()) for w in network.weights]
    norms = [size * float((w.detach() / size).norm()) for w, size in zip(network.weights, sizes, strict=True)]
    bound = spectral_gap_bound(x, y, weight_norms=torch.tensor(norms, dtype=torch.float64), error=error)
    centred = [Z / Z.abs().max() for Z in hidden]
    values = [torch.linalg.svdvals(Z - Z.mean(0)) for Z in centred]
    ranks = [2 * float((torch.linalg.vector_norm(s) / s[0]).log()) for s in values]
    case.at_most("centred stable ranks", sum(ranks), bound.log_stable_ranks)
    case.at_most("centred gap", min(float(s[1] / s[0]) if len(s) > 1 else 0.0 for s in values), bound.ratio)


def balanced(draw: Draw) -> Case:
    matrix, depth = draw.matrix(), draw.depth()
    network = balanced_linear_network(matrix, depth=depth)
    return measured(Case(f"balanced factors, depth {depth}"), network, torch.ones(1, matrix.shape[1]).double())


def factors(draw: Draw) -> Case:
    matrix, depth = draw.matrix(), draw.depth()
    weights = optimal_linear_factors(matrix, depth=depth)
    network = FullyConnected.from_layers(weights, linear=range(1, depth))
    return measured(Case(f"optimal factors, depth {depth}"), network, torch.ones(1, matrix.shape[1]).double())


def interpolator(draw: Draw) -> Case:
    num, d_in, d_out, depth = draw.integer(1, 9), draw.integer(1, 5), draw.integer(1, 4), draw.depth(2)
    x, y = draw.normal(num, d_in), draw.scale() * draw.normal(num, d_out)
    made = rank_one_interpolator(x, y, depth=depth, num_directions=20, seed=draw.seed())
    case = Case(f"interpolator of {num} points, depth {depth}")
    if made.error <= 1e-9 * float(y.abs().max()):
        cost = exact_squares(made.network.parameters())
        case.at_most("rank-1 cost", rank1_cost_lower_bound(x, y, depth=depth), cost * (1 + 1e-8))
    return measured(case, made.network, x + 1e-3 * draw.normal(num, d_in))


def composition(draw: Draw) -> Case:
    inner_size, num = draw.integer(1, 3), draw.integer(1, 3)
    inner, outer = draw.network(3, inner_size), draw.network(inner_size, 2)
    x, identities = draw.normal(num, 3), draw.depth() - 1
    made = compose_with_identity(inner, outer, identities, x=x)
    case = Case(f"composition through {inner_size}, {identities} identities")
    network, before, after = made.network, inner.depth, outer.depth
    parts = list(zip(network.weights, network.biases, strict=True))
    encoder, decoder = (
        float(exact_squares(p for pair in part for p in pair)) for part in (parts[:before], parts[-after:])
    )
    upper = bottleneck_cost_upper_bound(
        encoder, decoder, rank=inner_size, depth=network.depth, encoder_depth=before, decoder_depth=after
    )
    case.at_most("cost of a composition", exact_squares(network.parameters()), upper)
    return measured(case, network, x)


def positive_path(draw: Draw) -> Case:
    size, depth = draw.integer(1, 3), draw.depth(2)
    scale = 10.0 ** draw.random.uniform(-2, 2)
    matrix = scale * torch.diag(torch.from_numpy(draw.random.uniform(0.1, 2, size)))
    x = draw.normal(3, size).abs()
    made = completely_positive_path(matrix, depth=depth, x=x)
    case = Case(f"positive path, depth {depth}")
    upper = linear_path_cost(matrix.diagonal(), depth=depth)
    case.at_most("least cost below the path", linear_cost(matrix, depth=depth), upper)
    case.at_most("norm of the path", exact_squares(made.network.parameters()), float(upper) * (1 + 1e-13 * depth))
    return measured(case, made.network, x)


def others(draw: Draw) -> Case:
    """The networks of the examples, and networks of any function."""
    kind = draw.integer(0, 3)
    if kind == 0:
        depth = 2 * max(1, draw.depth() // 2)
        made = divergent_representation_example(depth, epsilon=depth**-0.75)
        return measured(Case(f"divergent, depth {depth}"), made.network, draw.normal(2, 3).abs())
    if kind == 1:
        pieces = draw.integer(1, 6)
        network = max_affine_network(draw.scale() * draw.normal(pieces, 3), draw.normal(pieces))
        return measured(Case("maximum of affine maps"), network, draw.normal(3, 3))
    if kind == 2:
        network = between_bijections(draw.matrix(), seed=draw.seed()).network
        return measured(Case("between bijections"), network, draw.normal(2, network.dimensions[0]))
    network = leaky_from_relu(draw.network(3, 2), float(draw.random.uniform(-0.5, 0.5)))
    return measured(Case("leaky from ReLU"), network, draw.normal(2, 3))


def linear_resnet(draw: Draw) -> Case:
    matrix, depth, block_depth = draw.matrix(), draw.depth(), draw.integer(1, 2)
    lam = 10.0 ** draw.random.uniform(-300, 3)
    made = optimal_resnet_factors(matrix, residual_weight=lam, depth=depth, block_depth=block_depth)
    blocks = np.longdouble(depth) * sum(exact_squares([weight]) for weight in made.blocks[0])
    weight = np.longdouble(lam) * (depth if block_depth == 1 else 0.5)
    cost = exact_squares([made.embedding, made.unembedding]) / 2 + weight * blocks
    return _residual(Case(f"linear ResNet, depth {depth}, lambda {lam:.0e}"), made.product()[None], lam, depth,
                     block_depth, cost)  # fmt: skip


def residual(draw: Draw) -> Case:
    size, block_depth, depth = draw.integer(1, 3), draw.integer(1, 2), draw.depth() + 20
    inner, outer, x = draw.network(3, size), draw.network(size, 2), draw.normal(3, 3)
    lam = 10.0 ** draw.random.uniform(-300, -0.1)
    build: Callable[..., object] = residual_composition if block_depth == 2 else shallow_residual_composition
    made = build(inner, outer, depth=depth, residual_weight=lam, x=x)
    network = made.network  # pyright: ignore[reportAttributeAccessIssue]
    with torch.no_grad():
        through = enclosed_jacobians(outer, inner(x))
    into = enclosed_jacobians(inner, x)
    J = through.values @ into.values
    norms = [torch.linalg.matrix_norm(part.values) for part in (through, into)]
    error = norms[0] * into.error + norms[1] * through.error + 1e-14 * norms[0] * norms[1]
    case = Case(f"residual composition, depth {depth}, lambda {lam:.0e}")
    return _residual(case, J, lam, depth, block_depth, float(network.penalty().detach()), error=error)


def _residual(
    case: Case, J: Tensor, lam: float, depth: int, block_depth: int, cost: object, *, error: Tensor | None = None
) -> Case:
    setting = {"residual_weight": lam, "block_depth": block_depth}
    for blocks in (depth, None):
        old = resnet_cost(torch.linalg.svdvals(J), depth=blocks, **setting).max()  # pyright: ignore[reportArgumentType]
        case.old.append(("resnet", old, cost))  # pyright: ignore[reportArgumentType]
        for known in (None, error):
            bound = resnet_jacobian_lower_bound(J, depth=blocks, error=known, **setting)  # pyright: ignore[reportArgumentType]
            case.at_most("resnet", bound, cost)
    return case


BUILDERS = (balanced, factors, interpolator, composition, positive_path, others, linear_resnet, linear_resnet, residual)


def drawn_case(number: int, *, deep: bool = False) -> Case:
    """The case of a number, the same whenever it is asked for."""
    draw = Draw(np.random.default_rng([number, 28]), deep)
    return BUILDERS[number % len(BUILDERS)](draw)
