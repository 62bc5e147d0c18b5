"""The reduced-rank regression, from which linear starts begin and which is the baseline."""

import pytest
import torch

from isthmus.discovery.kinds.connected import reduced_rank_map
from tolerances import rounding

NUM_SAMPLES, D_IN, D_OUT = 80, 7, 5


def data(d_out: int = D_OUT) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(NUM_SAMPLES, D_IN, generator=generator, dtype=torch.float64)
    y = x @ torch.randn(D_IN, d_out, generator=generator, dtype=torch.float64)
    y = y + torch.randn(NUM_SAMPLES, d_out, generator=generator, dtype=torch.float64)
    return x - x.mean(0), y - y.mean(0)


@pytest.mark.parametrize("rank", range(1, D_OUT + 1))
def test_no_linear_map_of_that_rank_fits_better(rank: int) -> None:
    """Eckart-Young on the fitted values: the residual is that of least squares plus the spectrum beyond the rank."""
    x, y = data()
    coordinates, back = reduced_rank_map(x, y)
    fitted = x @ torch.linalg.solve(x.T @ x, x.T @ y)
    s = torch.linalg.svdvals(fitted)
    exact = float((y - fitted).square().sum() + s[rank:].square().sum())
    residual = float((y - x @ coordinates[:, :rank] @ back[:, :rank].T).square().sum())
    assert residual == pytest.approx(exact, rel=rounding(size=NUM_SAMPLES))
    plain = torch.linalg.svd(y).Vh[:rank]  # principal components of y, not of its fitted values
    other = float((y - x @ torch.linalg.solve(x.T @ x, x.T @ y @ plain.T) @ plain).square().sum())
    assert other >= exact * (1 - rounding(size=NUM_SAMPLES))
    if rank < D_OUT:
        assert other > exact * (1 + 1e-6)


def test_it_is_pca_where_y_is_x() -> None:
    x, _ = data()
    coordinates, back = reduced_rank_map(x, x)
    axes = torch.linalg.svd(x, full_matrices=False).Vh.T
    projectors = [m[:, :3] @ m[:, :3].T for m in (coordinates, back, axes)]
    assert float((projectors[0] - projectors[2]).abs().max()) <= rounding(size=NUM_SAMPLES, condition=10.0)
    assert float((projectors[1] - projectors[2]).abs().max()) <= rounding(size=NUM_SAMPLES, condition=10.0)


def test_directions_beyond_rounding_are_left_out() -> None:
    x, y = data()
    x[:, -1] = x[:, 0]  # rank-deficient inputs
    y[:, 1:] = y[:, :1] * torch.arange(1, D_OUT)
    coordinates, back = reduced_rank_map(x, y)
    assert coordinates.shape == (D_IN, 1)
    assert back.shape == (D_OUT, 1)
    assert reduced_rank_map(x, torch.zeros_like(y))[0].shape == (D_IN, 0)
