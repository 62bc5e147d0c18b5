"""The network that stands in for a very deep one, and the weights that it starts from."""

import torch
from torch import Tensor

from isthmus.discovery.settings import Settings
from isthmus.networks import FullyConnected

COLLINEAR = 1e-5  # relative singular value of the inputs below which they are collinear
LINEAR_START_NOISE = 0.05  # share of the random weights left in a linear start, so that the ReLU layers can bend


def new_network(d_in: int, d_out: int, settings: Settings, *, seed: int) -> FullyConnected:
    """ReLU layers, linear layers, ReLU layers, with random weights.

    The linear run plays the near-identity middle of a very deep network: its cost is a Schatten quasi-norm, it trains
    in seconds, and it factors exactly.
    """
    r, m = settings.relu_layers, settings.linear_layers
    widths = [settings.width] * r + [settings.linear_width] * m + [settings.width] * r
    return FullyConnected(d_in, d_out, width=widths, depth=settings.depth, linear=range(r + 1, r + m + 1), seed=seed)


def start_linear(network: FullyConnected, x: Tensor, y: Tensor, settings: Settings) -> None:
    """Turn random weights into the reduced-rank regression of y on x, written as a ReLU network, plus noise; in place.

    y ~ x B,  B = C V^T from the SVD of the fitted values:  h = (relu(C^T x), relu(-C^T x)) is carried by identities
    """
    coordinates, back = reduced_rank_map(x, y)
    m = min(settings.linear_width, settings.width // 2, coordinates.shape[1])
    c, v = coordinates[:, :m].to(x.dtype), back[:, :m].to(x.dtype)
    r, last = settings.relu_layers, settings.linear_layers + settings.relu_layers
    eye = torch.eye(m, dtype=x.dtype)
    signs = torch.cat([eye, -eye])
    with torch.no_grad():
        w = [weight.mul_(LINEAR_START_NOISE) for weight in network.weights]
        w[0][: 2 * m] += signs @ c.T
        for l in [*range(1, r), *range(last + 1, last + r)]:
            w[l][: 2 * m, : 2 * m] += torch.eye(2 * m, dtype=x.dtype)
        w[r][:m, : 2 * m] += signs.T
        for l in range(r + 1, last):
            w[l][:m, :m] += eye
        w[last][: 2 * m, :m] += signs
        w[last + r][:, : 2 * m] += v @ signs.T


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
