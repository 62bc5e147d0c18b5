"""The best linear maps of each rank: from which starts begin, and which networks have to beat (`evidence.baseline`)."""

import torch
from torch import Tensor

from isthmus.discovery.data.problem import Problem
from isthmus.discovery.data.scaling import COLLINEAR

LINEAR_START_NOISE = 0.05  # share of the random weights left in a linear start, so that the ReLU layers can bend


def reduced_rank_map(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """(C, V) in float64 with the best rank-m linear predictor x C[:, :m] V[:, :m]^T for every m (least squares).

    Directions of the fitted values beyond rounding are left out. PCA where y is x.
    """
    x, y = x.double(), y.double()
    # float32 inputs that are collinear but for rounding (0/1 columns of one category, a sum of columns) have singular
    # values of 1e-7: without the cut their coefficients are 1e5 and the start is useless
    fitted_map = torch.linalg.lstsq(x, y, rcond=COLLINEAR, driver="gelsd").solution
    _, s, vh = torch.linalg.svd(x @ fitted_map, full_matrices=False)
    keep = int((s > 1e-9 * s[0]).sum()) if float(s[0]) > 0 else 0
    v = vh[:keep].T
    return fitted_map @ v, v


def regression_target(problem: Problem) -> Tensor:
    """What a linear start, which has no bias, regresses on: outputs that stand for the targets, centred."""
    scores = problem.loss.scores(problem.y, problem.d_out)
    return scores if problem.loss.standardised else scores - scores.mean(0)
