"""The combinations behind an index rank: loadings, how sure they are, the groups of powers, the steepest directions.

How the halves are found: `search`; the mathematics of directions and groups: `groups`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float64
from numpy.typing import NDArray

from isthmus.discovery.data.checking import CheckedData
from isthmus.discovery.evidence.interpretation import drawn_rows
from isthmus.discovery.factorisation import cut_network
from isthmus.discovery.factors import Factorisation
from isthmus.discovery.findings import Findings
from isthmus.discovery.groups.direction_spread import DirectionSpread, direction_spread, largest_angle
from isthmus.discovery.groups.group_search import GroupFit, simplest_groups
from isthmus.discovery.groups.powers import Powers
from isthmus.discovery.groups.varimax import signed, varimax
from isthmus.networks import FullyConnected, jacobians

IDLE = 0.05  # loading, in columns of variance 1, below which an input takes no part
MOST_ENTRIES = 2_000_000  # of Jacobians that are held at once
DEPENDENT = 1e-10  # relative singular value of rows below which they depend on each other
Array = NDArray[np.float64]


def combinations_of(findings: Findings, data: CheckedData, halves: Factorisation[FullyConnected]) -> xr.Dataset:
    """What is known of the rows of a linear encoder.

    Args:
        findings: of a search with a linear encoder, of rank at least 1.
        data: as it was searched.
        halves: in standardised units.

    Returns:
        Dimensions "combination" and "input": `loading`, orthonormal rows in columns of variance 1, turned to be sparse
        (varimax), for their span is what the data determine; `loading_low`, `loading_high` and `cone` (radians, by
        combination): how far they go over trainings on halves of the rows, which scatter around those of all rows as
        these do around the truth; `angle` (half): the largest principal angle of each. With logarithms also, where
        only logged inputs take part, `exponent` (whole numbers, NaN where no simple ones are within the slack),
        `exponent_measured`, `exponent_low`, `exponent_high`. By "leading", 1 to as many: `gradient_direction`, the same
        span by the eigenvectors of the gradient covariance of the map, the steepest first, `gradient_share` of the
        squared slopes along each, `gradient_angle`: how far the span of the first so many goes over the trainings on
        halves; `least_loss_angle`: how far that lies from the span of so many combinations alone through which least is
        lost, NaN where none were trained. All are *estimates*.
    """
    problem = findings.family.problem
    spread = np.zeros(data.x.shape[1])
    spread[problem.inputs.kept] = problem.inputs.scale
    rows = _rows(findings, halves.encoder)
    loadings = varimax(rows * spread)
    halved = [problem.inputs.unmixed(_numpy(network.weights[0])) for network in findings.halved]
    scatter = direction_spread(loadings, [part * spread for part in halved]) if halved else None
    table: dict[str, object] = {"loading": (("combination", "input"), loadings)}
    if scatter is not None:
        table |= {
            "loading_low": (("combination", "input"), scatter.low),
            "loading_high": (("combination", "input"), scatter.high),
            "cone": ("combination", scatter.cones),
            "angle": ("half", scatter.angles),
        }
    table |= _leading(findings, halves, spread)
    if data.powers is not None:
        table |= _exponents(findings, data.powers, halves, loadings, halved)
    numbers = np.arange(1, len(rows) + 1)
    coordinates = {"combination": numbers, "leading": numbers, "input": list(data.input_names)}
    return xr.Dataset(table, coords=coordinates)


def _rows(findings: Findings, encoder: FullyConnected) -> Array:
    """The encoder's rows over the columns as they were searched."""
    return findings.family.problem.inputs.unmixed(_numpy(encoder.weights[0]))


def _leading(findings: Findings, halves: Factorisation[FullyConnected], spread: Array) -> dict[str, object]:
    """The directions of largest slope, in columns of variance 1, and how far they scatter and from what they differ."""
    family = findings.family
    problem, rank = family.problem, halves.rank

    def cut(network: FullyConnected, count: int) -> Factorisation[FullyConnected]:
        return cut_network(network, problem.x, count, layer=family.middle)

    def steepest_of(some: Factorisation[FullyConnected], x: torch.Tensor) -> Steepest:
        return steepest(some, x, _rows(findings, some.encoder) * spread, common=bool(problem.loss.unseen))

    found, apart = steepest_of(halves, problem.x), np.full(rank, np.nan)
    for count, minimum in findings.scree.items():
        if count < rank and minimum.dimensions == count:
            other = cut(family.written(family.network_of(minimum)), count)
            apart[count - 1] = found.apart(_rows(findings, other.encoder) * spread)
    table: dict[str, object] = {
        "gradient_direction": (("leading", "input"), found.directions),
        "gradient_share": ("leading", found.shares),
        "least_loss_angle": ("leading", apart),
    }
    if findings.halved:
        # each over its own rows: over all, the mean over rows would seem to be known exactly
        others = [
            steepest_of(cut(network, rank), problem.x[family.half_of_rows(number)])
            for number, network in enumerate(findings.halved)
        ]
        table["gradient_angle"] = ("leading", found.angles(others))
    return table


def _exponents(
    findings: Findings, powers: Powers, halves: Factorisation[FullyConnected], loadings: Array, halved: list[Array]
) -> dict[str, object]:
    """The groups behind the rows; nothing where inputs without a logarithm take part."""
    is_logged, kept = np.array(powers.coordinates.is_logged), np.zeros(loadings.shape[1], dtype=bool)
    kept[findings.family.problem.inputs.kept] = True
    space = powers.coordinates.space
    chosen = is_logged if space is not None else is_logged & kept
    if (np.abs(loadings[:, ~is_logged]) > IDLE).any() or chosen.sum() < len(loadings):
        return {}
    matrix = powers.coordinates.matrix

    def dimensionless(rows: Array) -> Array:
        """With the powers of constant columns, which take a unit away."""
        if space is None:
            return rows[:, chosen]
        return (rows[:, kept] @ np.linalg.pinv(matrix[kept].T) @ matrix.T)[:, chosen]

    rows = dimensionless(_rows(findings, halves.encoder))
    objective = _objective(findings, halves, np.flatnonzero(chosen))
    columns = [name for name, is_chosen in zip(powers.coordinates.columns, chosen, strict=True) if is_chosen]
    fit = simplest_groups(rows, objective, columns=columns, within=None if space is None else space.basis)
    scatter = None
    if halved:
        pivots = fit.pivots
        scatter = direction_spread(
            rows, [dimensionless(part) for part in halved], pivots=pivots, values=fit.measured[:, pivots]
        )
    return {name: (("combination", "input"), _spread_out(part, chosen)) for name, part in _parts(fit, scatter).items()}


def _parts(fit: GroupFit, scatter: DirectionSpread | None) -> dict[str, Array]:
    exact = np.array(fit.exponents, dtype=np.float64) if fit.is_exact else np.full_like(fit.measured, np.nan)
    found = {"exponent": exact, "exponent_measured": fit.measured}
    if scatter is not None and scatter.held_low is not None and scatter.held_high is not None:
        found |= {"exponent_low": scatter.held_low, "exponent_high": scatter.held_high}
    return found


def _spread_out(values: Array, chosen: NDArray[np.bool_]) -> Array:
    whole = np.zeros((len(values), len(chosen)))
    whole[:, chosen] = values
    return whole


def _objective(
    findings: Findings, halves: Factorisation[FullyConnected], chosen: NDArray[np.int64]
) -> Callable[[Array], float]:
    """Data loss through other rows and the same decoder, with the penalty of the minimum through that rank."""
    problem, inputs = findings.family.problem, findings.family.problem.inputs
    base = findings.curve[max(r for r in findings.curve if r <= findings.decision.rank)]
    back = np.linalg.pinv(np.eye(len(inputs.kept)) if inputs.mixing is None else inputs.mixing.T)
    (weight,), biases = halves.encoder.written_layers()
    bias = torch.zeros(len(weight), dtype=torch.float64) if biases is None else biases[0].double()
    x = problem.x.double()

    def objective(rows: Array) -> float:
        whole = np.zeros((len(rows), len(inputs.mean)))
        whole[:, chosen] = rows
        mixed = torch.from_numpy((whole[:, inputs.kept] * inputs.scale) @ back)
        with torch.no_grad():
            outputs = halves.decoder.double()(x @ mixed.T + bias)
        return problem.loss_of(outputs, problem.y, problem.weight) * problem.unit + base.objective - base.data_loss

    return objective


def _numpy(weight: torch.Tensor) -> Array:
    return weight.detach().double().numpy()


@dataclass(frozen=True, slots=True, eq=False)
class Steepest:
    """The eigenvectors of a gradient covariance.

    Attributes:
        directions: (k, d) orthonormal rows, the one of the largest eigenvalue first, each with its largest entry
            positive.
        shares: (k,) of the squared slopes along each; they add up to 1, or are all 0.
    """

    directions: Float64[np.ndarray, "k d_in"]
    shares: Float64[np.ndarray, " k"]

    @classmethod
    def of(cls, covariance: Float64[np.ndarray, "k k"], rows: Float64[np.ndarray, "k d_in"]) -> "Steepest":
        """Of f = h o A, from the gradient covariance of h over its coordinates and the rows of A (*exact* to rounding).

        A^T C A = V diag(s) V^T,   C = 1/n sum_i H_i^T H_i,   H_i the Jacobians of h
        """
        basis, turn = np.linalg.qr(rows.T)  # so that what is decomposed is k by k, however many columns there are
        values, vectors = np.linalg.eigh(turn @ covariance @ turn.T)
        values, total = values[::-1].clip(0.0), values.clip(0.0).sum()
        shares = values / total if total > 0 else np.zeros_like(values)
        return cls(signed((basis @ vectors[:, ::-1]).T), shares)

    def leading(self, count: int) -> Float64[np.ndarray, "_ d_in"]:
        """The first so many."""
        return self.directions[:count]

    def apart(self, rows: Float64[np.ndarray, "j d_in"]) -> float:
        """The largest angle between the span of j rows and that of the first j, radians; NaN of dependent rows.

        Through few combinations alone least may be lost along others than those in which a map changes most: of 3 a +
        sin(12 b) / 2 along a, where the mean square slope is 9, of b it is 18.
        """
        _, values, basis = np.linalg.svd(rows, full_matrices=False)
        if not values[-1] > DEPENDENT * values[0]:
            return np.nan
        return largest_angle(basis, self.leading(len(rows)))

    def angles(self, others: Sequence["Steepest"]) -> Float64[np.ndarray, " k"]:
        """For j = 1, 2, ...: the largest angle between the spans of the first j and of the first j of any other.

        Radians, 0 to pi/2. Directions of equal eigenvalues are any basis of their span: an angle stands for the j up to
        which there is a gap.
        """
        counts = range(1, len(self.directions) + 1)
        return np.array([max(largest_angle(o.leading(j), self.leading(j)) for o in others) for j in counts])


def steepest(
    halves: Factorisation[FullyConnected], x: torch.Tensor, rows: Float64[np.ndarray, "k d_in"], *, common: bool
) -> Steepest:
    """Those of a network with a linear encoder, over at most 1000 rows (seeded choice).

    Args:
        halves: in the units of `x`.
        x: samples as the encoder takes them.
        rows: of the encoder over the columns in which directions are wanted.
        common: whether a common shift of the outputs counts for nothing, as of the scores of classes.
    """
    points = x[torch.from_numpy(drawn_rows(len(x)))].double()
    encoder, decoder = halves.encoder.double(), halves.decoder.double()
    k, covariance = len(rows), np.zeros((len(rows), len(rows)))
    with torch.no_grad():  # Jacobians of many outputs are large, their sum is not
        for part in points.split(max(1, MOST_ENTRIES // (k * decoder.dimensions[-1]))):
            slopes = jacobians(decoder, encoder(part)).numpy()
            if common:
                slopes = slopes - slopes.mean(1, keepdims=True)
            covariance += np.einsum("nqi,nqj->ij", slopes, slopes) / len(points)
    return Steepest.of(covariance, rows)
