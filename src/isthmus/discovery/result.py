"""The result of `discover`: the rank, how sure it is, the evidence, and the two halves of the network."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from isthmus.diagnostics import Diagnosis
from isthmus.discovery.choices import FORETOLD
from isthmus.discovery.data.new_rows import applied, new_rows
from isthmus.discovery.depth.path import DepthPath
from isthmus.discovery.evidence.probability import Calibration, calibration
from isthmus.discovery.files.storage import CONTROL, PAGE, RESULT, read_fields, write_fields
from isthmus.discovery.findings import CUT_SHORT
from isthmus.discovery.groups.powers import Powers
from isthmus.discovery.halves import INDEX, RANK, RANK_KINDS, Side, rank_kind
from isthmus.errors import DataError
from isthmus.networks import FullyConnected
from isthmus.networks.devices import made_on_cpu
from isthmus.networks.network import Network
from isthmus.tasks.input_columns import InputColumn, columns_of
from isthmus.tasks.seen_ranges import say_far_off
from isthmus.theory import RankEstimate, Verdict
from isthmus.training.losses import Loss, loss_argument, usual_loss
from isthmus.writing.shown import Shown


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Discovery(Shown):
    """The rank of a task with its evidence, and `f = decoder o encoder` through that many dimensions.

    Attributes:
        rank: the best reading, also when doubtful.
        verdict: how sure it is.
        reasons: why, in sentences that a scientist understands.
        interval: certified lower and upper bound for the returned network, each with its reason.
        scree: dimension "rank" (1, 2, ...): `train_error`, `heldout_error` (network through that many dimensions) and
            `linear_error` (held-out error of reduced-rank regression, PCA when autoencoding); each is relative to the
            loss of the best constant, for squared error the variance of the targets. Of classes also
            `heldout_accuracy`, the share of held-out rows whose class has the largest output, and unless with
            effort="quick" `fold_accuracy` with its `fold_accuracy_error`: that of all rows, each through networks that
            were trained without it.
        objective_curve: dimensions "ridge" and "rank": `objective` (least objective reached through at most that many
            dimensions), and `chosen` (bool, per ridge).
        encoder: maps samples in the user's units to `rank` coordinates, float64: centred and decorrelated on the
            training rows, the one that saves most error there first (see `interpret`), sign fixed. A linear one, and
            its decoder, are trained on with the held-out rows in the end; all errors are from before that.
        decoder: maps coordinates to predictions in the user's units, float64. Where the task is linear both are: the
            linear map that networks of as many dimensions come near, or that does as well.
        network: the trained network behind them, or that they were compared with, in standardised units; with residual
            networks the start of least objective, which no waist constrains.
        runs: dimension "run", one row per start: `ridge`, `start`, `kind`, `objective`, `data_loss`, `heldout_error`,
            `jacobian_rank`, `activation_rank`, `stationarity`, `outcome`, `gradient_evaluations`, `seconds`.
        diagnosis: the per-layer table of `network`.
        warnings: what was changed or may mislead.
        task: "regression", "classification" or "autoencoding".
        input_names: names of the input columns.
        target_names: names of the target columns (classes when classifying, inputs when autoencoding).
        settings: everything that fixes the result: seed, ridges, starts, depth, split, versions.
        readings: the numbers behind the verdict by name: `objective_rank`, `sharpness` (under a loss in nats twice
            these), `spread` (logarithm of the least objective of a trained start over the least of all), `scree_rank`,
            `scree_margin`, `jacobian_rank`, `linear_rank` (components that PCA or reduced-rank regression needs for the
            same error, or None), `heldout_error` and `train_error` (through `rank` dimensions, of rows held out and
            trained on), `rows` (that were trained on), `one_fewer` (error through one dimension fewer over the error at
            the rank), `ridge`, `resample_share` (share of 200 resamples of the held-out rows whose scree curve reads
            `rank`), `start_share` (share of the starts at the chosen ridge and its neighbours whose Jacobian has that
            rank). The first is shown and does not decide; a small second is a doubt where rows are few. Of a regression
            that nothing else leaves in doubt `foretold`, how much more of what is lost the inputs tell than the
            coordinates (`discovery.evidence.foretold`); of data that are autoencoded, where it counts, the share of it
            that lies along one direction. Of a sample of many rows `unseen_error`, through `rank` dimensions on the
            others, on which nothing was fitted or chosen. Where linear maps are the answer to a regression in doubt
            `linear_error_of_all`, through `rank` dimensions of rows held out of them, each once. With one scale for all
            columns `columns_holding`, how many hold 95 % of the variance. Of classes `accuracy_rank`, the least with
            which as many are told apart as with any, within one standard error, from `accuracy_rank_low` to
            `accuracy_rank_high` on 95 % of resampled rows (`discovery.accuracy`). Of a leaky network also what its
            energies say, see `discovery.assembly`.
        control: the same pipeline run on the Gaussian surrogate of the same covariance, if it was asked for.
        depth_path: the rank as a function of depth, if it was asked for.
        combinations: of an index rank, the loadings of its combinations, how far they scatter, and exponents where
            inputs are logarithms, see `discovery.combinations`; else None.
        others: the other ranks of the same task by their kind, if they were asked for.
        remedies: what was done about doubts before answering, in order: `name`, `words`, `evaluations` (gradients that
            it was planned to take), `rank` and `verdict` afterwards.

    >>> found.rank >= 1, found.transform(x).shape == (60, found.rank), found.predict(x).shape
    (True, True, (60, 2))
    """

    rank: int
    verdict: Verdict
    reasons: tuple[str, ...]
    interval: RankEstimate
    scree: xr.Dataset
    objective_curve: xr.Dataset
    encoder: FullyConnected
    decoder: FullyConnected
    network: Network
    runs: xr.Dataset
    diagnosis: Diagnosis
    warnings: tuple[str, ...] = ()
    task: str = "regression"
    input_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    readings: Mapping[str, float | int | None] = field(default_factory=dict[str, float | int | None])
    control: "Discovery | None" = None
    depth_path: DepthPath | None = None
    combinations: xr.Dataset | None = None
    others: "Mapping[str, Discovery]" = field(default_factory=dict[str, "Discovery"])
    remedies: tuple[Mapping[str, object], ...] = ()

    @property
    def loss(self) -> Loss:
        """The data loss; runs from before it was recorded had the usual one.

        Raises:
            DataError: the run names one that is not known here.
        """
        name = str(self.settings.get("loss", usual_loss(classes=self.task == "classification").name))
        try:
            return loss_argument(name, "Discovery")
        except ValueError:
            raise DataError(f"the run has the loss {name!r}, which this version of isthmus does not know.") from None

    @property
    def kind(self) -> str:
        """Which rank it is: "rank", "index" where the encoder is linear, "mode" where the decoder is."""
        sides = (str(self.settings.get(f"{half}_side", Side.CURVED)) for half in ("encoder", "decoder"))
        return rank_kind(*sides).name

    @property
    def is_linear(self) -> bool:
        """Whether encoder and decoder are linear, as where the task is."""
        return self.rank > 0 and self.encoder.depth == self.decoder.depth == 1

    @property
    def heldout_error(self) -> float:
        """Of the two halves on the held-out rows, relative to that of the best constant; NaN where it is not known."""
        told = self.readings.get("heldout_error")
        return math.nan if told is None else float(told)

    @property
    def is_counted(self) -> bool:
        """Whether held-out rows are predicted through `rank` dimensions, better than by a constant or as a constant.

        Else the search failed to count, and its rank, 0 as a rule, is no bound on the other ranks.
        """
        return not self.heldout_error >= 1 if self.rank else self.heldout_error == 0

    @property
    def ranks(self) -> dict[str, int]:
        """The ranks that were found by their kind.

            rank <= min(index rank, mode rank)

        for halves of which one is linear are halves; where the rank was read larger, theirs is the better answer, also
        one in doubt, but not one that `is_counted` says is none. What its own search read is `rank` of the discovery
        of that kind, whose reasons say that it is in doubt.
        """
        everything = {self.kind: self, **self.others}
        found = {kind: one.rank for kind, one in everything.items()}
        counts = [one.rank for kind, one in everything.items() if kind == RANK.name or one.is_counted]
        return found | ({RANK.name: min(counts)} if RANK.name in found else {})

    @property
    def calibration(self) -> Calibration | None:
        """What tasks of known rank say of such an answer; None where too few of this kind were measured, or it is 0.

        Nothing is known under another loss than the usual one, of a search that the time limit cut short, of a
        series: the tasks had independent rows; nor of a rank that is known to be too small, or that of a few rows.
        """
        usual = usual_loss(classes=self.task == "classification").name
        is_as_measured = self.loss.name == usual and CUT_SHORT not in self.warnings and not self.settings.get("ordered")
        is_as_measured &= float(self.readings.get("foretold") or 0.0) <= FORETOLD
        is_as_measured &= "others_lost" not in self.readings
        return calibration(self.kind, self.task, self.readings) if self.rank and is_as_measured else None

    @property
    def probability(self) -> float | None:
        """That the rank is right, by how many of the tasks of known rank that looked like this one were (*estimate*).

        None where too few tasks of this kind were measured (`ENOUGH_TASKS`), or nothing was trained.
        """
        known = self.calibration
        return known.probability(self.rank, self.verdict, self.readings) if known else None

    @property
    def rank_set(self) -> tuple[int, ...]:
        """The ranks that hold the truth of 95 of 100 tasks like this one; empty where too few were."""
        known = self.calibration
        return known.ranks(self.rank, self.verdict, self.readings, most=self.most_rank) if known else ()

    @property
    def most_rank(self) -> int:
        """The rank that no map from these inputs to these targets exceeds, as far as the data vary."""
        by_shape = RANK_KINDS[self.kind].most(self.encoder.dimensions[0], self.decoder.dimensions[-1])
        known = self.readings.get("most_rank")  # columns made of others add none
        return by_shape if known is None else min(by_shape, int(known))

    @property
    def directions(self) -> NDArray[np.float64] | None:
        """The combinations of the inputs (rank, d_in) in the user's units, orthonormal; None where they are curved.

        The first is the direction of the coordinate that saves most error, the others add those of the next ones. What
        the data determine is their span.
        """
        if self.kind != INDEX.name:
            return None
        rows = self.encoder.weights[0].detach().numpy()
        q, r = np.linalg.qr(rows.T)
        return np.asarray((q * np.where(np.diag(r) < 0, -1.0, 1.0)).T)

    @property
    def columns(self) -> tuple[InputColumn, ...] | None:
        """How each input was made from the columns of a table; None for a run from before that was recorded."""
        return columns_of(self.input_names, self.settings.get("input_columns"))

    @property
    def powers(self) -> Powers | None:
        """Which inputs and targets are logarithms, and what takes the unit from the target; None where nothing is."""
        told: Any = self.settings.get("powers")
        return None if told is None else Powers.of_plain(self.input_names, told)

    @property
    def groups(self) -> list[dict[str, int]]:
        """Input -> exponent of each product of powers that a combination of logarithms is; empty where none is sure."""
        if self.combinations is None or "exponent" not in self.combinations:
            return []
        rows = self.combinations["exponent"].values
        if not np.isfinite(rows).all():
            return []
        return [{name: int(a) for name, a in zip(self.input_names, row, strict=True) if a} for row in rows]

    def inputs_of(self, x: object) -> NDArray[np.float64]:
        """Samples in the user's units as the encoder takes them: columns in order, logarithms taken."""
        return self._as_inputs(self.in_order(x))

    def transform(self, x: object) -> NDArray[np.float64]:
        """The `rank` coordinates (n, rank) of samples in the user's units; a DataWarning names what is far outside."""
        return applied(self.encoder, self.inputs_of(x))

    def predict(self, x: object) -> NDArray[np.float64]:
        """Predictions (n, d_out) in the user's units through `rank` dimensions, or logits, or log rates.

        What they are depends on the loss, of "gaussian" all means and then all log variances; `loss.means` turns them
        into expected targets, `loss.spreads` into standard deviations where the loss knows any.
        """
        rows = self.in_order(x)
        found = applied(self.decoder, applied(self.encoder, self._as_inputs(rows)))
        return found if self.powers is None else self.powers.restored(rows, found)

    def in_order(self, x: object) -> NDArray[np.float64]:
        """Samples in the user's units as checked rows (n, d_in): a data frame's columns in the order of `input_names`.

        A data frame without any of these names, like an array, is taken by position.

        Raises:
            DataError: what are no finite real numbers, or a data frame that has some of these names and lacks others.
            ShapeError: another number of columns.
        """
        return new_rows(x, self.input_names, self.encoder.dimensions[0])

    def decode(self, coordinates: object) -> NDArray[np.float64]:
        """Predictions in the user's units, shape (n, d_out), of `rank` coordinates as rows.

        Of a target that was divided by powers of the inputs, the pure number.
        """
        rows = new_rows(coordinates, (), self.decoder.dimensions[0], called="coordinates")
        found, powers = applied(self.decoder, rows), self.powers
        return found if powers is None else replace(powers, target_exponents=None).restored(found, found)

    def _as_inputs(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        powers = self.powers
        inputs = rows if powers is None else powers.inputs(rows)
        logged = () if powers is None else powers.coordinates.is_logged
        say_far_off(inputs, self.input_names, self.settings.get("input_ranges"), logged=logged)
        return inputs

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the discovery into `folder`, made if missing; `isthmus.load` gives it back bit for bit.

        result.json is written last: where it stands, the folder is complete. Nothing is pickled. Lists and tensors in
        `settings` and in evidence come back as tuples and arrays. An older discovery that was saved there is replaced.

        Raises:
            DataError: a run with its page stands there, which would be the page of another discovery.
            ValueError: an empty name.
            OSError: the folder cannot be written.
            TypeError: a setting, reading or piece of evidence has no plain form.
        """
        if not os.fspath(folder):
            raise ValueError("save(''): needs the name of a folder; '.' is this one.")
        if (Path(folder) / RESULT).exists() and (Path(folder) / PAGE).exists():
            raise DataError(
                f"{folder}: holds a finished run, and {PAGE} would tell of another than is saved. Give another folder."
            )
        beside = {**self.others, **({CONTROL: self.control} if self.control is not None else {})}
        for name, other in beside.items():
            other.save(Path(folder) / name)
        write_fields(folder, {f.name: getattr(self, f.name) for f in fields(self)})


@made_on_cpu
def load(folder: str | os.PathLike[str]) -> Discovery:
    """The discovery that `Discovery.save` or `isthmus discover` wrote into `folder`; nothing is unpickled.

    Args:
        folder: a run folder with a finished result, result.json.

    Returns:
        The discovery, bit for bit, with its control run if there was one.

    Raises:
        DataError: there is no finished run, or a file is missing, damaged, of another run or of a newer format.

    >>> folder = Path(tempfile.mkdtemp()) / "run"
    >>> found.save(folder)
    >>> isthmus.load(folder).rank == found.rank
    True
    """
    found, has_control, others = read_fields(folder)
    control = load(Path(folder) / CONTROL) if has_control else None
    return Discovery(**found, control=control, others={name: load(Path(folder) / name) for name in others})
