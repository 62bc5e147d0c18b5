"""A diagnosis with derivatives, of data in memory.

By forward passes alone: `streaming`. The Jacobians themselves: `derivatives`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import xarray as xr
from torch import Tensor, nn

from isthmus.diagnostics.budget import announcement
from isthmus.diagnostics.derivatives import Derivatives
from isthmus.diagnostics.diagnosis import Diagnosis, warnings_of
from isthmus.diagnostics.judged_rank import judged
from isthmus.diagnostics.layer_sums import LayerSums
from isthmus.diagnostics.movement import Movement
from isthmus.diagnostics.narrow_places import Ends, narrow_places, plan_cuts
from isthmus.diagnostics.objective import LossOverData
from isthmus.diagnostics.rank import OF_INPUTS, ROUNDING, UpperBound, is_rounding, rank_of, upper_bound
from isthmus.diagnostics.replica import undisturbed
from isthmus.diagnostics.samples import Samples
from isthmus.diagnostics.session import DiagnosisSession, open_session
from isthmus.diagnostics.stream_columns import add_leaky_columns, add_stream_columns
from isthmus.diagnostics.whole_table import fewest_numbers, gaps_in, uncut, whole_table
from isthmus.networks import LeakyResNet
from isthmus.networks.departures import departure
from isthmus.networks.network import penalty_of
from isthmus.theory import RankEstimate
from isthmus.theory.inputs import Real
from isthmus.training.limits import Limits

FLOATS = 100  # times the rounding of the type in which derivatives were taken, where no float64 copy could be made
MOVED = 4  # times the rounding of the inputs, which a direction made of others moves by

CONSTANT = (
    "What the inputs change of the outputs is below their rounding: the network computes a constant on these data, and "
    "no rank is read off its Jacobian."
)


@dataclass(frozen=True, slots=True)
class Given:
    """What a diagnosis with derivatives is asked for.

    Attributes:
        samples: all of them.
        y: targets.
        ridge: of the training.
        loss: of the targets.
        penalised: names of the parameters that the ridge weighs.
        at_once: whether all samples always come together.
    """

    samples: Samples
    y: Tensor | None
    ridge: Real | None
    loss: LossOverData | None
    penalised: frozenset[str]
    at_once: bool = False


def with_derivatives(network: nn.Module, given: Given, limits: Limits, hear: Callable[[str], None]) -> Diagnosis:
    """The diagnosis with Jacobians, costs of streams, and with targets the loss.

    Raises:
        GradientsStop: no derivative arrives at the inputs. DataError: as `diagnose` has it.
    """
    samples = given.samples
    with undisturbed(network), open_session(network, samples, at_once=given.at_once) as session:
        budget = session.budget(limits.memory)
        plan, points = plan_cuts(session, samples, budget), session.num_points()
        sentence = announcement(
            budget, cuts=plan.needs, num_samples=samples.num, num_points=points, num_outputs=session.num_outputs,
            layers=len(session.structure.readings),
        )  # fmt: skip
        hear(sentence)
        layers, losses, ends = _streamed(session, given, budget.batch)
        derivatives = session.derivatives(points, budget.points)
        table, unread = whole_table(session, network, layers, derivatives)
        table.attrs |= {"cost": sentence, "precision": session.precision, **losses}
        half = samples.num if session.fixed_size else max(1, budget.batch // 2)
        said = _add_streams(table, session, layers, given, half)
        least = ends.rounding()
        reading = _rank(session, layers, derivatives, table, least)
        cuts = narrow_places(session, samples, plan, suggested=reading.estimate)
        rank = judged(reading, cuts, hindrance=plan.hindrance, narrower_than=fewest_numbers(session))
    still = [CONSTANT] if is_rounding(derivatives.by_input, least) else []
    warnings = (*session.doubts, *warnings_of(layers, samples.num), *still, *said, *uncut(plan))
    return Diagnosis(layers=table, rank=rank, skipped=unread, warnings=warnings, cuts=cuts)


def _streamed(session: DiagnosisSession, given: Given, batch: int) -> tuple[list[LayerSums], dict[str, Real], Ends]:
    """The sums over all data; with targets the data loss, with a ridge too the objective; where outputs lie."""
    loss, parts, ends = given.loss, list[float](), Ends()

    def heard(output: Tensor, start: int) -> None:
        ends.take(output.detach())
        if loss is not None:
            parts.append(float(loss.part(output.double(), start)))

    layers = session.sums(batch, heard)
    if loss is None:
        return layers, {}, ends
    losses: dict[str, Real] = {"data_loss": sum(parts)}
    if given.ridge is not None:
        losses["objective"] = sum(parts) + given.ridge * float(penalty_of(session.exact.module, given.penalised))
    return layers, losses, ends


def _rank(
    session: DiagnosisSession, layers: list[LayerSums], derivatives: Derivatives, table: xr.Dataset, least: float
) -> RankEstimate:
    """The rank, between what a Jacobian shows and what the structure allows."""
    movement = Movement.of(session.samples)
    upper = upper_bound(
        layers, session.structure.cuts(), num_samples=session.samples.num,
        num_inputs=session.samples.num_inputs, num_outputs=session.num_outputs,
    )  # fmt: skip
    rounding = max(ROUNDING, FLOATS * torch.finfo(session.exact.dtype).eps) if session.exact.dtype else ROUNDING
    rounding = min(max(rounding, MOVED * movement.rounding()), 0.5)

    def below(bound: UpperBound) -> RankEstimate:
        return rank_of(
            derivatives.by_input, gaps_in(table), upper=bound, num_projections=derivatives.num_projections,
            num_directions=movement.most(), rounding=rounding, least=least,
        )  # fmt: skip

    found, directions = below(upper), movement.rank()
    if directions is None or not found.lower <= directions < upper.rank:
        return found
    return below(UpperBound(directions, OF_INPUTS))


def _add_streams(
    table: xr.Dataset, session: DiagnosisSession, layers: list[LayerSums], given: Given, batch: int
) -> list[str]:
    """The columns of a residual stream; sentences that warn."""
    network = session.exact.module
    if not isinstance(network, LeakyResNet) or departure(network, LeakyResNet):
        add_stream_columns(table, session, layers, batch=batch, loss=given.loss, ridge=given.ridge)
        return []
    x = given.samples.positional[0].double().to(session.exact.device)
    named = given.loss.loss if given.loss else None
    is_other = named is not None and not named.is_quadratic  # the energies are those of the squared error
    y = None if given.y is None or is_other else torch.as_tensor(given.y).to(x)
    return add_leaky_columns(table, network, x, y, given.ridge)
