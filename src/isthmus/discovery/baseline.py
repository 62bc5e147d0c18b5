"""The linear baseline that a network has to beat: reduced-rank regression, PCA when autoencoding."""

import torch
from torch import Tensor

from isthmus.discovery.linear_maps import reduced_rank_map
from isthmus.discovery.problem import Problem, weighted_mean
from isthmus.training.losses import Loss


def linear_errors(problem: Problem, *, most: int) -> list[float]:
    """Held-out error, relative to the best constant, of linear maps of rank 0, 1, ..., `most`.

    Squared error: the reduced-rank regression of the targets on the inputs, PCA when they are the same. Cross-entropy:
    logistic regression on the leading principal components of the inputs.
    """
    if problem.loss is Loss.CROSS_ENTROPY:
        return _logistic_errors(problem, most)
    offset_x, offset_y = (weighted_mean(values, problem.weight) for values in (problem.x, problem.y))
    root = _root(problem.weight)
    coordinates, back = reduced_rank_map((problem.x - offset_x) * root, (problem.y - offset_y) * root)
    held = problem.x_held.double() - offset_x
    errors = [
        problem.loss_of(held @ coordinates[:, :k] @ back[:, :k].T + offset_y, problem.y_held, problem.weight_held)
        for k in range(min(most, coordinates.shape[1]) + 1)
    ]
    return errors + [errors[-1]] * (most + 1 - len(errors))


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
