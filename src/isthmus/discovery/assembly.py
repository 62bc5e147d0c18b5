"""From findings to a `Discovery`: both halves in the user's units, the certified interval, tables, a diagnosis."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
import xarray as xr
from torch import nn

from isthmus.diagnostics import Diagnosis, diagnose, leaky_diagnosis
from isthmus.discovery.choices import AS_READ, LEFT_OVER_ERROR
from isthmus.discovery.combinations import combinations_of
from isthmus.discovery.data.checking import CheckedData
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.data.scaling import shifted
from isthmus.discovery.evidence.baseline import linear_network
from isthmus.discovery.evidence.certificates import certified_interval
from isthmus.discovery.evidence.interpretation import by_error_saved
from isthmus.discovery.evidence.leftovers import leftover
from isthmus.discovery.factorisation import Factorisation, cut_network
from isthmus.discovery.findings import Findings
from isthmus.discovery.halves import INDEX, RANK, RANK_KINDS, RankKind
from isthmus.discovery.kinds.family import Family
from isthmus.discovery.objective_curves import Curve
from isthmus.discovery.result import Discovery
from isthmus.errors import NumericalWarning
from isthmus.networks import FullyConnected, LeakyResNet
from isthmus.networks.folding import merge_linear_runs
from isthmus.processes.shared_state import silenced
from isthmus.theory import RankEstimate, Verdict
from isthmus.theory.curve_readings import running_minimum

RUN_COLUMNS = ("ridge", "start", "kind", "objective", "data_loss", "heldout_error", "jacobian_rank", "activation_rank",
                "stationarity", "outcome", "gradient_evaluations", "seconds")  # fmt: skip


def assemble(
    findings: Findings,
    data: CheckedData,
    *,
    warnings: Sequence[str],
    about: Mapping[str, object],
) -> Discovery:
    """The result of a search."""
    rank, family = findings.decision.rank, findings.family
    problem = family.problem
    halves = halves_of(family, findings.curve, findings.scree, rank, whole=findings.whole)
    encoder, outputs = problem.inputs.fold_into_encoder(halves.encoder), problem.outputs
    decoder = outputs.fold_into_decoder(halves.decoder) if outputs else shifted(halves.decoder, problem.shift)
    shown = findings.deep or family.shown(findings.starts[findings.ridge], findings.curve, rank)
    network = family.network_of(shown).double()
    diagnosis, energies = diagnosed(network, problem, findings.ridge)
    return Discovery(
        rank=rank,
        verdict=findings.decision.verdict,
        reasons=findings.decision.reasons,
        interval=_with_shares(
            certified_interval((encoder, decoder), problem, rank, kind=family.settings.rank_kind), findings
        ),
        scree=_scree_table(findings),
        objective_curve=_objective_table(findings),
        encoder=encoder,
        decoder=decoder,
        network=network,
        runs=_runs_table(findings),
        diagnosis=diagnosis,
        warnings=(*warnings, *findings.warnings),
        task=data.task,
        input_names=data.input_names,
        target_names=data.target_names,
        settings={**family.settings.as_dict(), **about},
        readings={**_readings(findings, rank), **energies},
        combinations=combinations_of(findings, data, halves) if family.settings.rank_kind is INDEX and rank else None,
    )


def against_unseen(found: Discovery, findings: Findings, sample: Sample) -> Discovery:
    """With the error on the rows that a sample left out; where it is clearly larger than on held-out rows, in doubt."""
    here, count = findings.scree.get(found.rank), int(sample.unseen.sum())
    if here is None or not count:
        return found
    family = findings.family
    unseen = sample.unseen_error(family.problem, findings.whole or family.network_of(here))
    found = replace(found, readings={**found.readings, "unseen_error": unseen})
    heldout = found.heldout_error
    if unseen <= family.problem.errors_compared.raised(heldout, AS_READ):
        return found
    return _in_doubt(
        found,
        f"On the {count:,} rows that were not searched the error is {unseen:.2%}, on held-out ones "
        f"{heldout:.2%}: the sample lacks what they hold; search more rows.",
    )


def against_short_blocks(found: Discovery, sample: Sample) -> Discovery:
    """Of a series, in doubt where held-out blocks are shorter than what resembles each other.

    Two series of 300 rows, smoothed over 30 and without anything in common, left .03 % of held-out rows: what lies
    between fitted rows is interpolated.
    """
    lag, block = sample.resemblance if sample.ordered and found.rank else (0, 0)
    if lag <= block:
        return found
    return _in_doubt(
        found,
        f"Rows resemble each other over {lag:,} rows, and blocks of {block:,} are held out: what is missed there says "
        "little, as it lies between fitted ones. Give a longer series, or several with groups.",
    )


def against_leftovers(found: Discovery, findings: Findings) -> Discovery:
    """Of an index rank by squares; in doubt where what it leaves over depends on other combinations, as none should."""
    family, here = findings.family, findings.scree.get(found.rank)
    problem, settings = family.problem, family.settings
    exchangeable = problem.weight is None and not settings.ordered
    asked = settings.rank_kind is INDEX and problem.loss.is_quadratic and not problem.autoencoding
    if here is None or not asked or not exchangeable or found.heldout_error < LEFT_OVER_ERROR:
        return found
    x, y = (torch.cat(parts).double() for parts in ((problem.x, problem.x_held), (problem.y, problem.y_held)))
    network = (findings.whole or family.written(family.network_of(here))).double()
    with torch.no_grad():
        residuals = y - network(x)
    other = leftover(x.numpy(), network.weights[0].detach().numpy(), residuals.numpy(), seed=settings.seed)
    if other is None or not other.counts:
        return found
    return _in_doubt(
        found,
        f"What is left over depends on other combinations of the inputs too ({other.share:.1%} of it, "
        f"{other.deviations:.0f} standard deviations above chance): there are more, weak ones.",
    )


def in_order(found: Discovery) -> Discovery:
    """The ranks of one task held against their order; where it is broken, who may be wrong says so and is in doubt.

        rank <= min(index rank, mode rank)

    An answer that was sure stays so where the other was not. How much the least of the other ranks is stands among the
    readings of the rank, so that its own answer is known beside `Discovery.ranks`.
    """
    everything = {found.kind: found, **found.others}
    own, straight = everything.get(RANK.name), {k: one for k, one in everything.items() if k != RANK.name}
    if own is None or not straight:
        return found
    bound = min(one.rank for one in straight.values())
    told = {RANK.name: replace(own, readings={**own.readings, "bound": bound})}
    for kind, one in straight.items():
        if own.rank > one.rank:
            text = against_bound(own.rank, RANK_KINDS[kind], one.rank, proved=own.interval.lower)
            told[RANK.name] = _in_doubt(told[RANK.name], text)
            if own.verdict is Verdict.CONFIDENT or one.verdict is not Verdict.CONFIDENT:
                told[kind] = _in_doubt(one, text)
    others = {kind: told.get(kind, one) for kind, one in found.others.items()}
    return replace(told.get(found.kind, found), others=others)


def _in_doubt(found: Discovery, text: str) -> Discovery:
    """With one more reason; of what spoke for an answer that was sure nothing is left."""
    sure = found.verdict is Verdict.CONFIDENT
    reasons = (text,) if sure else (*found.reasons, text)
    return replace(found, reasons=reasons, verdict=Verdict.DOUBTFUL if sure else found.verdict)


def _with_shares(interval: RankEstimate, findings: Findings) -> RankEstimate:
    """The interval with how often its estimate was read among its evidence."""
    shares = {"resample_share": findings.shares.resamples, "start_share": findings.shares.starts}
    return replace(interval, evidence={**interval.evidence, **shares})


def halves_of(
    family: Family, curve: Curve, scree: Curve, rank: int, *, whole: FullyConnected | None = None
) -> Factorisation[FullyConnected]:
    """Encoder and decoder through `rank` coordinates: the refined halves, cut again so that coordinates decorrelate.

    The coordinate that saves most error comes first: one of little variance may matter more than one of much.

    Args:
        family: the networks; coordinates are decorrelated and compared on the training rows of its problem.
        curve: the truncated networks at the chosen ridge by rank.
        scree: the refined ones.
        rank: number of coordinates.
        whole: to be cut in place of the refined one.

    Returns:
        The halves in standardised units.
    """
    x = family.problem.x
    if whole is not None:  # of two layers where it is linear
        halves = by_error_saved(cut_network(whole, x, rank, layer=min(family.middle, whole.depth - 1)), x)
        return replace(halves, decoder=merge_linear_runs(halves.decoder))
    if rank == 0:
        return _constant(family.problem, layer=family.middle)
    if not scree:
        return cut_network(family.written(family.network_of(curve[min(curve)])), x, rank, layer=family.middle)
    known = scree[rank if rank in scree else max(r for r in scree if r <= max(rank, min(scree)))]
    least = min(rank, known.dimensions)  # beyond it the curve is one network
    whole = family.written(family.network_of(known))
    return by_error_saved(cut_network(whole, x, least, layer=family.middle), x)


def _constant(problem: Problem, *, layer: int) -> Factorisation[FullyConnected]:
    """No coordinate, and the constant whose error is that of rank 0."""
    value, nothing = problem.best_constant(), torch.zeros(0, dtype=torch.float64)
    encoder = FullyConnected.from_layers([nothing.new_zeros(0, problem.d_in)], [nothing])
    decoder = FullyConnected.from_layers([nothing.new_zeros(len(value), 0)], [value])
    return Factorisation(encoder, decoder, 0, layer, relative_error=1.0)


def _scree_table(findings: Findings) -> xr.Dataset:
    ranks = sorted(findings.scree)
    rows = [findings.scree[r] for r in ranks]
    # units of an older version, resumed, know no accuracy
    of_classes = ["heldout_accuracy"] if rows and all(row.heldout_accuracy is not None for row in rows) else []
    return xr.Dataset(
        {name: ("rank", [getattr(row, name) for row in rows]) for name in ["train_error", "heldout_error", *of_classes]}
        | {"linear_error": ("rank", [findings.readings.linear_error[r] for r in ranks])},
        coords={"rank": np.array(ranks, dtype=np.int64)},
    )


def _objective_table(findings: Findings) -> xr.Dataset:
    ridges = sorted(findings.curves, reverse=True)
    ranks = list(range(1, max(max(c) for c in findings.curves.values()) + 1))
    table = np.full((len(ridges), len(ranks)), np.nan)
    for i, ridge in enumerate(ridges):
        curve = findings.curves[ridge]
        values = running_minimum([curve[r].objective for r in sorted(curve)])
        for r, value in zip(sorted(curve), values, strict=True):
            table[i, r - 1] = value
    return xr.Dataset(
        {"objective": (("ridge", "rank"), table), "chosen": ("ridge", [r == findings.ridge for r in ridges])},
        coords={"ridge": ridges, "rank": np.array(ranks, dtype=np.int64)},
    )


def _runs_table(findings: Findings) -> xr.Dataset:
    rows = [start.as_state() for starts in findings.starts.values() for start in starts]
    return xr.Dataset({name: ("run", [row[name] for row in rows]) for name in RUN_COLUMNS})


def _readings(findings: Findings, rank: int) -> dict[str, float | int | None]:
    r, errors = findings.readings, findings.errors
    here, problem = errors[min(rank, len(errors) - 1)], findings.family.problem
    known = problem.train_error(linear_network(problem, rank)) if findings.linear else r.train_error.get(rank)
    return {
        "ridge": r.ridge,
        "objective_rank": r.objective.rank,
        "sharpness": None if np.isinf(r.objective.sharpness) else r.objective.sharpness,
        "spread": r.spread,
        "scree_rank": r.scree.rank,
        "scree_margin": r.scree.sharpness,
        "jacobian_rank": r.jacobian_rank,
        "heldout_error": here,
        "train_error": known,
        "rows": r.rows,
        "linear_rank": linear_rank_for(here, r.linear_error),
        "one_fewer": error_ratio(errors, rank),
        "resample_share": None if np.isnan(findings.shares.resamples) else findings.shares.resamples,
        "start_share": findings.shares.starts,
    }


def diagnosed(network: nn.Module, problem: Problem, ridge: float) -> tuple[Diagnosis, dict[str, float | int | None]]:
    """The table by layer of a trained network, and what its energies say if it is leaky.

        hamiltonian_rank: median of -2 H / Lt over the layers (*estimate*, from below as Lt grows)
        identity_rank: least cost of identity over the layers (*estimate*, from above)

    H is Pontryagin's form, right to first order away from critical weights, where the other forms are lost.

    Args:
        network: in standardised units, float64.
        problem: the data that it was trained on.
        ridge: of its training.

    Returns:
        The diagnosis, with energies where the loss is squared and unweighted; the readings, also effective_depth and
        leaky_stationarity, or none.
    """
    if not isinstance(network, LeakyResNet):
        return diagnose(network, problem.x), {}
    if not problem.loss.is_quadratic or problem.weight is not None:
        found = diagnose(network, problem.x)
        return found, {"identity_rank": _finite(np.nanmin(found.layers["cost_of_identity"].values))}
    found = diagnose(network, problem.x, problem.y, ridge=ridge)
    if not network.effective_depth:
        return found, {"identity_rank": _finite(np.nanmin(found.layers["cost_of_identity"].values))}
    with silenced(NumericalWarning):  # the diagnosis says it already, in words
        table = leaky_diagnosis(network, problem.x, problem.y, ridge=ridge)
    Lt = network.effective_depth
    return found, {
        "hamiltonian_rank": _finite(np.median(-2 * table["hamiltonian_pontryagin"].values / Lt)),
        "identity_rank": _finite(np.min(table["cost_of_identity"].values)),
        "effective_depth": Lt,
        "leaky_stationarity": _finite(table.attrs["stationarity"]),
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def against_bound(own: int, kind: RankKind, bound: int, *, proved: int) -> str:
    """What to say where the rank was read larger than one that bounds it.

        rank <= min(index rank, mode rank), for a half that is linear is one that may be curved

    Args:
        own: the rank as its own search read it.
        kind: which of the others is less,
        bound: and how much it is.
        proved: directions that the network behind `own` surely has.
    """
    sure = f", {proved} of them proved of its network" if proved > bound else ""
    return (
        f"With both halves curved {RANK.counted(own)} were found{sure}, with one linear {kind.counted(bound)}: no more "
        "can be needed where both may be curved, so one of the two answers is wrong, as a rule the larger one."
    )


def error_ratio(errors: Sequence[float], rank: int) -> float | None:
    """How many times larger the error is through one dimension fewer; None at rank 0."""
    return errors[rank - 1] / max(errors[rank], 1e-300) if 0 < rank < len(errors) else None


def linear_rank_for(error: float, linear_error: Sequence[float]) -> int | None:
    """Least number of linear dimensions whose error is no larger than `error`; None if all are larger."""
    return next((k for k, e in enumerate(linear_error) if e <= error), None)
