"""`diagnose`: the per-layer table of any module on data."""

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from isthmus.diagnostics.budget import LARGEST_BATCH
from isthmus.diagnostics.derivatives import GradientsStop
from isthmus.diagnostics.diagnosis import Diagnosis, warnings_of
from isthmus.diagnostics.judged_rank import judged
from isthmus.diagnostics.narrow_places import narrow_places
from isthmus.diagnostics.objective import LossOverData
from isthmus.diagnostics.recording import OtherCalls
from isthmus.diagnostics.replica import undisturbed
from isthmus.diagnostics.samples import Inputs, Samples
from isthmus.diagnostics.session import open_session
from isthmus.diagnostics.streaming import Stream, is_stream, rank_without_jacobians, streamed
from isthmus.diagnostics.whole_table import fewest_numbers, gaps_in, uncut, whole_table
from isthmus.diagnostics.with_derivatives import Given, with_derivatives
from isthmus.errors import DataError
from isthmus.networks.arguments import AnyModule, check_ridge, module_argument
from isthmus.networks.devices import device_argument, made_on_cpu, on_device, with_gradients
from isthmus.networks.network import penalised
from isthmus.tasks.foreign import check_row_labels
from isthmus.theory.inputs import Real
from isthmus.training.limits import Limits, limits_argument
from isthmus.training.losses import Loss, loss_argument

_LOG = logging.getLogger(__name__)
LEAST_ROWS = 2  # of which a spectrum can be taken
SMALL_MODULE = 50_000  # parameters below which derivatives are always taken


@made_on_cpu
@with_gradients
def diagnose(
    module: AnyModule,
    x: Inputs | Iterable[object],
    y: Tensor | None = None,
    *,
    jacobians: bool | None = None,
    ridge: Real | None = None,
    loss: str | Loss | None = None,
    limits: Limits | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] | None = None,
    device: torch.device | str | None = None,
) -> Diagnosis:
    """What each layer of a network does on data, for any module.

    A layer is a product with a weight matrix, however it is written: `nn.Linear`, convolutions (W is d_out x channels *
    kernel size), attention projections, functional code, exported programs; a second use of a weight is a layer of its
    own, "name#2". Rows are samples; tokens, patches and pixels count as samples too, and a warning says so.

    Args:
        module: evaluated in evaluation mode, and left as it was. Its own forward hooks run with every pass, on copies
            too: take off what keeps the tensors that it hears.
        x: samples as rows: one tensor, a tuple, or a dict by argument name; whole numbers where the module takes them.
            Or a DataLoader, or any iterable of such batches (of a list the first entry, the input), read once.
            "labels" in a dict are left out, and tokens that its mask calls padding ("attention_mask" and the like).
        jacobians: False: forward passes alone, in the module's own precision with float64 sums; what needs derivatives,
            targets or a float64 copy is left out, and nothing is known of the rank from below. None: so where
            derivatives cost more than ten passes over the data and 1e10 multiplications, or memory does not hold them,
            or data are an iterable, or `limits.seconds` is set; a warning says so. `limits.rows` (the first so many)
            and `limits.seconds` end the passes early, and a warning says how far they came; no derivatives are taken
            within a limit of seconds.
        y: targets; with them the data loss stands in the table's attributes.
        ridge: with it the objective stands there too: data loss + ridge * module.penalty(), or ridge times the sum of
            squares of all trainable parameters (of all, where none is), as `fit` has it; what is divided by it (see
            below) needs one above 0.
        loss: of the training, by name or as an object; None: squared error, or cross-entropy for whole numbers.
        limits: `memory` bounds the bytes of working memory beyond the data and the module, 2 GiB unless given.
        checkpoint: a file in which forward passes keep their sums, once a minute and where a limit ends them: the same
            call goes on from there with the same sums, and one with larger limits too; the data are read again up to
            there, and must be the same in the same order. It stays, of all data too, until you remove it.
        progress: hears one sentence, what it will cost, before the work starts; so does the log.
        device: where it is computed, on a copy of the module: "cpu", "cuda" or "auto"; None: where the module is.

    Returns:
        The rank, from below by singular values of the Jacobian times the root of the covariance of the inputs, so that
        directions in which no row moves count for nothing; and a table with one entry per layer l (coordinates "layer"
        and "name"):

        - weight_singular_values, of W_l; preactivation_singular_values and activation_singular_values, of the centred
          z_l and a_l over sqrt(n) (root mean square units); a_l is what the functions of z_l alone make of it;
        - dimension_activation, gap integer of the latter, NaN where no value is twice the next, or its ratio less than
          the root of the fall before it; all count where none is less than a tenth of the first (attribute "missing");
          rank_90, rank_99, rank_999, how many directions hold that share of the sum of s^2; dimension_participation,
          (sum s^2)^2 / sum s^4, and rank_entropy, exp of the entropy of s^2: soft counts, whose inverses N rows keep
          above 1/N (rows: N, tokens and pixels counted);
        - nonlinearity_impact |z_l - a_l|_F / |z_l|_F, of z_l normalised where a normalisation comes first;
        - identity_defect, root mean square of s_i - 1 over the singular values of W_l on the principal subspace of its
          centred input: 0 where the layer only rotates it (of a convolution, on at most 2,048 patches);
        - balance_residual, largest | |W_l[i, :]|^2 + b_l[i]^2 - |W_{l+1}[:, i]|^2 | over the neurons relative to the
          mean; NaN unless the next matrix follows through nothing, a ReLU or a leaky ReLU, scaled or not (FC-23);
        - jacobian_singular_values, median over points of those of the outputs by the whole input of the layer;
        - tangent_kernel_trace, mean over points of |df/dW_l|_F^2 + |df/db_l|^2 summed over outputs (FC-38);
        - above 128 outputs both are *estimates* from 64 random combinations of them, with
          jacobian_singular_value_errors and tangent_kernel_trace_error;
        - of a `LeakyResNet` also position and cost_of_identity, and with y and ridge kinetic_energy, hamiltonian
          (4-point average), rank_from_hamiltonian, momentum_norm, stationarity (see `leaky_diagnosis`);
        - of residual sums A + F(A) in any other module, in the row of the last matrix of F: block, position, and of the
          stream behind it stream_singular_values (centred, over sqrt(n)), stream_dimension (gap integer) and
          stream_rank_99; with derivatives cost_of_identity and kinetic_energy, and with y and ridge hamiltonian, the
          derivative by a gate on the branch and on its penalty, and momentum_norm (*heuristic*, see `stream_costs`);
        - of attention, by head, in the row of its output projection: qk_rank and ov_rank, of W_Q^T W_K and W_O W_V
          above rounding, qk_rank_99 and ov_rank_99, their singular values (biases and rotations by position left
          out), and balance_gap, what the factors weigh beyond the nuclear norms: 0 at minima with weight decay; which
          rows make a head is found by what the module computes of others in their place, or `skipped` says that none
          was found;
        - of convolutions groups; frequency_singular_values, exact for circular padding, without borders for any other;
          frequency_rank_99, how many of the frequency_pairs of a frequency and a channel hold 99 % of their energy;
        - of LSTM, GRU and RNN, in the row of an input matrix: state_singular_values of the centred hidden states over
          sqrt(n), state_dimension (gap integer) and state_rank_99; gate_rank, gate_rank_99 and gate_singular_values,
          by side ("input", "hidden") and gate, in torch's order;
        - of lookup tables, by "embedding": embedding_singular_values of their centred entries over the root of their
          number, what stands for padding left out, embedding_rank_90 to embedding_rank_entropy as above, and their
          embedding_entries and embedding_width.

    Raises:
        TypeError: neither a module nor an exported program, or x holds something that is no tensor.
        DataError: x has NaN or infinity, or fewer than 2 rows; the module fails on it; `limits.memory` is too small;
            which layers run depends on the rows, and these do not come at once.
        CheckpointError: the checkpoint is damaged, or of other data or weights.
        ShapeError: x or y does not fit. ValueError: no weight matrix is used, an unknown loss, or a ridge below 0.

    Accuracy: float64, by a copy of the module where it can be copied; above 1e10 samples times parameters batches run
        in the module's own precision, with float64 sums. Spectra of activations are exact to rounding where samples *
        width^2 <= 2e8; above, and of float32 weights as large, values below 1e-8 of the largest are lost. Test: FC-38.

    >>> diagnosis = isthmus.diagnose(module, x)
    >>> diagnosis.rank.lower <= diagnosis.rank.estimate <= diagnosis.rank.upper
    True
    """
    network = on_device(
        module_argument(module, "diagnose(module, x)"), device_argument(device, f"diagnose(device={str(device)!r})")
    )
    limits = limits_argument(limits, "diagnose", heeds=("seconds", "memory", "rows"))
    if ridge is not None:
        check_ridge(ridge, "diagnose")
    hear = _heard(progress)
    _check_asked(jacobians, limits, checkpoint, is_read_once=is_stream(x), has_targets=y is not None)
    file = None if checkpoint is None else Path(checkpoint)
    if is_stream(x):
        assert isinstance(x, Iterable)
        with undisturbed(network):  # loaders draw from it
            return _by_forward_passes(network, Stream.of_batches(x, limits), limits, hear, file)
    check_row_labels(x, {"y": y}, in_order=False)
    samples = Samples.of(x)
    named = None if loss is None else loss_argument(loss, "diagnose")
    asked = _Asked(y, jacobians, None if ridge is None else float(ridge), named)
    try:
        return _of_samples(network, samples, asked, limits, hear, file)
    except OtherCalls:
        if file is not None or samples.num > LARGEST_BATCH:
            raise
        return _of_samples(network, samples, replace(asked, at_once=True), limits, hear)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked for beside a table; `at_once` where which layers run depends on the rows."""

    y: Tensor | None
    jacobians: bool | None
    ridge: Real | None
    loss: Loss | None
    at_once: bool = False


def _of_samples(
    network: nn.Module, samples: Samples, asked: _Asked, limits: Limits, hear: Callable[[str], None],
    file: Path | None = None,
) -> Diagnosis:  # fmt: skip
    """The diagnosis of data in memory."""
    stream = Stream.of_samples(samples)
    if asked.jacobians is False:
        return _by_forward_passes(network, stream, limits, hear, file, at_once=asked.at_once)
    few, targets, said = _first_rows(samples, asked.y, limits.rows)
    why = _without(network, few, limits) if asked.jacobians is None else ""
    if not why:
        over_data = None if targets is None else LossOverData(targets, few.num, asked.loss)
        try:
            given = Given(few, targets, asked.ridge, over_data, penalised(network), asked.at_once)
            found = with_derivatives(network, given, limits, hear)
            return replace(found, warnings=(*said, *found.warnings))
        except GradientsStop as error:
            why = str(error)
    hear(f"diagnose: {why}; forward passes alone.{' Pass jacobians=True for all of it.' * (asked.jacobians is None)}")
    found = _by_forward_passes(network, stream, limits, hear, at_once=asked.at_once)
    return replace(found, warnings=(f"No Jacobians: {why}.", *found.warnings))


def _check_asked(
    jacobians: bool | None, limits: Limits, checkpoint: object, *, is_read_once: bool, has_targets: bool
) -> None:
    """Refuse with derivatives what forward passes alone can do.

    Raises:
        ValueError: such a limit, data or checkpoint.
    """
    if jacobians and limits.seconds is not None:
        raise ValueError(
            f"diagnose(jacobians=True, limits=Limits(seconds={limits.seconds:g})): a limit of seconds ends forward "
            "passes alone. Leave out one of the two; rows=... bounds both."
        )
    if is_read_once and (jacobians or has_targets):
        raise ValueError(
            "diagnose(module, data): Jacobians and y need data in memory. Pass tensors, or leave both out."
        )
    if checkpoint is not None and jacobians is not False and not is_read_once:
        raise ValueError(
            "diagnose(checkpoint=...): forward passes keep their sums, derivatives do not. Pass jacobians=False."
        )


def _heard(progress: Callable[[str], None] | None) -> Callable[[str], None]:
    def hear(sentence: str) -> None:
        _LOG.info(sentence)
        if progress is not None:
            progress(sentence)

    return hear


def _first_rows(samples: Samples, y: Tensor | None, rows: int | None) -> tuple[Samples, Tensor | None, list[str]]:
    """As many as are allowed, and a sentence that says so where there are more.

    Raises:
        DataError: fewer than 2 are.
    """
    if rows is None or rows >= samples.num:
        return samples, y, []
    if rows < LEAST_ROWS:
        raise DataError(f"diagnose(limits=Limits(rows={rows})): derivatives need at least {LEAST_ROWS} rows.")
    if y is not None and len(y) == samples.num:
        y = y[:rows]
    said = f"The data were read at the limit of {rows:,} rows: {rows:,} of {samples.num:,} samples."
    return samples.first(rows), y, [said]


def _without(network: nn.Module, samples: Samples, limits: Limits) -> str:
    """Why derivatives are left out unless asked for; empty where they are not."""
    if limits.seconds is not None:
        return "a limit of seconds ends forward passes alone"
    return _too_dear(network, samples, limits)


def _too_dear(network: nn.Module, samples: Samples, limits: Limits) -> str:
    """Why derivatives are left out unless asked for; empty where they are not."""
    if sum(p.numel() for p in network.parameters()) < SMALL_MODULE:
        return ""  # not worth another look
    with undisturbed(network), open_session(network, samples, exact=False) as session:
        if session.are_dear():
            return "derivatives would cost more than ten passes over the data"
        try:
            session.budget(limits.memory)
        except DataError:
            return "derivatives do not fit in the working memory"
    return ""


def _by_forward_passes(
    network: nn.Module, stream: Stream, limits: Limits, hear: Callable[[str], None], checkpoint: Path | None = None,
    *, at_once: bool = False,
) -> Diagnosis:  # fmt: skip
    with undisturbed(network), open_session(network, stream.first, exact=False, at_once=at_once) as session:
        found = streamed(session, stream, limits, progress=hear, checkpoint=checkpoint)
        table, unread = whole_table(session, network, found.layers, None)
        table.attrs |= {"cost": found.cost, "precision": session.precision, "samples": found.num}
        gaps = gaps_in(table)
        reading = rank_without_jacobians(session, found, gaps, num_inputs=stream.first.num_inputs)
        cuts, hindrance = None, f"the data were read {found.ended}" if found.ended else found.plan.hindrance
        if not found.ended:  # whoever ends the passes early wants no more of them
            cuts = narrow_places(session, stream.few, found.plan, suggested=reading.estimate, most_places=2)
        rank = judged(reading, cuts, hindrance=hindrance, narrower_than=fewest_numbers(session))
    ended = f"The data were read {found.ended}: {found.num:,} samples; no cut has judged the rank."
    said = [ended] if found.ended else uncut(found.plan)
    return Diagnosis(table, rank, unread, (*said, *session.doubts, *warnings_of(found.layers, found.num)), cuts)
