"""Samples in two principal components: on their way through the layers, and before and after an autoencoder.

The pictures: `plots.representation_path`, `plots.autoencoder_arrows`. The table by layer: `diagnose`.
"""

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from isthmus.diagnostics.evaluation import evaluate
from isthmus.diagnostics.listener import Listener, Reading
from isthmus.diagnostics.module_names import Names
from isthmus.diagnostics.replica import replica_of, undisturbed
from isthmus.diagnostics.samples import Inputs, Samples
from isthmus.errors import DataError, ShapeError
from isthmus.networks.arguments import AnyModule, answer_of, module_argument


class _Activations(Listener):
    """Keeps the activations of every layer, one row per sample."""

    def __init__(self, num: int) -> None:
        self.num, self.names, self.rows = num, list[str](), list[Tensor]()

    def closed(self, reading: Reading) -> None:
        """Keep the activation; tokens and pixels of a sample stand side by side in its row."""
        activation = reading.activation.detach()
        if len(activation) == self.num:
            self.names.append(reading.name)
            self.rows.append(activation.reshape(self.num, -1).double().clone())


def representation_path(module: AnyModule, x: Inputs) -> xr.Dataset:
    """Where every sample is after each layer, in two principal components.

    Layers of the same width share the components of all their centred activations together, so that a stream can be
    followed from layer to layer; a layer of another width than the layer before starts components of its own.

    Args:
        module: any module, or an exported program; evaluated in evaluation mode, and left as it was.
        x: samples, as for `diagnose`.

    Returns:
        `path` with dimensions "layer", "sample", "component" (2), in the units of the activations; `group`, which
        layers share components; coordinates "layer" and "name".

    Raises:
        DataError: x cannot be used. ValueError: no layer has a row per sample.

    Accuracy: *exact* to rounding, float64 by a copy; the sign of a component is that of its largest weight.
    """
    module = module_argument(module, "representation_path(module, x)")
    samples = Samples.of(x)
    with undisturbed(module), replica_of(module) as replica, torch.no_grad():
        kept = _Activations(samples.num)
        evaluate(replica, Names(replica.module), samples.at(slice(None), replica.dtype, replica.device), kept)
    if not kept.rows:
        raise ValueError(
            f"representation_path(module, x): needs a layer with a row per sample; {type(module).__name__} has none."
        )
    groups = np.cumsum([i > 0 and kept.rows[i].shape != kept.rows[i - 1].shape for i in range(len(kept.rows))])
    path = np.zeros((len(kept.rows), samples.num, 2))
    for group in np.unique(groups):
        members = (groups == group).nonzero()[0]
        rows = torch.cat([kept.rows[i] for i in members])
        path[members] = _in_plane(rows, rows).reshape(len(members), samples.num, 2).cpu().numpy()
    return xr.Dataset(
        {"path": (("layer", "sample", "component"), path), "group": ("layer", groups)},
        coords={"layer": np.arange(1, len(kept.rows) + 1), "name": ("layer", kept.names)},
    )


def reconstruction_arrows(module: AnyModule, x: Inputs) -> xr.Dataset:
    """Samples and what an autoencoder makes of them, both in the two principal components of the samples.

    Args:
        module: or exported program, with an output of its input's shape; in evaluation mode, and left as it was.
        x: samples as rows, images as rows of pixels. With two columns these themselves are the plane.

    Returns:
        `start` and `end` with dimensions "sample" and "component" (2), in the units of x.

    Raises:
        DataError: x cannot be used, or is several tensors, or the output is none. ShapeError: the output has another
            shape than x.

    Accuracy: *exact* to rounding, float64 by a copy.
    """
    module = module_argument(module, "reconstruction_arrows(module, x)")
    samples = Samples.of(x)
    entered = [*samples.positional, *samples.named.values()]
    if len(entered) != 1:
        raise DataError(f"reconstruction_arrows(module, x): needs one tensor, got {len(entered)}. Wrap the module.")
    with undisturbed(module), replica_of(module) as replica, torch.no_grad():
        given = samples.at(slice(None), replica.dtype, replica.device)
        output = answer_of(replica(given), f"reconstruction_arrows(module, x): {type(module).__name__}").double()
    start = entered[0].to(output)
    if output.shape != start.shape:
        raise ShapeError(
            f"reconstruction_arrows(module, x): needs outputs of the shape of x, {tuple(start.shape)}; got "
            f"{tuple(output.shape)}. Pass an autoencoder."
        )
    start, output = start.reshape(samples.num, -1), output.reshape(samples.num, -1)
    is_plane = start.shape[1] == 2
    ends = (start, output) if is_plane else (_in_plane(start, start), _in_plane(output, start))
    dims = ("sample", "component")
    return xr.Dataset({name: (dims, t.cpu().numpy()) for name, t in zip(("start", "end"), ends, strict=True)})


def _in_plane(rows: Tensor, of: Tensor) -> Tensor:
    """Rows, centred as `of` is, in the two first principal components of `of`; zeros where it has one only."""
    centre = of.mean(0)
    vh = torch.linalg.svd(of - centre, full_matrices=False).Vh[:2]
    vh = vh * vh.gather(1, vh.abs().argmax(1, keepdim=True)).sign()
    found = (rows - centre) @ vh.mT
    return torch.cat([found, found.new_zeros(len(found), 2 - found.shape[1])], 1)
