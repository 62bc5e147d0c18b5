"""Invertible affine standardisation of columns, and folding it back into the two halves of a network."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from isthmus.errors import DataError, DataWarning, outside
from isthmus.networks import FullyConnected
from isthmus.tasks.arrays import constant_columns, counted, in_parts, listing
from isthmus.tasks.input_columns import InputColumn
from isthmus.tasks.names import quoted
from isthmus.tasks.seen_ranges import column_range
from isthmus.training.losses import SQUARED, DataLoss, Loss
from isthmus.training.sharded.shared_rows import SharedRows
from isthmus.training.sharded.team import Team

Array = NDArray[np.float64]
COLLINEAR = 1e-5  # relative singular value of the inputs below which they are collinear
JOINED = 1e-3  # entry of the projector on what is left out below which two columns do not belong together
MOST_COMPARED = 500  # columns that are compared with each other
MOST_TOLD = 5  # pairs of target and input
SAME = 1e-12  # of 1 less the size of a correlation
FAR, NORMAL = 3.0, 1.4826  # deviations beyond which a value is wild; deviation over median distance of normal values
CONSTANT = 1e-12  # spread over magnitude below which a column is constant to rounding
FAINT = 2.0**-20  # of the largest value, of which all others are less where that is wild
HELD = 0.95  # share of the variance by which columns are counted that hold it
ROUNDING = 2.0**-46  # and that of a constant that was computed


class Scaling(Enum):
    """How columns are scaled: each to variance 1, or all by one number so that their relative scale stays.

    "auto" is the first, and the second where columns of one kind are to be autoencoded and the answer is in doubt.
    """

    COLUMN = "column"
    GLOBAL = "global"
    AUTO = "auto"

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        known = ", ".join(repr(one.value) for one in cls)
        raise ValueError(f"discover(scaling={str(value)[:40]!r}): needs one of {known}.")


def num_holding(variances: Array) -> int:
    """The least number of columns that hold `HELD` of the variance of all of them; 0 where none varies."""
    held = np.cumsum(np.sort(variances)[::-1])
    return int(np.searchsorted(held, HELD * held[-1])) + 1 if held[-1] > 0 else 0


def _moved_in(values: Array) -> Array:
    """The values at most `FAR` robust deviations from the median of their column; columns of few values as they are."""
    middle = np.median(values, axis=0)
    reach = FAR * NORMAL * np.median(np.abs(values - middle), axis=0)
    reach = np.where(reach > 0, reach, np.inf)
    return np.clip(values, middle - reach, middle + reach)


@dataclass(frozen=True, slots=True, eq=False)
class Standardiser:
    """z = (x[:, kept] - mean) / scale @ mixing, and back; columns that do not vary are put back as constants.

    Attributes:
        mean: of every column, also of the constant ones.
        scale: of the kept columns.
        kept: numbers of the columns that vary.
        mixing: (kept, m), see `whitened`; None: the identity.
    """

    mean: Array
    scale: Array
    kept: NDArray[np.int64]
    mixing: Array | None = None

    @classmethod
    def of(
        cls, values: Array, *, scaling: Scaling = Scaling.COLUMN, total: bool = False, robust: bool = False
    ) -> "Standardiser":
        """The standardiser of these rows: unit variance per column, or total variance 1 with `total`.

        With `robust`, of the values moved in to `FAR` deviations around the median, where most of a column differ:

            deviation = 1.4826 median |x - median x|,   that of normal values

        Two in a hundred that lie 30 deviations off are four times the spread of all others, and one else.
        """
        # divide by the largest magnitude first: the variance of 1e300 overflows
        magnitude = np.abs(values).max(axis=0)
        unit = np.where(magnitude > 0, magnitude, 1.0)
        reduced = values / unit
        if robust:
            reduced = _moved_in(reduced)
            moved = np.abs(reduced).max(axis=0)  # what lay far off was the magnitude; divided by what rounds nothing
            far = np.where((moved > 0) & (moved < FAINT), np.ldexp(1.0, np.frexp(moved)[1] - 1), 1.0)
            reduced, unit = reduced / far, unit * far
        centre = reduced.mean(axis=0)
        spread = np.sqrt(np.square(reduced - centre).mean(axis=0))
        return cls.of_moments(unit, centre, spread, scaling=scaling, total=total)

    @classmethod
    def of_moments(
        cls, unit: Array, centre: Array, spread: Array, *, scaling: Scaling = Scaling.COLUMN, total: bool = False
    ) -> "Standardiser":
        """The standardiser of rows whose columns, divided by `unit`, have this mean and standard deviation."""
        kept = np.flatnonzero(spread > CONSTANT)
        scale = spread[kept] * unit[kept]
        if scaling is Scaling.GLOBAL and len(kept):
            top = scale.max()
            scale = np.full(len(kept), top * np.sqrt(np.square(scale / top).mean()))
        if total:
            scale = scale * np.sqrt(max(len(kept), 1))
        return cls(centre * unit, scale, kept)

    def whitened(self, values: Array) -> "Standardiser":
        """The same with z uncorrelated of variance 1 on these rows; collinear directions are left out.

            z = (x - mean) / scale @ V diag(sqrt(n) / s),   U diag(s) V^T the SVD of the scaled rows

        A network whose first layer is linear then sees the same data whatever invertible linear map x went through.
        """
        scaled = self.apply(values)
        _, s, vt = np.linalg.svd(scaled - scaled.mean(axis=0), full_matrices=False)
        kept = s > COLLINEAR * s[0]
        turned = vt[kept].T * (np.sqrt(len(values)) / s[kept])
        return replace(self, mixing=turned if self.mixing is None else self.mixing @ turned)

    def restricted(self, directions: Array) -> "Standardiser":
        """Only these linear combinations of the columns, directions (columns, m), in place of the columns."""
        return replace(self, mixing=directions[self.kept] * self.scale[:, None])

    @property
    def dependences(self) -> list[list[int]]:
        """Sets of columns that depend on each other linearly on the rows that were whitened, the least such sets.

        Which of a set a direction uses is not determined: z, and so every first weight, is the same.
        """
        if self.mixing is None or self.mixing.shape[1] == len(self.kept):
            return []
        basis = np.linalg.qr(self.mixing)[0]
        joined = np.abs(np.eye(len(basis)) - basis @ basis.T) > JOINED
        for _ in range(len(joined).bit_length()):  # paths of twice the length each time
            joined = (joined.astype(np.float64) @ joined) > 0
        sets = {tuple(np.flatnonzero(row).tolist()) for row in joined if row.sum() > 1}
        return [self.kept[list(of)].tolist() for of in sorted(sets)]

    def warn_of_constants(self, values: Array, what: str, names: tuple[str, ...]) -> None:
        """Warn that columns of `values` are not used that are constant, or may be so but for rounding; not of all.

        Raises:
            DataError: none is used, though some vary by more than rounding.
        """
        unused = np.setdiff1d(np.arange(len(self.mean)), self.kept)
        if not len(unused):
            return
        low, high = column_range(values[:, unused])
        spread, size = high - low, np.maximum(np.abs(low), np.abs(high))
        is_faint = spread > ROUNDING * size
        if not len(self.kept):
            if is_faint.any():
                raise DataError(
                    f"discover: no {what} column varies by more than {CONSTANT:g} of its size, which may be rounding. "
                    "Subtract an offset from each, as its mean."
                )
            return
        why = f" (varies by less than {CONSTANT:g} of its size: subtract an offset)"
        parts = ((unused[~is_faint], f"constant {what} column", ""), (unused[is_faint], f"{what} column", why))
        for columns, told, why in parts:
            if len(columns):
                listed = ", ".join(quoted(names[i]) if names else str(i) for i in columns[:8].tolist())
                text = f"{counted(len(columns), told)} not used: {listed}{', ...' * (len(columns) > 8)}{why}."
                warnings.warn(text, DataWarning, stacklevel=outside())

    def warn_of_dependences(self, columns: Sequence[InputColumn]) -> None:
        """Warn of columns that depend on each other linearly; of the values of one column of text that is no news."""
        sets = [[columns[place] for place in of] for of in self.dependences]
        news = [of for of in sets if len({column.source for column in of}) > 1]
        if not news:
            return
        listed = "; ".join(listing((quoted(column.name) for column in of), "column", shown=8) for of in news[:8])
        more = f"; and {len(news) - 8} more sets" if len(news) > 8 else ""
        warnings.warn(
            f"linearly dependent: {listed}{more}. Which of them a combination uses is not determined; of all that are "
            "the same on these rows that of the least norm is shown, spread over all of them.",
            DataWarning,
            stacklevel=outside(),
        )

    def apply(self, values: Array) -> Array:
        """User's units to standardised units."""
        scaled = (values[:, self.kept] - self.mean[self.kept]) / self.scale
        return scaled if self.mixing is None else scaled @ self.mixing

    def restore(self, values: Array) -> Array:
        """Standardised units to the user's units (..., d), constant columns with their constant."""
        if self.mixing is not None:
            values = values @ np.linalg.pinv(self.mixing)
        whole = np.broadcast_to(self.mean, (*values.shape[:-1], len(self.mean))).copy()
        whole[..., self.kept] += values * self.scale
        return whole

    def unmixed(self, weight: Array) -> Array:
        """First weights (m, standardised inputs) as those of the user's columns: W mixing^T / scale."""
        whole = np.zeros((len(weight), len(self.mean)))
        whole[:, self.kept] = (weight if self.mixing is None else weight @ self.mixing.T) / self.scale
        return whole

    def of_outputs(self, loss: Loss) -> "Standardiser":
        """What turns the outputs of a network trained on these targets into the user's units."""
        scale = np.zeros(len(self.mean))
        scale[self.kept] = self.scale
        offset, scales = loss.output_units(self.mean, scale)
        kept = np.flatnonzero(scales)
        return Standardiser(offset, scales[kept], kept)

    def fold_into_encoder(self, network: FullyConnected) -> FullyConnected:
        """The network that takes the user's units: W' = W mixing^T / scale on kept columns, b' = b - W' mean."""
        first = torch.from_numpy(self.unmixed(network.weights[0].detach().double().numpy()))
        shift = first[:, self.kept] @ torch.from_numpy(self.mean[self.kept])
        bias = network.bias_of(1)
        weights = [first, *(w.detach().double() for w in network.weights[1:])]
        zero = torch.zeros(len(first), dtype=torch.float64)
        biases = [(zero if bias is None else bias.detach().double()) - shift, *_biases(network)[1:]]
        return FullyConnected.from_layers(weights, biases, negative_slope=network.negative_slope, linear=network.linear)

    def fold_into_decoder(self, network: FullyConnected) -> FullyConnected:
        """The network that gives the user's units; constant columns come out as their constant."""
        last = network.weights[-1].detach().double()
        weight = torch.zeros(len(self.mean), last.shape[1], dtype=torch.float64)
        bias = torch.from_numpy(self.mean.copy())
        scale = torch.from_numpy(self.scale)
        weight[self.kept] = last * scale[:, None]
        bias[self.kept] += _biases(network)[-1] * scale
        weights = [*(w.detach().double() for w in network.weights[:-1]), weight]
        return FullyConnected.from_layers(
            weights, [*_biases(network)[:-1], bias], negative_slope=network.negative_slope, linear=network.linear
        )


def shifted(network: FullyConnected, shift: float) -> FullyConnected:
    """The network that gives its outputs, each with the same number added."""
    biases = _biases(network)
    return FullyConnected.from_layers(
        [w.detach().double() for w in network.weights], [*biases[:-1], biases[-1] + shift],
        negative_slope=network.negative_slope, linear=network.linear,
    ) if shift else network  # fmt: skip


def _biases(network: FullyConnected) -> list[torch.Tensor]:
    if network.has_bias:
        return [b.detach().double() for b in network.biases]
    return [torch.zeros(d, dtype=torch.float64) for d in network.dimensions[1:]]


def shared_standardiser(values: Array, *, rows: int, team: Team, total: bool = False) -> Standardiser:
    """As `Standardiser.of`, of the rows of all processes: the same bits in each, however many.

    Args:
        values: (n_own, d) the rows of this process.
        rows: number of rows of all processes.
        team: the processes.
        total: total variance 1 in place of unit variance per column.
    """
    samples = torch.from_numpy(values)
    shared = SharedRows(samples, DataLoss(SQUARED, samples), total=rows, team=team)
    place = range(team.rank, team.rank + 1)
    # divided by the largest magnitude first: the variance of 1e300 overflows
    magnitude = team.gathered(samples.abs().amax(0)[None], place, team.size).amax(0)
    unit = torch.where(magnitude > 0, magnitude, 1.0)
    centre = shared.over_rows(lambda x, _: (x / unit).sum(0)) / rows
    spread = (shared.over_rows(lambda x, _: (x / unit - centre).square().sum(0)) / rows).sqrt()
    of_numpy: list[Array] = [np.asarray(tensor.numpy()) for tensor in (unit, centre, spread)]
    return Standardiser.of_moments(*of_numpy, total=total)


def doubles(x: Array, places: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of columns of which one is the other but for scale and origin: each later one once."""
    compared = places[:MOST_COMPARED]
    if len(compared) < 2 or len(x) < 3:
        return []

    def parts() -> Iterator[Array]:
        return (part[:, compared] for part in in_parts(x))

    top = np.max([np.abs(part).max(axis=0) for part in parts()], axis=0)
    mean = sum((part / top).sum(axis=0) for part in parts()) / len(x)
    products = sum((centred := part / top - mean).T @ centred for part in parts())
    norms = np.maximum(1e-300, np.sqrt(np.diag(products)))
    same = np.triu(np.abs(products) / norms / norms[:, None] > 1 - SAME, k=1)
    firsts = {int(second): int(first) for first, second in reversed(np.argwhere(same).tolist())}
    return [(compared[first], compared[second]) for second, first in sorted(firsts.items())]


def targets_among_inputs(x: Array, y: Array, names: tuple[Sequence[str], Sequence[str]]) -> str:
    """A sentence on targets that are inputs but for scale and origin; nothing where there are none.

    Args:
        x: inputs.
        y: targets, numbers.
        names: of the inputs and of the targets.
    """
    inputs, targets = names
    still = constant_columns(np.hstack([y, x]))
    places = [place for place in range(len(still)) if not still[place]]
    pairs = [
        f"the target {quoted(targets[first])} is the input {quoted(inputs[second - y.shape[1]])}"
        for first, second in doubles(np.hstack([y, x]), places)
        if first < y.shape[1] <= second
    ]
    if not pairs:
        return ""
    more = f" and {len(pairs) - MOST_TOLD} more" if len(pairs) > MOST_TOLD else ""
    return f"{'; '.join(pairs[:MOST_TOLD])}{more}, but for scale and origin: leave that input out."
