"""A small discovery made by hand, for the tests of what comes after one: files, figures, pages, the command line.

Networks are random and of rank `RANK`; spectra and predictions are computed from them; curves follow simple formulas.
"""

from dataclasses import replace

import numpy as np
import torch
import xarray as xr

from isthmus.diagnostics import Diagnosis, diagnose
from isthmus.discovery import Discovery
from isthmus.discovery.depth.path import DepthPath
from isthmus.discovery.settings import Settings
from isthmus.networks import FullyConnected, walk
from isthmus.theory import RankEstimate, Verdict

RANK, D_IN, D_OUT, NUM_SAMPLES = 3, 5, 4, 60
RIDGES = (1e-2, 3e-3, 1e-3)
RANKS = np.arange(1, 7)
INPUTS = tuple(f"probe {i}" for i in range(D_IN))
TARGETS = tuple(f"flux {i}" for i in range(D_OUT))


def inputs(num_samples: int = NUM_SAMPLES) -> np.ndarray:
    return np.random.default_rng(7).normal(size=(num_samples, D_IN))


def networks() -> tuple[FullyConnected, FullyConnected, FullyConnected]:
    """(network, encoder, decoder): the network is decoder o encoder with the two middle matrices multiplied out."""
    encoder = FullyConnected(D_IN, RANK, width=(12,), depth=2, seed=1, dtype=torch.float64)
    decoder = FullyConnected(RANK, D_OUT, width=(12,), depth=2, negative_slope=0.1, seed=2, dtype=torch.float64)
    network = FullyConnected(
        D_IN, D_OUT, width=(12, 12, 12), depth=4, linear=(2,), negative_slope=0.1, seed=3, dtype=torch.float64
    )
    with torch.no_grad():
        middle = torch.randn(12, RANK, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
        network.weights[0].copy_(encoder.weights[0])
        network.weights[1].copy_(middle @ encoder.weights[1])
        network.weights[2].copy_(decoder.weights[0] @ torch.linalg.pinv(middle))
        network.weights[3].copy_(decoder.weights[1])
    return network, encoder, decoder


def _centred_spectrum(values: torch.Tensor, size: int) -> np.ndarray:
    spectrum = torch.linalg.svdvals(values - values.mean(0)).numpy()[:size]
    return np.pad(spectrum, (0, size - len(spectrum)), constant_values=np.nan)


def diagnosis(network: FullyConnected) -> Diagnosis:
    with torch.no_grad():
        x = torch.from_numpy(inputs())
        states = walk(network, x)
        jacobian = torch.autograd.functional.jacobian(network, x[:1]).reshape(D_OUT, D_IN)
        spectra = {
            "weight_singular_values": [_centred_spectrum(s.weight * 1.0, 12) for s in states],
            "preactivation_singular_values": [_centred_spectrum(s.preactivation, 12) for s in states],
            "activation_singular_values": [_centred_spectrum(s.activation, 12) for s in states],
        }
    padded = np.full((4, 12), np.nan)
    padded[0, :D_OUT] = torch.linalg.svdvals(jacobian).numpy()
    layers = xr.Dataset(
        {name: (("layer", "component"), np.array(rows)) for name, rows in spectra.items()}
        | {
            "jacobian_singular_values": (("layer", "component"), padded),
            "dimension_activation": ("layer", np.array([3, 3, 3, 3])),
            "dimension_participation": ("layer", np.array([2.7, 2.1, 2.6, 1.9])),
            "nonlinearity_impact": ("layer", np.array([0.31, 0.0, 0.22, np.nan])),
        },
        coords={"layer": [1, 2, 3, 4], "name": ("layer", [s.name for s in states])},
        attrs={"samples": NUM_SAMPLES, "centred": True, "note": None},
    )
    rank = RankEstimate(RANK, 3, 3, "Jacobian of rank 3 at sample 0", "explicit factorisation", 1e-6, {"sample": 0})
    return Diagnosis(layers, rank, [("dropout", "no weights")], ("few samples",))


def curves(rank: int = RANK) -> tuple[xr.Dataset, xr.Dataset]:
    """(scree, objective curve): a drop to a floor at the rank."""
    error = np.where(rank > RANKS, 0.5 * 0.45**RANKS, 1e-3 * (1 + 0.03 * np.cos(RANKS)))
    scree = xr.Dataset(
        {
            "train_error": ("rank", 0.9 * error),
            "heldout_error": ("rank", error),
            "linear_error": ("rank", 0.8 * 0.6**RANKS),
        },
        coords={"rank": RANKS},
    )
    below = np.where(rank > RANKS, 0.3 * (rank - RANKS), 0.002 * np.exp(-RANKS))
    # the larger the ridge, the less a missing dimension costs
    objective = np.array([(1 + below * (1e-3 / ridge) ** 0.5) * 4 * ridge**0.5 for ridge in RIDGES])
    curve = xr.Dataset(
        {"objective": (("ridge", "rank"), objective), "chosen": ("ridge", np.array([False, False, True]))},
        coords={"ridge": np.array(RIDGES), "rank": RANKS},
    )
    return scree, curve


def runs() -> xr.Dataset:
    ridge = np.repeat(RIDGES, 3)
    excess = np.tile([0.0, 0.02, 0.11], 3)
    count = len(ridge)
    columns: dict[str, np.ndarray] = {
        "ridge": ridge,
        "start": np.tile([0, 1, 2], 3),
        "kind": np.tile(["linear", "random", "random"], 3),
        "objective": 4 * ridge**0.5 * (1 + excess),
        "data_loss": ridge,
        "heldout_error": ridge * (1 + excess),
        "jacobian_rank": np.tile([3, 3, 4], 3),
        "activation_rank": np.tile([3, 4, 4], 3),
        "stationarity": np.full(count, 3e-7),
        "outcome": np.tile(["CONVERGED", "CONVERGED", "PLATEAU"], 3),
        "gradient_evaluations": np.full(count, 812),
        "seconds": np.full(count, 1.5),
    }
    return xr.Dataset({name: ("run", column) for name, column in columns.items()})


def depth_path(*, glued: bool = False) -> DepthPath:
    """Three ranks whose objectives are lines: 3 leads to depth 9, then rank 1, or 2 if rank 1 glues the data."""
    middle, rank = np.array([1, 2, 4, 8, 16, 32]), np.array([1, 2, 3])
    constants = np.array([0.030, 0.024, 0.012])[:, None]
    shape = np.ones((3, 6))
    names = ("rank", "middle_layers")
    between = 0.01 * shape
    between[0] += 4.0 * glued
    columns = {
        "objective": constants + 1e-3 * rank[:, None] * middle,
        "train_error": 1e-3 * shape,
        "heldout_error": 2e-3 * shape,
        "penalty": 1e3 * (constants + 1e-3 * rank[:, None] * middle - 1e-3),
        "between": between,
        "true_rank": rank[:, None] * shape,
        "stationarity": 0.5 * shape,
        "holds": between < 0.25,
    }
    table = xr.Dataset(
        {name: (names, values) for name, values in columns.items()},
        coords={"rank": rank, "middle_layers": middle, "depth": ("middle_layers", middle + 7)},
        attrs={"ridge": 1e-3, "loss": "squared"},
    )
    table["regularity"] = table["penalty"] - table["rank"] * table["depth"]
    return DepthPath.of(table)


def straight(
    directions: np.ndarray,
    *,
    outputs: int = 1,
    kind: str = "index",
    spread: np.ndarray | float = 1.0,
    shift: np.ndarray | float = 0.0,
    **changes: object,
) -> Discovery:
    """A discovery with one linear half: rows (rank, d_in) of its encoder, or (rank, d_out) of its decoder.

    Args:
        directions: in columns divided by `spread`; of modes in outputs divided by it.
        outputs: targets of an index rank, inputs of a mode rank.
        kind: "index" or "mode".
        spread: of the columns of the linear half.
        shift: mean of the inputs.
        changes: other fields.
    """
    rank, width = directions.shape
    rows = torch.from_numpy(directions)
    scale = torch.from_numpy(np.broadcast_to(spread, width).astype(np.float64))
    if kind == "index":
        first = rows / scale
        mean = torch.from_numpy(np.broadcast_to(shift, width).astype(np.float64))
        encoder = FullyConnected.from_layers([first], [-first @ mean])
        decoder = FullyConnected(rank, outputs, width=16, depth=3, seed=2, dtype=torch.float64)
        d_in, d_out, sides = width, outputs, ("linear", "curved")
    else:
        encoder = FullyConnected(outputs, rank, width=16, depth=3, seed=1, dtype=torch.float64)
        decoder = FullyConnected.from_layers([(rows * scale).T], [torch.zeros(width)])
        d_in, d_out, sides = outputs, width, ("curved", "linear")
    weights = [*encoder.weights[:-1], decoder.weights[0] @ encoder.weights[-1], *decoder.weights[1:]]
    joined = decoder.weights[0] @ encoder.biases[-1] + decoder.biases[0]
    network = FullyConnected.from_layers(weights, [*encoder.biases[:-1], joined, *decoder.biases[1:]])
    x = torch.from_numpy(np.random.default_rng(5).normal(size=(NUM_SAMPLES, d_in)))
    scree, objective_curve = curves(rank)
    found = discovery(
        rank=rank,
        reasons=(f"The objective curve, the held-out error and the Jacobian all read {rank}.",),
        scree=scree,
        objective_curve=objective_curve,
        encoder=encoder,
        decoder=decoder,
        network=network,
        diagnosis=diagnose(network, x),
        warnings=(),
        input_names=tuple(f"x{i}" for i in range(d_in)),
        target_names=tuple(f"y{i}" for i in range(d_out)),
    )
    sides_of = {"encoder_side": sides[0], "decoder_side": sides[1]}
    return replace(found, **{"settings": {**found.settings, **sides_of}, **changes})


def discovery(*, control: bool = False, verdict: Verdict = Verdict.CONFIDENT, **changes: object) -> Discovery:
    network, encoder, decoder = networks()
    scree, objective_curve = curves()
    found = diagnosis(network)
    result = Discovery(
        rank=RANK,
        verdict=verdict,
        reasons=("The objective curve, the scree curve and the Jacobian gap all read 3.",),
        interval=found.rank,
        scree=scree,
        objective_curve=objective_curve,
        encoder=encoder,
        decoder=decoder,
        network=network,
        runs=runs(),
        diagnosis=found,
        warnings=("column 'probe 4' was constant and was dropped",),
        input_names=INPUTS,
        target_names=TARGETS,
        settings={**Settings().as_dict(), "versions": {"isthmus": "0.1.0"}},
        readings={
            "objective_rank": 3,
            "sharpness": 0.26,
            "scree_rank": 3,
            "scree_margin": 1.9,
            "jacobian_rank": 3,
            "heldout_error": float(scree["heldout_error"].sel(rank=RANK)),
            "rows": 240,
            "linear_rank": None,
            "one_fewer": 101.25,
            "ridge": 1e-3,
        },
    )
    if control:
        surrogate = discovery(verdict=Verdict.NO_SHARP_RANK)
        result = replace(result, control=replace(surrogate, rank=4, reasons=("The reading moves with the ridge.",)))
    return replace(result, **changes)  # pyright: ignore[reportArgumentType] - the caller names fields
