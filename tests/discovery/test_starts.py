"""The linear start is the reduced-rank regression, and the network that it starts in has the shape it should."""

import dataclasses

import pytest
import torch

from isthmus.discovery import starts
from isthmus.discovery.settings import Settings
from isthmus.discovery.starts import new_network, reduced_rank_map, start_linear
from isthmus.networks import FullyConnected
from tolerances import rounding

NUM_SAMPLES, D_IN, D_OUT = 80, 7, 5


def data(d_out: int = D_OUT) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(NUM_SAMPLES, D_IN, generator=generator, dtype=torch.float64)
    y = x @ torch.randn(D_IN, d_out, generator=generator, dtype=torch.float64)
    y = y + torch.randn(NUM_SAMPLES, d_out, generator=generator, dtype=torch.float64)
    return x - x.mean(0), y - y.mean(0)


def started(settings: Settings) -> FullyConnected:
    x, y = data()
    network = new_network(D_IN, D_OUT, settings, seed=3).double()
    start_linear(network, x, y, settings)
    return network.requires_grad_(False)


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


@pytest.mark.parametrize(("relu_layers", "linear_layers"), [(3, 4), (1, 1), (2, 1), (1, 3)], ids=lambda n: str(n))
def test_without_noise_the_network_is_the_linear_map(
    relu_layers: int, linear_layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(relu_layers=relu_layers, linear_layers=linear_layers, width=20, linear_width=9)
    x, y = data()
    least_squares = torch.linalg.solve(x.T @ x, x.T @ y)
    allowed = rounding(size=NUM_SAMPLES, condition=float((x @ least_squares).abs().max()))
    elsewhere = -2 * x
    noisy = started(settings)
    assert float((noisy(elsewhere) - elsewhere @ least_squares).abs().max()) > 1e6 * allowed
    monkeypatch.setattr(starts, "LINEAR_START_NOISE", 0.0)
    network = started(settings)
    assert float((network(x) - x @ least_squares).abs().max()) <= allowed
    assert float((network(elsewhere) - elsewhere @ least_squares).abs().max()) <= 2 * allowed


@pytest.mark.parametrize(("width", "linear_width"), [(20, 2), (5, 9)], ids=["linear", "relu"])
def test_a_narrow_network_keeps_the_leading_directions(
    width: int, linear_width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts, "LINEAR_START_NOISE", 0.0)
    network = started(Settings(width=width, linear_width=linear_width))
    x, y = data()
    coordinates, back = reduced_rank_map(x, y)
    expected = x @ coordinates[:, :2] @ back[:, :2].T
    assert float((network(x) - expected).abs().max()) <= rounding(size=NUM_SAMPLES, condition=10.0)
    assert float((network(x) - x @ coordinates @ back.T).abs().max()) > 1e-3


def test_the_network_has_linear_layers_in_the_middle() -> None:
    settings = Settings(relu_layers=2, linear_layers=3, width=10, linear_width=6)
    network = new_network(D_IN, D_OUT, settings, seed=0)
    assert network.dimensions == (D_IN, 10, 10, 6, 6, 6, 10, 10, D_OUT)
    assert network.linear == {3, 4, 5}
    assert network.depth == settings.depth
    again, other = (new_network(D_IN, D_OUT, settings, seed=seed) for seed in (0, 1))
    assert torch.equal(network.weights[0], again.weights[0])
    assert not torch.equal(network.weights[0], other.weights[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ridges": ()}, "positive ridges, largest first"),
        ({"ridges": (1e-3, 1e-2)}, "positive ridges, largest first"),
        ({"ridges": (1e-3, 0.0)}, "positive ridges, largest first"),
        ({"starts": ()}, "at least one start"),
        ({"linear_layers": 0}, "at least one linear middle layer"),
        ({"heldout": 1.0}, "held-out share between 0 and 1"),
    ],
    ids=["no-ridge", "order", "zero", "no-start", "no-middle", "all-held-out"],
)
def test_settings_that_cannot_work_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(Settings(), **change)  # pyright: ignore[reportArgumentType]
