"""What `isthmus region` cuts: a network in the units of the rows that it acts on. What is made of it: `region_run`."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from isthmus.cli.data import builtin_task
from isthmus.cli.data_of_run import rows_like
from isthmus.constructions import merged_composition
from isthmus.discovery import Discovery, load
from isthmus.discovery.files.networks import read_network
from isthmus.discovery.halves import RANK_KINDS
from isthmus.errors import DataError
from isthmus.networks import FullyConnected
from isthmus.tasks import read_table


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A network with the data it acts on.

    Attributes:
        network: in the units of the rows.
        rows: the inputs, shape (n, d_in).
        input_names: of the columns.
        output_names: of the outputs; classes when it classifies.
        is_classifier: whether the outputs are logits of classes.
        what: the network in words.
        logged: whether each input is the logarithm of a column; rows and slices are in logarithms then.
    """

    network: FullyConnected
    rows: np.ndarray
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    is_classifier: bool
    what: str
    logged: tuple[bool, ...] = ()

    def said(self, column: int) -> str:
        """What an axis is called that shows a column."""
        name = self.input_names[column]
        return f"log {name}" if self.logged and self.logged[column] else name

    def in_units(self, x: Tensor) -> Tensor:
        """A point as the person's columns have it."""
        return torch.where(torch.tensor(self.logged), x.exp(), x) if any(self.logged) else x


def read_model(path: Path, data: str) -> Model:
    """The network of a saved discovery or of a safetensors file, and the rows of DATA.

    Raises:
        DataError: either cannot be read, or they do not fit.
    """
    if path.is_dir():
        return _of_discovery(load(path), data)
    network = read_network(path)
    d_in, d_out = network.dimensions[0], network.dimensions[-1]
    if (task := builtin_task(data)) is None:  # constant columns stay: the network has an input for each
        task = read_table(data, autoencode=True, drop_constant=False)
    if task.x.shape[1] != d_in:
        raise DataError(f"{data}: has {task.x.shape[1]} input columns, the network in {path} takes {d_in}.")
    names = tuple(map(str, task.x_names)) or tuple(f"x{i}" for i in range(d_in))
    outputs = tuple(str(i) for i in range(d_out))
    return Model(network, task.x, names, outputs, False, f"the network in {path.name}")


def _of_discovery(found: Discovery, data: str) -> Model:
    encoder, decoder = found.encoder, found.decoder
    if encoder.depth > 1 and decoder.depth > 1 and encoder.negative_slope != decoder.negative_slope:
        raise DataError("region: the two halves of the discovery have different activations; nothing exact is known.")
    network = merged_composition(encoder, decoder)
    counted_rank = RANK_KINDS[found.kind].counted(found.rank)
    logged = () if found.powers is None else found.powers.coordinates.is_logged
    units = "logarithms of the data" if any(logged) else "the units of the data"
    what = f"decoder o encoder through {counted_rank}, in {units}"
    rows = found.inputs_of(rows_like(data, found.input_names, found.columns))
    is_classifier = found.task == "classification"
    outputs = found.target_names if is_classifier else found.loss.output_names(found.target_names)
    return Model(network, rows, tuple(found.input_names), tuple(outputs), is_classifier, what, logged)
