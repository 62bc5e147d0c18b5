"""The discovery of a target that does not vary: rank 0, said plainly, without any training."""

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray

from isthmus.diagnostics import diagnose
from isthmus.discovery.assembly import RUN_COLUMNS
from isthmus.discovery.result import Discovery
from isthmus.discovery.settings import Settings
from isthmus.networks import FullyConnected
from isthmus.theory import RankEstimate, Verdict
from isthmus.training.losses import Loss

Array = NDArray[np.float64]


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
