"""What is lost at the output when the data pass through few directions behind one matrix: ranks that a cut has judged.

Ranks that spectra and Jacobians suggest: `rank`. Modules that are cut for good: `discovery.chains.cutting`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from isthmus.diagnostics.budget import Budget, give_back
from isthmus.diagnostics.evaluation import record
from isthmus.diagnostics.module_names import Names
from isthmus.diagnostics.recording import Listener
from isthmus.diagnostics.samples import Samples
from isthmus.diagnostics.session import DiagnosisSession
from isthmus.theory.spectra import energy_rank

LOSSES = (0.1, 0.05, 0.01, 0.001)  # of the output's spread
WIDEST_PLACE = 16_384  # numbers per sample, above which a place is not cut
MOST_PLACES = 3  # that are cut, those of the fewest directions first
FEWEST_ROWS, MOST_ROWS, MOST_JUDGES = 8, 1024, 128
ENERGY = 0.99  # of what leaves a layer, by which the narrowest are picked


@dataclass(slots=True, eq=False)
class _Keeping(Listener):
    """Keeps what leaves some layers, one flat row for each sample."""

    places: Sequence[int]
    num: int = 0
    kept: dict[int, list[Tensor]] = field(default_factory=dict[int, list[Tensor]])
    _index: int = -1

    def begin(self, num: int) -> None:
        self.num, self._index = num, -1

    def produced(self, z: Tensor) -> None:
        self._index += 1
        if self._index in self.places:
            self.kept.setdefault(self._index, []).append(z.reshape(self.num, -1).clone())


@dataclass(slots=True, eq=False)
class _Projecting(Listener):
    """Lets through only some directions of what leaves one layer, around the mean."""

    place: int
    mean: Tensor
    axes: Tensor
    num: int
    _index: int = -1

    def produced(self, z: Tensor) -> Tensor | None:
        self._index += 1
        if self._index != self.place:
            return None
        flat = z.reshape(self.num, -1).double() - self.mean
        return (self.mean + flat @ self.axes @ self.axes.T).to(z.dtype).reshape(z.shape)


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

    @property
    def most(self) -> int:
        """Directions that the rows can tell."""
        return max(1, min(len(self.mean), self.rows - 1))


def narrow_places(
    session: DiagnosisSession, samples: Samples, budget: Budget, *, suggested: int, most_places: int = MOST_PLACES
) -> xr.Dataset | None:
    """How many directions of z = W a + b carry the output, judged by cuts on rows that did not choose them.

        lost(k) = |f(x) - f_k(x)|_F / |f(x) - mean|_F,   f_k: z onto its k leading principal directions
                                                         around its mean, as `factorise` cuts; the rest runs on

    All numbers of one sample (tokens, pixels) make one vector. Only layers through which everything passes are cut,
    those of the fewest directions first; ranks are found by bisection, that is, as if lost(k) fell.

    Args:
        session: what is known of the module.
        samples: data in memory, at most 1,024 rows of which are used, spread evenly; a part of them only judges.
        budget: what was announced, which this keeps to.
        suggested: the rank that spectra suggest, of which it is said what is lost through it.
        most_places: how many layers are cut.

    Returns:
        Dimensions "place" (coordinates "layer", its number, and "name") and "loss" (.1, .05, .01, .001): rank, NaN
        where more directions than the rows can tell are needed; lost, at that rank; width, numbers per sample there;
        lost_at_suggested, NaN likewise. Attributes: suggested, widest (of all layers that cut), judges (rows). None
        where no layer cuts the module, or rows or memory do not allow it. *Estimate*: on held-out rows.
    """
    judged = max(min(samples.num // 8, MOST_JUDGES), min(32, samples.num // 3))
    chosen = min(samples.num, MOST_ROWS)
    if session.fixed_size or chosen < FEWEST_ROWS:
        return None
    widths = {
        i: session.structure.readings[i].z.numel() // session.size
        for i in session.structure.cuts()
        if session.axes[i] == 0 and session.structure.readings[i].z.is_floating_point()
    }
    room = (budget.peak - budget.fixed) // 2
    places = _that_fit(widths, chosen - judged, room)
    if not places:
        return None
    batch = max(1, room // max(budget.per_sample, 1))
    rows = torch.linspace(0, samples.num - 1, chosen).long()
    rows = rows[torch.randperm(chosen, generator=torch.Generator().manual_seed(0))]
    trial = _Trial(session, samples, rows[:judged], batch)
    spectra = trial.leaving(places, rows[judged:])
    narrowest = sorted(spectra, key=lambda i: (int(energy_rank(_values(spectra[i]), share=ENERGY)), widths[i], -i))
    found = [_Place.of_rows(i, spectra[i]) for i in sorted(narrowest[:most_places])]
    return _table(trial, found, suggested, max(widths.values()))


def _that_fit(widths: dict[int, int], rows: int, room: int) -> list[int]:
    """The layers, narrowest first, whose rows, and one decomposition, stay within so many bytes."""
    kept, total = list[int](), 0
    for i in sorted(widths, key=widths.__getitem__):
        total += widths[i]
        if widths[i] <= WIDEST_PLACE and 8 * rows * (total + 5 * widths[i]) <= room:
            kept.append(i)
    return kept


def _values(rows: Tensor) -> Tensor:
    centred = rows.double() - rows.double().mean(0)
    small = centred @ centred.T if len(rows) < centred.shape[1] else centred.T @ centred
    return torch.linalg.eigvalsh(small).flip(0).clamp_min(0).sqrt()


class _Trial:
    """The module on the rows that judge, as it is and cut."""

    def __init__(self, session: DiagnosisSession, samples: Samples, judges: Tensor, batch: int) -> None:
        self.session, self.samples, self.judges, self.batch = session, samples, judges, batch
        self._names = Names(session.streamed.module)
        self._target = [self._output(part, Listener()).double() for part in self._parts(judges)]
        whole = torch.cat(self._target)
        self._spread = float((whole - whole.mean(0)).norm())

    def leaving(self, places: Sequence[int], rows: Tensor) -> dict[int, Tensor]:
        """What leaves these layers on rows that do not judge."""
        listener = _Keeping(places)
        for part in self._parts(rows):
            listener.begin(part.num)
            self._output(part, listener)
        return {i: torch.cat(parts) for i, parts in listener.kept.items()}

    def lost(self, place: _Place, rank: int) -> float:
        """The share of the output's spread that is lost through so many directions; remembered."""
        if rank not in place.lost:
            square, axes = 0.0, place.axes[:, :rank]
            for part, wanted in zip(self._parts(self.judges), self._target, strict=True):
                cut = self._output(part, _Projecting(place.index, place.mean, axes, part.num))
                square += float((cut.double() - wanted).square().sum())
            share = square**0.5 / self._spread if self._spread else 0.0 if not square else math.inf
            place.lost[rank] = math.inf if math.isnan(share) else share
        return place.lost[rank]

    def lost_at(self, place: _Place, rank: int) -> float:
        """The same; NaN where the rows cannot tell so many directions."""
        return self.lost(place, min(rank, len(place.mean))) if rank <= place.rows - 1 else math.nan

    def least_rank(self, place: _Place, loss: float) -> int | None:
        """The fewest directions through which no more than `loss` is lost."""
        low, high = 0, place.most
        if self.lost(place, high) > loss:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.lost(place, middle) <= loss else (middle, high)
        return high

    def _output(self, part: Samples, listener: Listener) -> Tensor:
        give_back()
        with torch.no_grad():
            output, real = record(self.session.streamed, self._names, part, listener), part.real_tokens
            if real is not None and output.shape[:2] == real.shape:  # nobody reads what padding becomes
                output = output * real.reshape(*real.shape, *[1] * (output.ndim - 2))
            return output.reshape(part.num, -1)

    def _parts(self, rows: Tensor) -> list[Samples]:
        replica = self.session.streamed
        return [self.samples.at(part, replica.dtype, replica.device) for part in rows.split(self.batch)]


def _table(trial: _Trial, places: Sequence[_Place], suggested: int, widest: int) -> xr.Dataset:
    ranks = [[trial.least_rank(place, loss) for loss in LOSSES] for place in places]
    lost = [
        [math.nan if k is None else trial.lost(p, k) for k in found] for p, found in zip(places, ranks, strict=True)
    ]
    names = [trial.session.structure.readings[p.index].name for p in places]
    return xr.Dataset(
        {
            "rank": (("place", "loss"), np.array([[math.nan if k is None else k for k in found] for found in ranks])),
            "lost": (("place", "loss"), np.array(lost)),
            "width": (("place",), np.array([len(p.mean) for p in places])),
            "lost_at_suggested": (("place",), np.array([trial.lost_at(p, suggested) for p in places])),
        },
        coords={
            "layer": ("place", np.array([p.index + 1 for p in places])),
            "name": ("place", names),
            "loss": list(LOSSES),
        },
        attrs={"suggested": suggested, "widest": widest, "judges": len(trial.judges)},
    )
