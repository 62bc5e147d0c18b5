import numpy as np
import pytest
import torch

import isthmus
from isthmus.diagnostics import leaky_diagnosis, leaky_path
from isthmus.diagnostics.leaky_sums import BLOCK, leaky_sums
from isthmus.errors import DataError, NumericalWarning, ShapeError
from isthmus.networks import Waist
from isthmus.theory import features, layer_gamma, relaxed_energies
from isthmus.theory.leaky_bounds import energies_of_grams
from isthmus.training.losses import CROSS_ENTROPY
from leaky_networks import random_leaky
from theorem_checks import assert_close, normal


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("waist", [None, 0, 4])
def test_sums_over_blocks_are_those_of_the_whole_path(smoothing: float, bias: bool, waist: int | None) -> None:
    network, n = random_leaky(0, smoothing=smoothing, bias=bias), BLOCK + 37
    if waist is not None:
        network.narrow(Waist(waist, torch.linalg.qr(normal(4, 5, 2)).Q, normal(6, 5)))
    x, y = normal(2, n, 3), normal(3, n, 2)
    path = leaky_path(network, x, y, ridge=0.3)
    sums = leaky_sums(network.requires_grad_(False), x, y, ridge=0.3)
    A, B = path.activations, path.momenta
    S = features(A, bias=bias, smoothing=smoothing)
    assert_close(sums.gram, S[:-1].mT @ S[:-1], relative=1e-12)
    assert_close(sums.by_activation, S[:-1].mT @ A[:-1], relative=1e-12)
    assert_close(sums.by_momentum, S[:-1].mT @ path.arriving, relative=1e-12)
    assert_close(sums.by_level, S.mT @ B, relative=1e-12)
    for found, expected in (
        (sums.activation, (A * A).sum((1, 2))), (sums.momentum, (B * B).sum((1, 2))), (sums.same, (A * B).sum((1, 2))),
        (sums.mixed, (A[:-1] * path.arriving).sum((1, 2))),
        (sums.data_loss, torch.tensor(path.data_loss, dtype=torch.float64)),
    ):  # fmt: skip
        assert_close(found, expected, relative=1e-12)
    with pytest.raises(AssertionError):
        assert_close(sums.by_level[1:], sums.by_momentum, relative=1e-12)


@pytest.mark.parametrize("waist", [None, 0, 1, 4])
def test_critical_weights_are_where_the_gradient_says(waist: int | None) -> None:
    """d(data loss)/dW_l = -(ridge rho_l / Lt) critical_l, by autograd."""
    network = random_leaky(0, smoothing=0.2)
    if waist is not None:
        network.narrow(Waist(waist, torch.linalg.qr(normal(4, 5, 2)).Q, normal(6, 5)))
    x, y = normal(2, 40, 3), normal(3, 40, 2)
    path = leaky_path(network, x, y, ridge=0.3)
    loss = (network(x) - y).square().sum(1).mean()
    (gradient,) = torch.autograd.grad(loss, [network.weights])
    scale = 0.3 * path.steps / network.effective_depth
    assert_close(-scale[:, None, None] * path.critical, gradient, relative=1e-12)
    with pytest.warns(NumericalWarning, match="far from critical"):
        table = leaky_diagnosis(network, x, y, ridge=0.3)
    assert table.attrs["stationarity"] == pytest.approx(path.total_stationarity, rel=1e-10)
    assert (waist in {None, 0}) == torch.equal(path.arriving, path.momenta[1:])


@pytest.mark.parametrize("relative", [1e-4, 1e-2])
def test_energies_from_sums_are_those_of_the_samples(relative: float) -> None:
    A, B = normal(0, 50, 6), normal(1, 50, 6) / 10
    S = features(A)
    gamma = layer_gamma(S, relative=relative)
    whole = relaxed_energies(A, B, effective_depth=3.0, gamma=gamma)
    size = float(A.square().sum())
    cost, square = energies_of_grams(S.mT @ S, S.mT @ A, S.mT @ B, activation=size, gamma=gamma)
    assert cost == pytest.approx(whole.cost_of_identity, rel=1e-10)
    assert square == pytest.approx(whole.speed**2, rel=1e-10)
    with pytest.raises(AssertionError):
        assert square == pytest.approx(energies_of_grams(S.mT @ S, S.mT @ A, S.mT @ B, activation=size,
                                                         gamma=gamma * 1.0001)[1], rel=1e-10)  # fmt: skip


def test_a_gamma_too_small_for_the_sums_is_computed_from_the_path() -> None:
    network, x, y = random_leaky(0), normal(2, 30, 3), normal(3, 30, 2)
    path = leaky_path(network, x, y, ridge=0.3)
    with pytest.warns(NumericalWarning, match="far from critical"):
        table = leaky_diagnosis(network, x, y, ridge=0.3, relative_gamma=1e-9)
    for l in range(6):
        A = path.activations[l]
        gamma = layer_gamma(features(A), relative=1e-9)
        whole = relaxed_energies(A, path.momenta[l + 1], effective_depth=2.5, gamma=gamma)
        assert float(table["cost_of_identity"][l]) == pytest.approx(whole.cost_of_identity, rel=1e-6)
        assert float(table["kinetic_energy"][l]) == pytest.approx(whole.kinetic_energy, rel=1e-6)


def test_the_norm_of_the_momentum_is_that_behind_each_layer() -> None:
    """Worked out apart: the recursion by hand, and the gradient of the loss by what layer l leaves behind it."""
    network, x, y, ridge = random_leaky(4), normal(6, 8, 3), normal(7, 8, 2), 0.3
    W, rho, Lt = network.weights.detach(), network.steps.double(), 2.5
    norms = list[float]()
    for level in range(1, 7):
        stream = x @ network.embedding.detach().mT
        for l in range(6):
            if l == level:
                stream = stream.requires_grad_()
                here = stream
            seen = torch.cat([stream.relu(), torch.ones(8, 1, dtype=torch.float64)], 1)
            stream = (1 - rho[l] * Lt) * stream + rho[l] * seen @ W[l].mT
        if level == 6:
            stream = here = stream.requires_grad_()
        loss = (stream @ network.unembedding.detach().mT - y).square().sum() / 8
        norms.append(float(torch.autograd.grad(loss, here)[0].norm()) / ridge)  # pyright: ignore[reportPossiblyUnboundVariable]
    with pytest.warns(NumericalWarning):
        table = leaky_diagnosis(network, x, y, ridge=ridge)
    assert table["momentum_norm"].values.tolist() == pytest.approx(norms, rel=1e-11)
    assert len({round(norm, 6) for norm in norms}) == 6  # one layer off is another number


def test_arrays_of_numpy_are_taken_too() -> None:
    network, x, y = random_leaky(4), normal(6, 8, 3), normal(7, 8, 2)
    with pytest.warns(NumericalWarning):
        expected = isthmus.leaky_diagnosis(network, x, y, ridge=0.3)
    for given in ((x.numpy(), y.numpy()), (x.tolist(), y.tolist())):
        with pytest.warns(NumericalWarning):
            found = leaky_diagnosis(network, *given, ridge=0.3)
        for name in expected.variables:
            values = expected[name].values
            allowed = 1e-6 * abs(values).max() if values.dtype.kind == "f" else 0  # Hamiltonians are small differences
            assert found[name].values.tolist() == pytest.approx(values.tolist(), rel=1e-6, abs=allowed)
    with pytest.raises(DataError, match="needs an array of numbers"):
        leaky_diagnosis(network, "x", y, ridge=0.3)


@pytest.mark.parametrize("bias", [True, False])
def test_with_labels_momenta_are_those_of_the_cross_entropy(bias: bool) -> None:
    network, n = random_leaky(0, bias=bias), BLOCK + 37
    x, labels = normal(2, n, 3), (normal(3, n, 1)[:, 0] > 0.3).long()
    path = leaky_path(network, x, labels, ridge=0.3, loss="cross_entropy")
    value = torch.nn.functional.cross_entropy(network(x), labels)
    (gradient,) = torch.autograd.grad(value, [network.weights])
    scale = 0.3 * path.steps / network.effective_depth
    assert_close(-scale[:, None, None] * path.critical, gradient, relative=1e-11)
    assert path.data_loss == pytest.approx(float(value.detach()), rel=1e-12)
    sums = leaky_sums(network.requires_grad_(False), x, labels, ridge=0.3, loss=CROSS_ENTROPY)
    assert_close(sums.by_momentum, features(path.activations, bias=bias)[:-1].mT @ path.arriving, relative=1e-11)
    squared = leaky_path(network, x, torch.nn.functional.one_hot(labels).double(), ridge=0.3)
    with pytest.raises(AssertionError):
        assert_close(-scale[:, None, None] * squared.critical, gradient, relative=1e-11)


def test_a_diagnosis_takes_labels_and_refuses_what_is_none() -> None:
    network, x = random_leaky(0), normal(2, 30, 3)
    labels = np.arange(30) % 2
    with pytest.warns(NumericalWarning, match="far from critical"):
        table = leaky_diagnosis(network, x.numpy(), labels, ridge=0.3, loss="cross_entropy")
    assert table.attrs["data_loss"] == pytest.approx(
        leaky_path(network, x, labels, ridge=0.3, loss="cross_entropy").data_loss
    )
    for bad in (labels + 1, labels - 0.5):
        with pytest.raises(DataError, match="class numbers 0 to 1"):
            leaky_diagnosis(network, x, bad, ridge=0.3, loss="cross_entropy")
    with pytest.raises(ShapeError, match=r"y of shape \(30,\)"):
        leaky_diagnosis(network, x, normal(3, 30, 2), ridge=0.3, loss="cross_entropy")
    with pytest.raises(ValueError, match="needs one of 'squared'"):
        leaky_diagnosis(network, x, labels, ridge=0.3, loss="none")
