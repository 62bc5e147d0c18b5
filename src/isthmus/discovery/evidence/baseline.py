"""The linear baseline that a network has to beat: reduced-rank regression, PCA when autoencoding."""

from collections.abc import Iterable, Iterator
from itertools import islice

import torch
from torch import Tensor

from isthmus.discovery.data.problem import Problem
from isthmus.discovery.kinds.connected import reduced_rank_map
from isthmus.networks import FullyConnected
from isthmus.processes.shared_state import silenced
from isthmus.training import fit
from isthmus.training.losses import weighted_mean
from isthmus.training.solvers.solver import LBFGS

ITS_RIDGE = 1e-6  # relative to the unit of errors: keeps a linear map bounded where the least loss is at infinity
ITS_EVALUATIONS = 200


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
        *map(problem.heldout_error, islice(_linear_networks(problem, range(1, most + 1)), most)),
    ]
    return errors + [errors[-1]] * (most + 1 - len(errors))


def linear_network(problem: Problem, rank: int) -> FullyConnected:
    """The linear map of `linear_errors` through so many dimensions, one at least: two layers, both linear, float64."""
    return next(_linear_networks(problem, [rank]))


def _linear_networks(problem: Problem, ranks: Iterable[int]) -> Iterator[FullyConnected]:
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
