"""The linear baseline that a network has to beat, and where it does not: reduced-rank regression, PCA, logits.

What is decided then: `decision`.
"""

import operator
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isthmus.discovery.choices import AROUND, AS_LINEAR, AS_READ, CLOSE, FILLED, LINEAR_GAIN, NOTHING_LEFT, OUTVOTES
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.data.splitting import FOLDS, numbered_apart
from isthmus.discovery.evidence.confidence import row_losses
from isthmus.discovery.findings import LinearReading, Readings
from isthmus.discovery.kinds.connected import reduced_rank_map
from isthmus.discovery.settings import Settings
from isthmus.networks import FullyConnected
from isthmus.processes.shared_state import silenced
from isthmus.theory.comparison import by_ratio
from isthmus.theory.curve_readings import plateau_reading, scree_reading
from isthmus.training import fit
from isthmus.training.losses import weighted_mean
from isthmus.training.solvers.solver import LBFGS

Array = NDArray[np.float64]
ITS_RIDGE = 1e-6  # relative to the unit of errors: keeps a linear map bounded where the least loss is at infinity
ITS_EVALUATIONS = 200
SPLITS, SPLIT_ROWS = 4, 1000  # of so many rows trained on into folds: ten tell no more; of more rows one is enough


def linear_errors(problem: Problem, *, most: int) -> list[float]:
    """Held-out error, relative to the best constant, of linear maps of rank 0, 1, ..., `most`.

    Squared error: the reduced-rank regression of the targets on the inputs, PCA when they are the same. Other losses of
    numbers: that map, trained on to a minimum of the loss itself. Classes: logistic regression on the leading principal
    components of the inputs.
    """
    if problem.classes:
        return _logistic_errors(problem, most)
    errors = [
        problem.heldout_error_of_constant(),
        *map(problem.heldout_error, islice(linear_networks(problem, range(1, most + 1)), most)),
    ]
    return errors + [errors[-1]] * (most + 1 - len(errors))


def linear_network(problem: Problem, rank: int) -> FullyConnected:
    """The linear map of `linear_errors` through so many dimensions, one at least: two layers, both linear, float64."""
    return next(linear_networks(problem, [rank]))


def linear_reading(sample: Sample, settings: Settings, *, most: int) -> LinearReading:
    """What linear maps of squared error read up to `most` dimensions, each row held out of them; targets vary.

    Of several splits into fifths, over which the losses of a row are averaged, as one split of few rows is a matter of
    luck.
    """
    everything, weight, together, compared = list[Array](), np.ones(0), None, by_ratio
    for number in range(SPLITS if np.count_nonzero(~sample.held) <= SPLIT_ROWS else 1):
        parts = sample.folds(replace(settings, seed=settings.seed + number), FOLDS)
        order = np.concatenate([np.flatnonzero(part.held) for part in parts]).argsort()
        losses, sets = list[Array](), list[NDArray[np.int64] | None]()
        for problem in filter(None, (part.posed_again(settings) for part in parts)):  # one at a time: each copies rows
            losses.append(_losses_of_linear_maps(problem, most))
            sets.append(problem.together_held)
            compared = problem.errors_compared
        everything.append(np.concatenate(losses, axis=1)[:, order])
        if not number:  # in the others the same rows belong together
            weight, numbers = np.concatenate([part.held_weight for part in parts])[order], numbered_apart(sets)
            together = None if numbers is None else numbers[order]
    losses = np.mean(everything, axis=0)
    errors = np.average(losses, axis=1, weights=weight)
    read = partial(
        plateau_reading, losses, ranks=range(most + 1), weight=weight, together=together, slack=AS_LINEAR,
        compared=compared,
    )  # fmt: skip
    rank, least = read(noise=1.0).rank, read(noise=2.0).rank
    return LinearReading(rank, least, int(errors.argmin()), tuple((errors / errors[0]).tolist()))


def _losses_of_linear_maps(problem: Problem, most: int) -> Array:
    """Of the rows that it held out, through 0, 1, ..., `most` dimensions; more than there are change nothing."""
    rows = [
        row_losses(problem, None),
        *(row_losses(problem, one) for one in linear_networks(problem, range(1, most + 1))),
    ]
    return np.stack([*rows, *[rows[-1]] * (most + 1 - len(rows))])


def linear_networks(problem: Problem, ranks: Iterable[int]) -> Iterator[FullyConnected]:
    """The linear maps of these ranks, ascending, up to the one that none exceeds."""
    mean = weighted_mean(problem.x, problem.weight)
    x, scores, root = problem.x.double(), problem.loss.scores(problem.y, problem.d_out), _root(problem.weight)
    offset = weighted_mean(scores, problem.weight)
    coordinates, back = reduced_rank_map((x - mean) * root, (scores - offset) * root)
    for k in ranks:
        if k > coordinates.shape[1]:
            return
        into = coordinates[:, :k].T
        halves, biases = [into, back[:, :k]], [-into @ mean, offset]
        network = FullyConnected.from_layers(halves, biases, linear=(1,))
        if not problem.loss.is_quadratic:
            fit(
                network, x, problem.y, ridge=ITS_RIDGE * problem.unit, loss=problem.loss,
                solver=LBFGS(ITS_EVALUATIONS), sample_weight=problem.weight,
            )  # fmt: skip
        yield network


def _logistic_errors(problem: Problem, most: int) -> list[float]:
    # sklearn is slow to import and only classification needs it
    from sklearn.linear_model import LogisticRegression

    offset = weighted_mean(problem.x, problem.weight)
    x = problem.x.double() - offset
    axes = torch.linalg.svd(x * _root(problem.weight), full_matrices=False).Vh
    train, held = x @ axes.T, (problem.x_held.double() - offset) @ axes.T
    weight = None if problem.weight is None else problem.weight * len(x)
    constant = problem.best_constant().expand(len(held), -1)
    errors = [problem.loss_of(constant.clone(), problem.y_held, problem.weight_held)]
    # a rare class may lie among the held-out rows alone
    varied = len(problem.y.unique()) > 1
    for k in range(1, min(most, train.shape[1]) + 1 if varied else 1):
        k = train.shape[1] if problem.free_outputs == 1 else k  # noqa: PLW2901 - two classes: any linear map has rank 1
        with silenced(UserWarning, "The number of unique classes"):  # whoever asked knows that they are classes
            model = LogisticRegression(max_iter=1000).fit(
                train[:, :k].numpy(), problem.y.numpy(), None if weight is None else weight.numpy()
            )
        logits = torch.full((len(held), problem.d_out), -30.0, dtype=torch.float64)
        logits[:, torch.from_numpy(model.classes_)] = _log_probabilities(model, held[:, :k])
        errors.append(problem.loss_of(logits, problem.y_held, problem.weight_held))
    return errors + [errors[-1]] * (most + 1 - len(errors))


def _root(weight: Tensor | None) -> Tensor | float:
    """Factors of the rows that turn least squares with weights into plain least squares."""
    return 1.0 if weight is None else weight.sqrt()[:, None]


def _log_probabilities(model: object, x: Tensor) -> Tensor:
    return torch.from_numpy(model.predict_log_proba(x.numpy())).clamp_min(-30.0)  # pyright: ignore[reportAttributeAccessIssue]


def linear_maps_tell(readings: Readings) -> bool:
    """Whether linear maps of the other rows tell each row as well as networks, and no curve makes up for dimensions.

    Of few rows networks learn little that is linear: 100 rows of 7 columns, four targets of two combinations in noise,
    read 1. Of what is curved they are better, or nearly as good through fewer dimensions than linear maps need.
    """
    if not linear_maps_do_as_well(readings):
        return False
    mapped, (error, linear) = readings.mapped, _side_by_side(readings)
    assert mapped is not None  # they do as well
    nearly = readings.errors_compared.raised(linear[mapped.rank], AS_READ)
    return not any(mine < flat and mine <= nearly for mine, flat in zip(error[: mapped.rank], linear, strict=False))


def linear_maps_do_as_well(readings: Readings) -> bool:
    """Whether no network does clearly better (`CLOSE`) than they do through as many dimensions as they read."""
    mapped, (error, linear) = readings.mapped, _side_by_side(readings)
    if mapped is None or not 0 < mapped.rank < min(len(linear), len(readings.linear_error)):
        return False
    return readings.errors_compared.raised(min(error), CLOSE) > linear[mapped.rank]


def _side_by_side(readings: Readings) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Errors of networks and of linear maps by rank: of all rows where both are known, else of those first held out."""
    if readings.mapped is not None and readings.errors_of_all:
        return readings.errors_of_all, readings.mapped.errors
    return readings.heldout_error, readings.linear_error


def networks_come_near_linear(readings: Readings, rank: int) -> bool:
    """Whether the task is a linear map through as many dimensions, so that networks can but come near it.

    No network through as many or more predicts better, through one dimension fewer neither a network nor a linear map
    does nearly as well, and rows fill as many dimensions: else curved coordinates might do with fewer.
    """
    linear, error = readings.linear_error, readings.heldout_error
    if readings.classes or not 0 < rank < min(len(linear), len(error)) or rank == readings.columns:
        return False
    if not AROUND * readings.fills + FILLED >= rank:
        return False
    if curves_are_of_use(readings, rank):  # six columns and a product of two of them fill all but seven dimensions
        return False
    if linear[rank] <= NOTHING_LEFT:
        return min(linear[:rank]) > NOTHING_LEFT
    if any(map(operator.lt, error[rank:], linear[rank:])):
        return False
    bend = scree_reading(linear, compared=readings.errors_compared)
    is_read = bend.rank == rank and bend.sharpness >= OUTVOTES
    return is_read and error[rank] < min(linear[:rank])


def curves_are_of_use(readings: Readings, rank: int) -> bool:
    """Whether networks through one dimension fewer lose clearly less than linear maps do."""
    linear, error = readings.linear_error, readings.heldout_error
    return error[rank - 1] <= readings.errors_compared.raised(linear[rank - 1], LINEAR_GAIN)


def is_exactly_linear(readings: Readings, rank: int) -> bool:
    """Whether it leaves nothing: then no training can add to it, and what networks read is how they ended."""
    return networks_come_near_linear(readings, rank) and readings.linear_error[rank] <= NOTHING_LEFT
