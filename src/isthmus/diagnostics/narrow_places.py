"""What is lost at the output when the data pass through few directions behind one matrix: ranks that a cut has judged.

Ranks that spectra and Jacobians suggest: `rank`. Modules that are cut for good: `discovery.chains.cutting`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from isthmus.diagnostics.budget import Budget, give_back
from isthmus.diagnostics.evaluation import record
from isthmus.diagnostics.judged_rank import LOSSES, STILL, is_confirmed, least_rank, standing
from isthmus.diagnostics.listener import Listener
from isthmus.diagnostics.module_names import Names
from isthmus.diagnostics.projections import Keeping, Projecting
from isthmus.diagnostics.samples import Samples
from isthmus.diagnostics.session import DiagnosisSession
from isthmus.theory.spectra import energy_rank
from isthmus.theory.spread_rows import spread_rows

WIDEST_PLACE = 16_384  # numbers per sample, above which a place is not cut
MOST_PLACES = 3  # that are cut, those of the fewest directions first
FEWEST_ROWS, ENOUGH_ROWS, MOST_ROWS, MOST_JUDGES = 8, 128, 1024, 128
DECOMPOSED = 5  # copies of the rows of one place while they are decomposed
# copies in float64 of what comes out while two answers are compared, and bytes of them that are enough
COPIES, COMPARED = 3, 2**24
ENERGY = 0.99  # of what leaves a layer, by which the narrowest are picked


@dataclass(slots=True, eq=False)
class _Place:
    """One layer behind which the data are cut."""

    index: int
    mean: Tensor
    axes: Tensor
    rows: int
    lost: dict[int, float] = field(default_factory=dict[int, float])

    @classmethod
    def of_rows(cls, index: int, rows: Tensor) -> "_Place":
        mean = rows.double().mean(0)
        axes = torch.linalg.svd(rows.double() - mean, full_matrices=False).Vh
        return cls(index, mean, axes.T, len(rows))

    @classmethod
    def roughly(cls, index: int, rows: Tensor, rank: int) -> "_Place":
        """Its leading directions alone, by the smaller of two products: a hundredth of the work where rows are wide."""
        mean = rows.double().mean(0)
        centred = rows.double() - mean
        if len(rows) < len(mean):
            leading = torch.linalg.qr(centred.T @ torch.linalg.eigh(centred @ centred.T).eigenvectors[:, -rank:]).Q
        else:
            leading = torch.linalg.eigh(centred.T @ centred).eigenvectors[:, -rank:]
        return cls(index, mean, leading, len(rows))

    @property
    def most(self) -> int:
        """Directions that the rows can tell."""
        return max(1, min(len(self.mean), self.rows - 1))


@dataclass(frozen=True, slots=True)
class CutPlan:
    """Where a module will be cut, on which rows: before anything is computed, so that memory is announced for it.

    Attributes:
        widths: numbers per sample behind every layer through which everything passes.
        places: the layers of these that are tried.
        rows: samples that choose directions.
        judges: samples that judge them.
        batch: samples per forward pass.
        judged: of those that judge.
        needs: bytes of working memory.
        hindrance: why nothing is cut though a layer would allow it; empty otherwise.
    """

    widths: dict[int, int]
    places: tuple[int, ...]
    rows: int
    judges: int
    batch: int
    judged: int
    needs: int
    hindrance: str = ""

    @property
    def left_out(self) -> list[int]:
        """Layers that would allow a cut, and are too wide for one."""
        return [i for i in self.widths if i not in self.places]


def plan_cuts(session: DiagnosisSession, samples: Samples, budget: Budget) -> CutPlan:
    """Every layer that memory allows is tried on as many rows as there are; on fewer rows before on fewer layers.

    Memory is what was allowed, not what the passes over the data need: those need little of small data, and which
    layers were tried would depend on the number of rows.
    """
    widths = {
        i: session.structure.readings[i].z.numel() // session.size
        for i in session.structure.cuts()
        if session.axes[i] == 0 and session.structure.readings[i].z.is_floating_point()
    }
    judges = max(min(samples.num // 8, MOST_JUDGES), min(32, samples.num // 3))
    batch = max(1, (budget.peak - budget.fixed) // 2 // max(budget.per_sample, 1))
    compared = 8 * COPIES * session.num_outputs
    judged = max(1, min(batch, judges, COMPARED // max(compared, 1)))
    # what comes out for all rows that judge, and a few of them beside
    kept = judges * session.num_outputs * session.output.element_size() + judged * compared
    rows, room = min(samples.num, MOST_ROWS) - judges, (budget.allowed - budget.fixed) // 2 - kept
    tried, few = [i for i in widths if widths[i] <= WIDEST_PLACE], min(rows, ENOUGH_ROWS)
    while tried and _numbers(widths, tried) * few > room:
        tried.remove(max(tried, key=lambda i: (widths[i], i)))
    rows = min(rows, room // _numbers(widths, tried)) if tried else 0
    forward = min(batch, rows + judges) * budget.per_sample + kept
    hindrance = _hindrance(session, samples, tried) if widths else ""
    if hindrance or not tried:
        return CutPlan(widths, (), 0, judges, batch, judged, 0, hindrance)
    return CutPlan(widths, tuple(tried), rows, judges, batch, judged, _numbers(widths, tried) * rows + forward)


def _numbers(widths: dict[int, int], tried: Sequence[int]) -> int:
    """Bytes per row: what leaves these layers, and one decomposition."""
    return 8 * (sum(widths[i] for i in tried) + DECOMPOSED * max(widths[i] for i in tried))


def _hindrance(session: DiagnosisSession, samples: Samples, tried: Sequence[int]) -> str:
    if session.fixed_size:
        return "the module takes batches of one size only"
    if samples.num < FEWEST_ROWS:
        return f"that takes {FEWEST_ROWS} rows at least"
    return "" if tried else "every layer that would allow one is too wide, or the memory too small"


def narrow_places(
    session: DiagnosisSession, samples: Samples, plan: CutPlan, *, suggested: int | None, most_places: int = MOST_PLACES
) -> xr.Dataset | None:
    """How many directions of z = W a + b carry the output, judged by cuts on rows that did not choose them.

        lost(k) = |f(x) - f_k(x)|_F / |f(x) - mean|_F,   f_k: z onto its k leading principal directions
                                                         around its mean, as `factorise` cuts; the rest runs on

    All numbers of one sample (tokens, pixels) make one vector. Only layers through which everything passes are cut,
    those of the fewest directions first; ranks are found by bisection, that is, as if lost(k) fell.

    Args:
        session: what is known of the module.
        samples: data in memory, at most 1,024 rows of which are used, spread evenly; a part of them only judges.
        plan: which layers are tried, on how many rows.
        suggested: the rank that spectra suggest, of which it is said what is lost through it; None: they suggest none.
        most_places: how many layers are cut; one more that loses a tenth at most through the suggested rank.

    Returns:
        Dimensions "place" (coordinates "layer", its number, and "name") and "loss" (.1, .05, .01, .001): rank, NaN
        where more directions than the rows can tell are needed; lost, at that rank; width, numbers per sample there;
        stands, the rank at which what is lost falls from much to little, NaN where it falls smoothly (`judged_rank`);
        lost_at_suggested, NaN likewise; is_confirmed, whether a cut there bears the suggested rank out. Attributes:
        suggested (NaN where none is), widest (of all layers that cut), judges (rows), not_cut (names of layers that
        would allow a cut, and need no fewer directions than those that are cut), left_out (of those too wide for one).
        None where no layer is tried. *Estimate*: on held-out rows.
    """
    if not plan.places:
        return None
    chosen = min(samples.num, MOST_ROWS)
    rows = spread_rows(samples.num, chosen)
    rows = rows[torch.randperm(chosen, generator=torch.Generator().manual_seed(0))]
    trial = _Trial(session, samples, rows[: plan.judges].split(plan.judged))
    spectra = trial.leaving(plan.places, rows[plan.judges : plan.judges + plan.rows].split(plan.batch))
    widths = plan.widths
    if session.num_outputs == 1 and widths[max(spectra)] == 1:  # the output itself is no place among others
        most_places += 1
    narrowest = sorted(spectra, key=lambda i: (int(energy_rank(_values(spectra[i]), share=ENERGY)), widths[i], -i))
    others = narrowest[most_places:] if suggested is not None else []
    losses = {i: trial.lost_at(_Place.roughly(i, spectra[i], suggested or 0), suggested) for i in others}
    narrowest[most_places:] = sorted((i for i in losses if losses[i] <= LOSSES[0]), key=losses.__getitem__)[:1]
    found = [_Place.of_rows(i, spectra.pop(i)) for i in sorted(narrowest)]
    table, readings = _table(trial, found, suggested), session.structure.readings
    left_out = [readings[i].name for i in plan.left_out]
    not_cut = [readings[i].name for i in plan.places if i not in narrowest]
    return table.assign_attrs(widest=max(widths.values()), judges=plan.judges, not_cut=not_cut, left_out=left_out)


def _values(rows: Tensor) -> Tensor:
    centred = rows.double() - rows.double().mean(0)
    small = centred @ centred.T if len(rows) < centred.shape[1] else centred.T @ centred
    return torch.linalg.eigvalsh(small).flip(0).clamp_min(0).sqrt()


class Ends:
    """Between which ends each output lies over the data."""

    def __init__(self) -> None:
        self._low: Tensor | None = None
        self._high: Tensor | None = None
        self._is_known = True

    def take(self, output: Tensor) -> None:
        """Those of more rows."""
        rows = output.flatten(1) if output.ndim > 1 else output[:, None]
        self._is_known &= rows.numel() > 0 and (self._low is None or self._low.shape == rows.shape[1:])
        if not self._is_known:  # sequences of other lengths
            return
        low, high = rows.amin(0), rows.amax(0)
        self._low = low if self._low is None else torch.minimum(self._low, low)
        self._high = high if self._high is None else torch.maximum(self._high, high)

    def rounding(self) -> float:
        """The rounding eps |f| where no output varies by more than its sums round; 0 where one does."""
        if not self._is_known or self._low is None or self._high is None or not self._low.dtype.is_floating_point:
            return 0.0
        eps = torch.finfo(self._low.dtype).eps
        largest = float(torch.maximum(self._low.abs(), self._high.abs()).max())
        is_still = math.isfinite(largest) and float((self._high - self._low).max()) <= STILL * eps * largest
        return torch.finfo(torch.float64).eps * largest if is_still else 0.0


class _Trial:
    """The module on the rows that judge, as it is and cut."""

    def __init__(self, session: DiagnosisSession, samples: Samples, judges: Sequence[Tensor]) -> None:
        self.session, self.samples, self.judges = session, samples, judges
        self._names = Names(session.streamed.module)
        self._target = [self._output(part, Listener()) for part in self._parts(judges)]
        mean = torch.zeros_like(self._target[0][0], dtype=torch.float64)
        for part in self._target:
            mean += part.sum(0, dtype=torch.float64) / sum(map(len, judges))
        self._spread = math.sqrt(sum(float((part.double() - mean).square().sum()) for part in self._target))
        ends = Ends()
        for part in self._target:
            ends.take(part)
        self._is_still = ends.rounding() > 0 or not self._spread
        largest = max((float(part.abs().max()) for part in self._target if part.numel()), default=0.0)
        numbers = sum(part.numel() for part in self._target)
        self._rounding = STILL * torch.finfo(self._target[0].dtype).eps * largest * math.sqrt(numbers)

    def leaving(self, places: Sequence[int], rows: Sequence[Tensor]) -> dict[int, Tensor]:
        """What leaves these layers on rows that do not judge, batch by batch."""
        listener = Keeping(places)
        for part in self._parts(rows):
            listener.begin(part)
            self._output(part, listener)
        return {i: listener.rows(i) for i in places}

    def lost(self, place: _Place, rank: int) -> float:
        """The share of the output's spread that is lost through so many directions; remembered."""
        if rank not in place.lost:
            square, axes = 0.0, place.axes[:, :rank]
            for part, wanted in zip(self._parts(self.judges), self._target, strict=True):
                cut = self._output(part, Projecting(place.index, place.mean, axes, part))
                square += float((cut.double() - wanted.double()).square().sum())
            place.lost[rank] = self._share(math.sqrt(square))
        return place.lost[rank]

    def _share(self, changed: float) -> float:
        # of outputs that vary by their rounding alone nothing can be lost, and what a cut changes of that says nothing
        if self._is_still:
            return 0.0 if changed <= self._rounding else math.inf
        share = changed / self._spread
        return math.inf if math.isnan(share) else share

    def lost_at(self, place: _Place, rank: int | None) -> float:
        """The same; NaN where the rows cannot tell so many directions, or nobody suggests a rank."""
        return self.lost(place, min(rank, len(place.mean))) if rank is not None and rank < place.rows else math.nan

    def least_rank(self, place: _Place, loss: float) -> int | None:
        """The fewest directions through which no more than `loss` is lost."""
        return least_rank(partial(self.lost, place), place.most, loss)

    def _output(self, part: Samples, listener: Listener) -> Tensor:
        give_back()
        with torch.no_grad():
            output = record(self.session.streamed, self._names, part, listener)
            return part.without_padding(output).reshape(part.num, -1)

    def _parts(self, rows: Sequence[Tensor]) -> Iterator[Samples]:
        replica = self.session.streamed
        return (self.samples.at(part, replica.dtype, replica.device) for part in rows)


def _table(trial: _Trial, places: Sequence[_Place], suggested: int | None) -> xr.Dataset:
    ranks = [[trial.least_rank(place, loss) for loss in LOSSES] for place in places]
    lost = [
        [math.nan if k is None else trial.lost(p, k) for k in found] for p, found in zip(places, ranks, strict=True)
    ]
    names = [trial.session.structure.readings[p.index].name for p in places]
    losses = [partial(trial.lost_at, place) for place in places]
    stands = [standing(found, lost) for found, lost in zip(ranks, losses, strict=True)]
    return xr.Dataset(
        {
            "rank": (("place", "loss"), np.array([*map(_numbers_of, ranks)])),
            "lost": (("place", "loss"), np.array(lost)),
            "width": (("place",), np.array([len(p.mean) for p in places])),
            "stands": (("place",), np.array(_numbers_of(stands))),
            "lost_at_suggested": (("place",), np.array([lost(suggested) for lost in losses])),
            "is_confirmed": (("place",), np.array([is_confirmed(suggested, lost) for lost in losses])),
        },
        coords={
            "layer": ("place", np.array([p.index + 1 for p in places])),
            "name": ("place", names),
            "loss": list(LOSSES),
        },
        attrs={"suggested": math.nan if suggested is None else suggested},
    )


def _numbers_of(ranks: Sequence[int | None]) -> list[float]:
    return [math.nan if k is None else float(k) for k in ranks]
