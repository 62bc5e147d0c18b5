import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import ShapeError
from isthmus.theory import features, hamiltonian, pontryagin_hamiltonian, relaxed_norm
from theorem_checks import SEEDS, assert_close, normal

pytestmark = [pytest.mark.theorem("LEAKY-12"), pytest.mark.theorem("LEAKY-15")]


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, depth=st.floats(0.5, 20), bias=st.booleans())
def test_it_is_the_pontryagin_form_at_critical_weights(seed: int, depth: float, bias: bool) -> None:
    A, B = normal(seed, 8, 5), normal(seed + 1, 8, 5)
    W = depth * B.mT @ features(A, bias=bias)
    pontryagin = (B * (features(A, bias=bias) @ W.mT - depth * A)).sum() - W.square().sum() / (2 * depth)
    found = hamiltonian(A, B, effective_depth=depth, bias=bias)
    assert_close(pontryagin_hamiltonian(A, B, W, effective_depth=depth, bias=bias), pontryagin, relative=1e-9)
    assert_close(found, pontryagin, relative=1e-9, absolute=1e-9)
    with pytest.raises(AssertionError):  # the factor 1/2 forgotten
        assert_close(2 * found, pontryagin, relative=1e-9, absolute=1e-9)


def test_its_gradients_are_the_equations_of_motion() -> None:
    A, B = normal(0, 6, 4).requires_grad_(), normal(1, 6, 4).requires_grad_()
    dA, dB = torch.autograd.grad(hamiltonian(A, B, effective_depth=3.0), (A, B))
    S = features(A.detach())
    assert_close(dB, 3 * (S @ S.mT @ B.detach() - A.detach()), relative=1e-11)
    positive = A.detach().relu()
    back = (A.detach() > 0) * (B.detach() @ (B.detach().mT @ positive)) - B.detach()
    assert_close(dA, 3 * back, relative=1e-11)


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, gamma=st.floats(1e-4, 10))
def test_the_relaxed_energies_split_it_exactly(seed: int, gamma: float) -> None:
    A, B, depth = normal(seed, 7, 4), normal(seed + 1, 7, 4), 2.5
    S = features(A)
    velocity = S @ (S.mT @ B) - A  # dA/dp divided by the effective depth
    split = (
        relaxed_norm(A, S, gamma=gamma) - relaxed_norm(velocity + gamma * B, S, gamma=gamma) + gamma * B.square().sum()
    )
    rank = -2 * hamiltonian(A, B, effective_depth=depth) / depth
    size = float(relaxed_norm(A, S, gamma=gamma) + relaxed_norm(velocity, S, gamma=gamma))
    assert_close(rank, split, relative=0, absolute=1e-9 * (1 + size))


def test_batches_of_layers() -> None:
    A, B = normal(0, 3, 6, 4), normal(1, 3, 6, 4)
    each = torch.stack([hamiltonian(a, b, effective_depth=2.0) for a, b in zip(A, B, strict=True)])
    assert_close(hamiltonian(A, B, effective_depth=2.0), each)


@pytest.mark.parametrize(("bias", "shape"), [(True, (4, 4)), (False, (4, 5))])
def test_a_weight_of_another_shape_is_refused(bias: bool, shape: tuple[int, ...]) -> None:
    A = normal(0, 6, 4)
    with pytest.raises(ShapeError, match=r"needs a weight of shape \(4, \d\)"):
        pontryagin_hamiltonian(A, A, normal(1, *shape), effective_depth=2.0, bias=bias)
