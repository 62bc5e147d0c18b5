"""`compress`: the same function with fewer and narrower layers, within a tolerance that is proved on unseen samples.

The search: `chains.compression_search`. How a module is taken apart: `networks.chain`. Files: `files`.
"""

from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from isthmus.diagnostics.replica import undisturbed
from isthmus.discovery.chains.batch_norms import without_batch_norms
from isthmus.discovery.chains.compression_search import Change, CompressionSearch, parameters
from isthmus.discovery.chains.error_bounds import UNSEEN, RowErrors, errors_against
from isthmus.discovery.chains.module_input import checked_input, checked_output
from isthmus.discovery.chains.not_slower import Timed, not_slower
from isthmus.discovery.chains.polishing import POLISHES, polished_attempts
from isthmus.discovery.chains.proofs import Proved, attempts, proved
from isthmus.discovery.chains.rows import drawn, spacing, three_parts
from isthmus.discovery.chains.running_cost import TimedPasses, flops, num_parameters, race
from isthmus.discovery.chains.sites import has_sites, refusals
from isthmus.networks.arguments import AnyModule, module_argument, positive_argument
from isthmus.networks.copies import copied_module
from isthmus.networks.devices import made_on_cpu, with_gradients
from isthmus.networks.opening import chain_or_parts
from isthmus.writing.shown import Shown

# rows that the search fits, judges and reports on, at most
MOST_FITTING, MOST_JUDGING, MOST_REPORTING = 8192, 2048, 8192
LEAST_TIMED, MOST_TIMED = 256, 1024  # samples of a pass that is timed; of fewer the calls of Python would be most
LEAST_ROWS = 5
_APART = "left as it is: weights that serve in several places came apart, and all moves save less than that costs"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compression(Shown):
    """A network made smaller, what that cost, and what was left alone.

    Attributes:
        module: the new network, in eval mode, without gradients; a copy of the old one where nothing could be saved.
        relative_error: |new(x) - old(x)|_F / |old(x) - mean|_F on samples without a say (*exact* there).
        error_bound: what it is below on fresh samples, with 95 % confidence; at most the tolerance (see `compress`).
        rows_reporting: number of those samples. What happens on fewer than 3 in so many they do not show.
        speedup: seconds of a forward pass before over after, the median of passes in turn; 1 where nothing was changed.
        speedup_interval: in which that median is, with 95 % confidence.
        seconds_before: median seconds of a forward pass on 256 to 1024 samples.
        seconds_after: the same of the new network.
        flops_before: operations of matrix products and convolutions for one sample.
        flops_after: the same of the new network.
        parameters_before: number of parameters.
        parameters_after: the same of the new network.
        changes: the moves that were kept, in order.
        refused: (name of a layer, reason) for what was left alone; what is particular to the layer in brackets.
        was_tried: whether the structure allowed anything to be tried.
    """

    module: nn.Module
    relative_error: float
    error_bound: float
    rows_reporting: int
    speedup: float
    speedup_interval: tuple[float, float]
    seconds_before: float
    seconds_after: float
    flops_before: int
    flops_after: int
    parameters_before: int
    parameters_after: int
    changes: tuple[Change, ...]
    refused: tuple[tuple[str, str], ...]
    was_tried: bool

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing was saved; `refused` says why."""
        return not self.changes


@made_on_cpu
@with_gradients
def compress(
    module: AnyModule,
    x: Tensor | DataLoader[Any] | Dataset[Any],
    *,
    tolerance: float,
    heldout: Tensor | None = None,
    allow_slower: bool = False,
    polish: str | None = None,
) -> Compression:
    """The network with fewer neurons and layers, as long as its output stays within a tolerance on fresh samples.

        minimise parameters   subject to   |new(x) - old(x)|_F <= tolerance |old(x) - mean|_F

    Of x three parts are made (seed 0): one fits the moves, one chooses among them, one reports. The moves are tested
    in their order on the part that reports, and kept up to the first at which the bound on the error of fresh samples
    exceeds the tolerance: with 95 % confidence the network that comes back is within it (a test in fixed order needs
    no correction for their number). The bound takes samples as independent draws of one distribution, none of them
    further off than the worst that reports or than twice the tolerance: what n samples do not show may happen on one
    in n / 3, a neuron that wakes among it. Samples that lie far from others are dealt to all three parts, and where
    few of a rare kind report, the worst of them is taken some times further (`rows.Spacing`). Where nothing was off the
    bound still is 2 sqrt(1 - .05^(1/n)) times the tolerance; fewer than 11 samples that report (33 in all) prove
    nothing, and of few little is saved. Of 154 compressions by 100 or 200 samples 9 exceeded the bound on 5,000 fresh
    ones: 4 of 84 on normal rows and heavy tails (t of 3 degrees, log-normal), 5 of 70 where 1, 3 or 10 of 100 rows are
    of another kind, none of which was among the samples in any of the five.

    Greedy (*heuristic*): dead, constant and parallel neurons go (exact moves); then, whichever saves most comes
    first: neurons are dropped by pivoted QR and the next layer is refitted by least squares, linear maps and
    convolutions go through their principal subspace, near-linear layers are merged into the next. Batch norms are
    folded. Where it is measured to be slower, by more than the spread of passes in turn and 20 microseconds, as few
    maps in two factors as it takes are one again, or moves are taken back. In a residual sum x + F(x) the stream
    keeps its width and F is made smaller inside. Nothing is moved through attention, layer norm, shortcuts with
    layers of their own and whatever else couples features, nor through a module that cannot be traced; their parts
    that take and give one tensor are made smaller in their places, on what enters them, and the whole output
    decides. Encoder layers of torch are written out for that, and put together again where no map of theirs is left
    in two factors.

    Args:
        module: takes one tensor with samples first and gives one; it is not changed, and is looked at in eval mode.
            Of one that was compiled, or spread over devices, what stands inside; of an exported program its module. Its
            own forward hooks run with every copy: take off what keeps the tensors that it hears.
        x: samples as the module takes them, at least 5; numbers are cast to its floating-point type. Or a data set, or
            a DataLoader, all of whose batches are taken into memory without their targets.
        tolerance: largest relative error, > 0.
        heldout: samples that report, at most 8192 of them; x then is cut in two parts only. By default a fifth of x, of
            few up to a third.
        allow_slower: keep the smallest network however long it takes: six channels may be faster than four.
        polish: "distil": the search goes beyond the tolerance, and some networks on its way are trained against the
            outputs of the original by 200 steps of L-BFGS on at most 2048 samples.

    Returns:
        The new network (a `FullyConnected` if one came, a `Sequential`, or the module with other parts), its error,
        operations and measured speed, the moves, and the reasons for what was left alone.

    Raises:
        ValueError: `tolerance` is not positive and finite, or another `polish`.
        ShapeError: fewer than 5 samples.
        DataError: NaN in the samples or in the answers, the module fails on them (says with what), or gives several
            tensors with a row per sample: what is proved is of one.

    Accuracy: the error is measured in the module's own type. Source: ours (merging); pivoted QR and
    reduced-rank regression elsewhere. Test: discovery/chains/test_compression.

    >>> isthmus.compress(module, torch.from_numpy(x).float(), tolerance=0.5).relative_error <= 0.5  # doctest: +SKIP
    True
    """
    tolerance = positive_argument(
        tolerance, f"compress(tolerance={tolerance!r:.40})", "a finite tolerance > 0, relative to the output's spread"
    )
    if polish not in (None, *POLISHES):
        raise ValueError(f"compress(polish={polish!r}): needs None or one of {', '.join(map(repr, POLISHES))}.")
    module = module_argument(module, "compress(module, x)")
    with undisturbed(module):  # loaders draw from it too
        x = checked_input("compress", module, x, least_rows=LEAST_ROWS)
        rows = _parts(x, None if heldout is None else checked_input("compress", module, heldout, least_rows=1))
        return _compressed(module, rows, tolerance, allow_slower=allow_slower, polish=polish)


def _compressed(
    module: nn.Module, rows: "_Rows", tolerance: float, *, allow_slower: bool, polish: str | None
) -> Compression:
    old = copied_module(module).eval().requires_grad_(False)
    targets = [checked_output("compress", old, part, alone=True) for part in (rows.choosing, rows.reporting)]
    chain, norms = without_batch_norms(chain_or_parts(old, rows.fitting))
    judged = errors_against(targets[0], rows.choosing)
    reported = errors_against(targets[1], rows.reporting, UNSEEN * tolerance, rows.reach)
    search = CompressionSearch(chain, rows.fitting, lambda stages: judged(stages).bound, tolerance)
    search.run()
    tried = (
        attempts(search) if polish is None else polished_attempts(search, checked_output("compress", old, rows.fitting))
    )
    too_costly = [(site.partition(": ")[0], _cost(site, e, tolerance)) for site, e in search.refused.items()]
    refused = tuple(dict.fromkeys([*refusals(chain), *too_costly]))  # a layer may stand in several places
    all_proved = proved(tried, (chain, norms, old), reported, tolerance)
    kept = [p for p in all_proved if parameters(p.stages) <= num_parameters(old)]
    if not kept:
        why = ((_name(module), _APART),) if all_proved else _unproved(search, rows, tolerance)
        return _unchanged(old, rows, (*refused, *why), was_tried=has_sites(chain))
    timed = not_slower(old, kept, rows.timed, allow_slower=allow_slower)
    if timed is None:
        slow = (
            f"left as it is: with {parameters(kept[-1].stages)} parameters it was measured to be slower "
            "(allow_slower=True, --allow-slower keeps it)"
        )
        return _unchanged(old, rows, (*refused, (_name(module), slow)), was_tried=has_sites(chain))
    return _measured(old, timed, rows.reporting, refused=refused, was_tried=has_sites(chain))


class _Rows(NamedTuple):
    """Samples by what they are for."""

    fitting: Tensor
    choosing: Tensor
    reporting: Tensor
    reach: float

    @property
    def timed(self) -> Tensor:
        """Samples for a pass that is timed, some of them several times where they are few."""
        times = -(-LEAST_TIMED // len(self.reporting))
        return self.reporting.repeat(times, *[1] * (self.reporting.ndim - 1))[:MOST_TIMED]


def _parts(x: Tensor, heldout: Tensor | None) -> _Rows:
    spaced = spacing(x)
    parts = three_parts(len(x), seed=0, apart=None if spaced is None else spaced.apart)
    fit, choose, report = (torch.from_numpy(part) for part in parts)
    fit = fit if heldout is None else torch.cat([fit, report]).sort().values
    reporting, places = (x[report], parts[2]) if heldout is None else (heldout, np.arange(len(heldout)))
    spaced = spaced if heldout is None else spacing(heldout)
    beyond = 1.0 if spaced is None else spaced.reach(places)
    fitting, choosing = x[drawn(fit, MOST_FITTING)], x[drawn(choose, MOST_JUDGING)]
    return _Rows(fitting, choosing, drawn(reporting, MOST_REPORTING), beyond)


def _unproved(search: CompressionSearch, rows: _Rows, tolerance: float) -> tuple[tuple[str, str], ...]:
    """The reason why moves that the search liked were not kept, where there were any."""
    if not search.changes:
        return ()
    first = search.changes[0]
    why = f"{first.what}: {len(rows.reporting)} samples that had no say do not prove an error below {tolerance:.4g}"
    return ((first.layers[0], why),)


def _measured(
    old: nn.Module, found: Timed, x: Tensor, *, refused: tuple[tuple[str, str], ...], was_tried: bool
) -> Compression:
    times, least, most = found.race.times_as_fast
    return Compression(
        module=found.module,
        relative_error=found.proved.errors.relative_error,
        error_bound=found.proved.errors.bound,
        rows_reporting=len(x),
        speedup=times,
        speedup_interval=(least, most),
        seconds_before=median(found.race.before),
        seconds_after=median(found.race.after),
        flops_before=flops(old, x),
        flops_after=flops(found.module, x),
        parameters_before=num_parameters(old),
        parameters_after=num_parameters(found.module),
        changes=found.proved.changes,
        refused=refused,
        was_tried=was_tried,
    )


def _unchanged(old: nn.Module, rows: _Rows, refused: tuple[tuple[str, str], ...], *, was_tried: bool) -> Compression:
    """The network as it came."""
    seconds = race(old, old, rows.timed).before
    timed = Timed(old, Proved([], (), RowErrors(np.zeros(2), np.ones(2))), TimedPasses(seconds, seconds))
    return _measured(old, timed, rows.reporting, refused=refused, was_tried=was_tried)


def _cost(site: str, error: float, tolerance: float) -> str:
    return (
        f"{site.partition(': ')[2]}: the least saving already costs more than {tolerance:.4g} (an error of {error:.4g})"
    )


def _name(module: nn.Module) -> str:
    return type(module).__name__
