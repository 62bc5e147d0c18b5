import numpy as np
import pytest
import torch
from torch import nn

from foreign_modules import samples
from isthmus.diagnostics import reconstruction_arrows, representation_path
from isthmus.errors import DataError, ShapeError
from shape_checks import own_shape_checks

DOUBLE = torch.float64


def test_a_path_keeps_the_distances_of_two_dimensional_streams() -> None:
    """Rotations of a plane inside of five dimensions: the plane is the two components, at every layer."""
    plane = torch.linalg.qr(samples(5, 2, dtype=DOUBLE)).Q
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]], dtype=DOUBLE)
    module = nn.Sequential(*(nn.Linear(5, 5, bias=False) for _ in range(3))).double()
    with torch.no_grad():
        for layer in module:
            assert isinstance(layer, nn.Linear)
            layer.weight.copy_(plane @ turn @ plane.mT)
    latent = samples(40, 2, seed=1, dtype=DOUBLE)
    found = representation_path(module, latent @ plane.mT)
    assert found["group"].values.tolist() == [0, 0, 0]
    for path in found["path"].values:
        distances = torch.cdist(torch.from_numpy(path), torch.from_numpy(path))
        torch.testing.assert_close(distances, torch.cdist(latent, latent), rtol=1e-6, atol=1e-6)
    steps = np.linalg.norm(np.diff(found["path"].values, axis=0), axis=2)
    length = latent.norm(dim=1).numpy() * 2 * np.sin(np.arccos(0.6) / 2)
    np.testing.assert_allclose(steps[0], length, rtol=1e-9)


def test_layers_of_other_widths_start_components_of_their_own() -> None:
    module = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).train()
    found = representation_path(module, samples(20, 5))
    assert found["group"].values.tolist() == [0, 0, 1]
    assert found["name"].values.tolist() == ["0", "2", "4"]
    assert not found["path"].values[2, :, 1].any()
    assert module.training


def test_arrows_end_where_the_autoencoder_does() -> None:
    x = samples(30, 2, dtype=DOUBLE)
    module = nn.Linear(2, 2).double()
    found = reconstruction_arrows(module, x)
    np.testing.assert_array_equal(found["start"], x)
    np.testing.assert_allclose(found["end"], module(x).detach(), rtol=1e-12)
    with pytest.raises(ShapeError, match=r"needs outputs of the shape of x, \(30, 2\); got \(30, 3\)"):
        reconstruction_arrows(nn.Linear(2, 3), x)


def test_one_tensor_is_taken_however_it_is_given() -> None:
    module, x = nn.Linear(3, 3).double(), samples(30, 3, dtype=DOUBLE)
    plain = reconstruction_arrows(module, x)
    for given in ({"input": x}, (x,)):
        np.testing.assert_array_equal(reconstruction_arrows(module, given)["end"], plain["end"])
    with pytest.raises(DataError, match="needs one tensor, got 2"):
        reconstruction_arrows(module, (x, x))


def test_arrows_of_more_dimensions_lie_in_the_plane_of_the_samples() -> None:
    """A map that moves samples inside of the plane in which they vary loses nothing in the picture."""
    x = samples(200, 4, dtype=DOUBLE) * torch.tensor([9.0, 4.0, 0.0, 0.0], dtype=DOUBLE)
    module = nn.Linear(4, 4, bias=False).double()
    with torch.no_grad():
        module.weight.copy_(torch.diag(torch.tensor([1.0, 0.5, 3.0, 3.0], dtype=DOUBLE)))
    found = reconstruction_arrows(module, x)
    steps = (found["end"] - found["start"]).values
    total = (module(x) - x).detach().norm(dim=1).numpy()
    np.testing.assert_allclose(np.linalg.norm(steps, axis=1), total, rtol=1e-9)


def test_arrows_start_at_the_samples_however_they_are_given() -> None:
    module, x = nn.Linear(5, 5), samples(20, 5)
    expected = reconstruction_arrows(module, x)
    with own_shape_checks():
        found = reconstruction_arrows(module, {"input": x})  # pyright: ignore[reportArgumentType]
        assert found.identical(expected)
        with pytest.raises(ShapeError, match="needs outputs of the shape of x"):
            reconstruction_arrows(nn.Linear(5, 4), {"input": x})  # pyright: ignore[reportArgumentType]
    images = samples(20, 1, 3, 3)
    with own_shape_checks():
        flat = reconstruction_arrows(nn.Identity(), images.flatten(1))
        assert reconstruction_arrows(nn.Identity(), images).identical(flat)
