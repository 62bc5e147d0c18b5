"""The linear baseline that a network has to beat: reduced-rank regression, PCA when autoencoding."""

import torch
from torch import Tensor

from isthmus.discovery.problem import Problem
from isthmus.discovery.starts import reduced_rank_map
from isthmus.training.losses import Loss


def linear_errors(problem: Problem, *, most: int) -> list[float]:
    """Held-out error, relative to the best constant, of linear maps of rank 0, 1, ..., `most`.

    Squared error: the reduced-rank regression of the targets on the inputs, PCA when they are the same. Cross-entropy:
    logistic regression on the leading principal components of the inputs.
    """
    if problem.loss is Loss.CROSS_ENTROPY:
        return _logistic_errors(problem, most)
    offset_x, offset_y = problem.x.double().mean(0), problem.y.double().mean(0)
    coordinates, back = reduced_rank_map(problem.x - offset_x, problem.y - offset_y)
    held = problem.x_held.double() - offset_x
    errors = [
        problem.loss_of(held @ coordinates[:, :k] @ back[:, :k].T + offset_y, problem.y_held)
        for k in range(min(most, coordinates.shape[1]) + 1)
    ]
    return errors + [errors[-1]] * (most + 1 - len(errors))


def _logistic_errors(problem: Problem, most: int) -> list[float]:
    # sklearn is slow to import and only classification needs it
    from sklearn.linear_model import LogisticRegression

    x = problem.x.double() - problem.x.double().mean(0)
    axes = torch.linalg.svd(x, full_matrices=False).Vh
    train, held = x @ axes.T, (problem.x_held.double() - problem.x.double().mean(0)) @ axes.T
    shares = torch.bincount(problem.y, minlength=problem.d_out).double().clamp_min(0.5)
    errors = [problem.loss_of((shares / shares.sum()).log().expand(len(held), -1).clone(), problem.y_held)]
    for k in range(1, min(most, train.shape[1]) + 1):
        model = LogisticRegression(max_iter=1000).fit(train[:, :k].numpy(), problem.y.numpy())
        logits = torch.full((len(held), problem.d_out), -30.0, dtype=torch.float64)
        logits[:, torch.from_numpy(model.classes_)] = _log_probabilities(model, held[:, :k])
        errors.append(problem.loss_of(logits, problem.y_held))
    return errors + [errors[-1]] * (most + 1 - len(errors))


def _log_probabilities(model: object, x: Tensor) -> Tensor:
    return torch.from_numpy(model.predict_log_proba(x.numpy())).clamp_min(-30.0)  # pyright: ignore[reportAttributeAccessIssue]
