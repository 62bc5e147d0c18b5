"""The rows of DATA that belong to this process, standardised by the statistics of all rows, in torch's terms."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from isthmus.cli.data import TargetChoice, choice_of, loss_option, read_rows
from isthmus.cli.run_folder import builtin_name
from isthmus.discovery.data.scaling import Array, Standardiser, shared_standardiser
from isthmus.errors import DataError
from isthmus.networks import FullyConnected
from isthmus.tasks.arrays import LEAST_ROWS, counted
from isthmus.tasks.names import found_names
from isthmus.tasks.shards import FrameRows, RowSource, open_rows, read_labels, read_numbers
from isthmus.training.losses import Loss, usual_loss
from isthmus.training.sharded.team import Team

CLASS = "class"  # the column of builtin data that holds classes


@dataclass(frozen=True, slots=True, eq=False)
class ShardData:
    """What a fit is called with, and how its network is put into the units of the user.

    Attributes:
        x: standardised inputs of this process.
        y: their targets, standardised where the loss asks for it.
        total: rows of all processes.
        loss: of the fit.
        num_outputs: of the network.
        inputs: names of the columns that are inputs.
        outputs: names of the columns, or of the classes, that are predicted; with several outputs each, of these.
        input_scaling: of the inputs.
        output_scaling: of the outputs; None where targets are taken as they are.
    """

    x: Tensor
    y: Tensor
    total: int
    loss: Loss
    num_outputs: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_scaling: Standardiser
    output_scaling: Standardiser | None

    def in_user_units(self, network: FullyConnected) -> FullyConnected:
        """The network that takes, and for numbers gives, what stands in the file."""
        network = self.input_scaling.fold_into_encoder(network)
        return network if self.output_scaling is None else self.output_scaling.fold_into_decoder(network)


def read_shard(
    data: str,
    *,
    target: str | None,
    classes: str | None,
    autoencode: bool,
    dtype: torch.dtype,
    team: Team,
    loss: str | None = None,
    seed: int = 0,
) -> ShardData:
    """Read the rows of this process; `seed` draws builtin data.

    Raises:
        DataError: options or data that cannot be used, found by whichever process; one line says where.
    """
    source, choice, named = _opened(data, choice_of(target, classes, autoencode=autoencode), loss, seed)
    if source.rows < LEAST_ROWS:
        raise DataError(f"{data}: has {counted(source.rows, 'row')}; a fit needs at least {LEAST_ROWS}. Add rows.")
    target_names = found_names(choice.target, source.names)
    inputs = _inputs_beside((*target_names, *filter(None, [choice.classes])), source.names, data)
    rows = team.rows(source.rows)
    x = team.together_own(lambda: read_numbers(source, rows, inputs, data))
    input_scaling = shared_standardiser(x, rows=source.rows, team=team)
    if not len(input_scaling.kept):
        raise DataError(f"{data}: all {source.rows} rows have the same inputs. Pass varied rows.")
    output_scaling = None
    if choice.classes is not None:
        targets, outputs = _class_numbers(source, rows, choice.classes, data, team)
        width = len(outputs)
    else:
        outputs = target_names or inputs
        y = team.together_own(lambda: read_numbers(source, rows, target_names, data)) if target_names else x
        targets, output_scaling = _numbers(y, named, source.rows, data, team)
        width = named.num_outputs(targets)
    if named.per_target > 1:
        outputs = tuple(named.output_names(outputs))
    return ShardData(
        torch.from_numpy(input_scaling.apply(x)).to(dtype), named.targets(targets, dtype), source.rows, named,
        width, inputs, outputs, input_scaling, output_scaling,
    )  # fmt: skip


def _inputs_beside(chosen: Sequence[str], names: Sequence[str], data: str) -> tuple[str, ...]:
    """The columns that are not predicted."""
    if files := [name for name in chosen if name not in names and Path(name).is_file()]:
        raise DataError(f"{files[0]}: fit takes targets from columns of {data} alone. Put them into one table.")
    inputs = tuple(name for name in names if name not in chosen)
    if not inputs:
        raise DataError(f"{data}: no column is left as input. Name fewer targets.")
    return inputs


def _opened(data: str, choice: TargetChoice, loss: str | None, seed: int) -> tuple[RowSource, TargetChoice, Loss]:
    """The table, what of it is predicted, and the loss: builtin data bring their own targets, or are autoencoded."""
    if builtin_name(data) is None:
        named = _loss_of(choice, loss)  # what does not fit together is said before a file is opened
        return open_rows(Path(data)), choice, named
    found = read_rows(data, choice, seed=seed)
    table = pd.DataFrame(found.x, columns=list(found.names))
    if found.y is None:
        choice = TargetChoice(autoencode=True)
    elif found.loss is None:
        table, choice = table.join(found.y), TargetChoice(tuple(map(str, found.y.columns)))
    else:
        table = table.assign(**{CLASS: found.y.columns[found.y.to_numpy().argmax(1)]})
        choice = TargetChoice(classes=CLASS)
    return FrameRows(table), choice, _loss_of(choice, loss)


def _loss_of(choice: TargetChoice, loss: str | None) -> Loss:
    named = loss_option(loss) or usual_loss(classes=choice.classes is not None)
    if named.classes != (choice.classes is not None):
        raise DataError(f"--loss {loss}: needs {'--classes' if named.classes else '--target or --autoencode'}.")
    return named


def _numbers(y: Array, loss: Loss, total: int, where: str, team: Team) -> tuple[Tensor, Standardiser | None]:
    """The targets as the loss takes them, and the standardiser of the outputs if it takes them standardised."""
    team.together_own(lambda: loss.check(torch.from_numpy(y), where))
    scaling = shared_standardiser(y, rows=total, team=team, total=True)
    if not len(scaling.kept):
        raise DataError(f"{where}: the targets are the same in all rows. Name other columns.")
    if not loss.standardised:
        return torch.from_numpy(y), None
    return torch.from_numpy(scaling.apply(y)), scaling.of_outputs(loss)


def _class_numbers(
    source: RowSource, rows: slice, column: str, where: str, team: Team
) -> tuple[Tensor, tuple[str, ...]]:
    """The class number of each own row, and the names of the classes of all rows, sorted."""
    labels = team.together_own(lambda: read_labels(source, rows, column, where))
    own = np.unique(labels)
    classes = np.unique(np.concatenate(team.together(lambda: own)))
    if len(classes) < 2 or len(classes) > max(2, source.rows // 2):
        raise DataError(
            f"{where}: class column {column!r} has {counted(len(classes), 'different value')} in {source.rows} rows. "
            "For numbers use --target."
        )
    return torch.from_numpy(np.searchsorted(classes, labels)), tuple(str(c) for c in classes)
