"""From findings to a `Discovery`: both halves in the user's units, the certified interval, tables, a diagnosis.

That of a target that does not vary needs no findings: `constant_discovery`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import nn

from isthmus.diagnostics import Diagnosis, diagnose, leaky_diagnosis
from isthmus.discovery.combinations import combinations_of
from isthmus.discovery.data.checking import CheckedData
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.data.scaling import Scaling, num_holding, shifted
from isthmus.discovery.decision import told_by_linear_maps
from isthmus.discovery.evidence.baseline import linear_network
from isthmus.discovery.evidence.certificates import certified_interval
from isthmus.discovery.evidence.interpretation import by_error_saved
from isthmus.discovery.factorisation import Factorisation, cut_network
from isthmus.discovery.findings import Findings
from isthmus.discovery.halves import INDEX
from isthmus.discovery.kinds.family import Family
from isthmus.discovery.objective_curves import Curve
from isthmus.discovery.result import Discovery
from isthmus.discovery.settings import Settings
from isthmus.errors import NumericalWarning
from isthmus.networks import FullyConnected, LeakyResNet
from isthmus.networks.folding import merge_linear_runs
from isthmus.processes.shared_state import silenced
from isthmus.theory import RankEstimate, Verdict
from isthmus.theory.curve_readings import running_minimum
from isthmus.training.losses import Loss

RUN_COLUMNS = ("ridge", "start", "kind", "objective", "data_loss", "heldout_error", "jacobian_rank", "activation_rank",
                "stationarity", "outcome", "gradient_evaluations", "seconds")  # fmt: skip
Array = NDArray[np.float64]


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


def constant_discovery(
    x: Array, y: Array, settings: Settings, *, names: tuple[tuple[str, ...], tuple[str, ...]], task: str, loss: Loss
) -> Discovery:
    """Rank 0: the constant itself as decoder, an encoder to no coordinate."""
    targets = loss.targets(torch.from_numpy(y), torch.float64)
    value = (
        loss.output_units(y[0], np.zeros(y.shape[1]))[0]
        if loss.standardised
        else loss.best_constant(targets, None, loss.num_outputs(targets)).numpy()
    )
    encoder = FullyConnected.from_layers([torch.zeros(0, x.shape[1])], [torch.zeros(0)])
    decoder = FullyConnected.from_layers([torch.zeros(len(value), 0)], [torch.from_numpy(np.array(value))])
    network = FullyConnected.from_layers([torch.zeros(len(value), x.shape[1])], [torch.from_numpy(np.array(value))])
    scree, objective_curve = _no_curves()
    reason = "the target is the same in every row"
    return Discovery(
        rank=0,
        verdict=Verdict.CONFIDENT,
        reasons=("The target is the same in every row: nothing of the input is needed.",),
        interval=RankEstimate(
            0, 0, 0, "no map has a smaller rank", reason, 0.0, {"certificates": [{"kind": "factorisation", "claim": 0}]}
        ),
        scree=scree,
        objective_curve=objective_curve,
        encoder=encoder,
        decoder=decoder,
        network=network,
        runs=xr.Dataset({name: ("run", np.zeros(0)) for name in RUN_COLUMNS}),
        diagnosis=diagnose(network, torch.from_numpy(x)),
        task=task,
        input_names=names[0],
        target_names=names[1],
        settings={**settings.as_dict(), "loss": loss.name},
        readings={"heldout_error": 0.0, "linear_rank": 0, "one_fewer": None},
    )


def _no_curves() -> tuple[xr.Dataset, xr.Dataset]:
    """A scree and an objective curve without a rank and a ridge."""
    none, no_rank = np.zeros(0), np.zeros(0, dtype=np.int64)
    scree = {name: ("rank", none) for name in ("train_error", "heldout_error", "linear_error")}
    curve = {"objective": (("ridge", "rank"), np.zeros((0, 0))), "chosen": ("ridge", np.zeros(0, dtype=bool))}
    return xr.Dataset(scree, {"rank": no_rank}), xr.Dataset(curve, {"ridge": none, "rank": no_rank})


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
        "most_rank": findings.family.most_rank,
        "resample_share": None if np.isnan(findings.shares.resamples) else findings.shares.resamples,
        "start_share": findings.shares.starts,
        **_units(findings.family),
        **({} if findings.foretold is None else {"foretold": findings.foretold}),
        **({"linear_error_of_all": r.mapped.error} if r.mapped is not None and told_by_linear_maps(r) else {}),
    }


def _units(family: Family) -> dict[str, int]:
    """Of columns that keep their relative scale, how many hold most of the variance."""
    problem = family.problem
    if family.settings.scaling != Scaling.GLOBAL.value or problem.targets is None:
        return {}
    return {"columns_holding": num_holding(problem.y.double().var(dim=0, correction=0).numpy())}


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


def error_ratio(errors: Sequence[float], rank: int) -> float | None:
    """How many times larger the error is through one dimension fewer; None at rank 0."""
    return errors[rank - 1] / max(errors[rank], 1e-300) if 0 < rank < len(errors) else None


def linear_rank_for(error: float, linear_error: Sequence[float]) -> int | None:
    """Least number of linear dimensions whose error is no larger than `error`; None if all are larger."""
    return next((k for k, e in enumerate(linear_error) if e <= error), None)
