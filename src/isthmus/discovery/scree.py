"""`scree`: the error of a network through 1, 2, 3, ... dimensions, both halves refined."""

from collections.abc import Iterable

import numpy as np
import torch
import xarray as xr
from numpy.typing import ArrayLike
from torch import Tensor, nn

from isthmus.discovery.data.splitting import heldout_rows
from isthmus.discovery.factorisation import cut_network, gap_of, joined
from isthmus.discovery.result import Discovery
from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected
from isthmus.networks.arguments import seed_argument, tensor_argument
from isthmus.networks.devices import made_on_cpu
from isthmus.tasks.foreign import check_row_labels
from isthmus.training import fit
from isthmus.training.solvers.solver import LBFGS

REFINE_EVALUATIONS = 150
REFINE_RIDGE = 1e-6  # relative to the variance of the targets: enough to keep the weights bounded, too little to cost
BEYOND = 3  # ranks after the gap that are tried when none are given


@made_on_cpu
def scree(
    result_or_module: Discovery | nn.Module,
    x: ArrayLike | Tensor | None = None,
    y: ArrayLike | Tensor | None = None,
    *,
    ranks: Iterable[int] | None = None,
    heldout: float | None = None,
    seed: int = 0,
) -> xr.Dataset:
    """Error through each number of dimensions, relative to the variance of the targets.

    A discovery has its curve already; of a network, the best layer is cut at each rank (see `factorise`), both halves
    are refined on the training rows, and the error is measured on all others.

    Args:
        result_or_module: a `Discovery`, or a `FullyConnected` with its data.
        x: samples (n, d_in); not needed for a discovery.
        y: targets (n, d_out); None takes what the network itself gives: how well it can be
            factored.
        ranks: which; default 1 to 3 beyond the gap of its narrowest layer.
        heldout: share of rows held out, default 0.2.
        seed: of the split.

    Returns:
        Dimension "rank": `train_error` and `heldout_error`, 1 for the mean of the targets.

    Raises:
        TypeError: neither a discovery nor a `FullyConnected`.
        ValueError: no data for a network, or a rank that is not in the discovery.
        ShapeError: x and y of different length.

    >>> isthmus.scree(found)["heldout_error"].dims
    ('rank',)
    """
    if isinstance(result_or_module, Discovery):
        curve = result_or_module.scree
        return curve if ranks is None else _chosen(curve, list(ranks))
    if not isinstance(result_or_module, FullyConnected):
        raise TypeError(
            f"scree(module, x): needs a Discovery or FullyConnected, got {type(result_or_module).__name__}."
        )
    if x is None:
        raise ValueError("scree(module, x): needs the data x that the network is cut on.")
    check_row_labels(x, {"y": y}, in_order=False)
    network = result_or_module.rewritten(*result_or_module.written_layers()).double().requires_grad_(False)
    x = tensor_argument(x, "scree(module, x): x").double()
    target: Tensor = network(x) if y is None else tensor_argument(y, "scree(module, x, y): y").double()
    seed_argument(seed, "scree(seed=...)")
    if target.ndim == 0:
        raise ShapeError("scree(module, x, y): needs rows of targets, got a single number.")
    if len(x) != len(target):
        raise ShapeError(f"scree(module, x, y): needs as many rows in x as in y, got {len(x)} and {len(target)}.")
    held = torch.from_numpy(heldout_rows(len(x), seed=seed, fraction=0.2 if heldout is None else heldout))
    if ranks is None:
        most = min(network.dimensions)
        ranks = range(1, min(gap_of(network, x) + BEYOND, most) + 1)
    rows = [(rank, *_errors(network, x, target, held, rank)) for rank in ranks]
    table = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return xr.Dataset(
        {"train_error": ("rank", table[:, 1]), "heldout_error": ("rank", table[:, 2])},
        coords={"rank": table[:, 0].astype(np.int64)},
    )


def _errors(network: FullyConnected, x: Tensor, y: Tensor, held: Tensor, rank: int) -> tuple[float, float]:
    cut = cut_network(network, x[~held], rank)
    narrow = joined(cut.encoder, cut.decoder)
    variance = float((y - y.mean(0)).square().sum(1).mean())
    if not variance > 0:
        raise ValueError("scree(module, x, y): the targets do not vary, so there is no error to compare with.")
    fit(narrow, x[~held], y[~held], ridge=REFINE_RIDGE * variance, solver=LBFGS(REFINE_EVALUATIONS))
    with torch.no_grad():
        square = (narrow(x) - y).square().sum(1) / variance
    return float(square[~held].mean()), float(square[held].mean())


def _chosen(curve: xr.Dataset, ranks: list[int]) -> xr.Dataset:
    missing = sorted(set(ranks) - set(curve["rank"].values.tolist()))
    if missing:
        raise ValueError(f"scree(result, ranks={ranks}): the discovery has the ranks {curve['rank'].values.tolist()}.")
    return curve.sel(rank=ranks)
