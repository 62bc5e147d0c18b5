import numpy as np
import pytest
from scipy.linalg import subspace_angles
from scipy.stats import ortho_group

from isthmus.discovery.groups.direction_spread import FEW, aligned, direction_spread, largest_angle
from isthmus.discovery.groups.varimax import orthonormal_rows, varimax
from tolerances import rounding

REFERENCE = varimax(np.array([[1.0, 0.5, 0, 0, 0.1], [0, 0.2, 1, -1, 0]]))


def turned(generator: np.random.Generator, size: float) -> np.ndarray:
    """A span turned away from the reference by about `size`, in a random basis."""
    rows = REFERENCE + size * generator.normal(size=REFERENCE.shape)
    return generator.normal(size=(2, 2)) @ rows


def test_a_basis_of_the_same_span_has_no_spread() -> None:
    generator = np.random.default_rng(0)
    found = direction_spread(REFERENCE, [generator.normal(size=(2, 2)) @ REFERENCE for _ in range(5)], pivots=(0, 2))
    exact = rounding(size=1000)
    assert found.angles.max() < exact
    assert found.cones.max() < exact
    np.testing.assert_allclose(found.low, REFERENCE, atol=exact)
    np.testing.assert_allclose(found.high, REFERENCE, atol=exact)
    assert found.held_low is not None
    np.testing.assert_allclose(found.held_low[:, (0, 2)], np.eye(2), atol=exact)


def test_signs_order_and_rotation_are_settled_by_procrustes() -> None:
    swapped = np.array([-REFERENCE[1], REFERENCE[0]])
    np.testing.assert_allclose(aligned(swapped, REFERENCE), REFERENCE, atol=rounding(size=10))
    rows = orthonormal_rows(turned(np.random.default_rng(1), 0.1))
    best = np.linalg.norm(aligned(rows, REFERENCE) - REFERENCE)
    for seed in range(50):
        Q = ortho_group.rvs(2, random_state=seed)
        assert np.linalg.norm(Q @ rows - REFERENCE) >= best - rounding(size=100)


def test_angles_are_the_largest_principal_ones() -> None:
    generator = np.random.default_rng(2)
    for size in (1e-9, 1e-3, 0.3, 3.0):
        rows = orthonormal_rows(turned(generator, size))
        expected = subspace_angles(rows.T, REFERENCE.T).max()
        assert largest_angle(rows, REFERENCE) == pytest.approx(expected, rel=1e-6, abs=1e-15)
    assert direction_spread(REFERENCE, [rows]).angles[0] == pytest.approx(expected)


@pytest.mark.parametrize("count", [3, FEW - 1, FEW, 400])
def test_intervals_hold_what_they_should(count: int) -> None:
    generator = np.random.default_rng(3)
    spans = [turned(generator, 0.03) for _ in range(count)]
    found = direction_spread(REFERENCE, spans, pivots=(0, 2))
    rows = np.array([aligned(orthonormal_rows(span), REFERENCE) for span in spans])
    inside = ((found.low <= rows + 1e-12) & (rows <= found.high + 1e-12)).mean(0)
    cosines = np.einsum("rkd,kd->rk", rows, REFERENCE)
    within = (np.arccos(np.minimum(cosines, 1)) <= found.cones + 1e-7).mean(0)
    assert found.is_range == (count < FEW)
    if found.is_range:
        assert inside.min() == within.min() == 1
    else:
        assert 0.94 <= inside.min() <= inside.max() <= 1
        assert (inside.max() < 1) == (count == 400)
        assert 0.94 <= within.min() <= within.max() < 0.98
    assert found.held_low is not None
    assert found.held_high is not None
    assert (found.held_low <= found.held_high).all()


def test_exponents_are_held_at_the_pivots() -> None:
    generator = np.random.default_rng(4)
    spans = [turned(generator, 0.01) for _ in range(10)]
    values = np.array([[2.0, 0], [1, -1]])
    found = direction_spread(REFERENCE, spans, pivots=(0, 2), values=values)
    assert found.held_low is not None
    assert found.held_high is not None
    np.testing.assert_allclose(found.held_low[:, (0, 2)], values, atol=rounding(size=100))
    for span in spans:
        rows = values @ np.linalg.inv(span[:, (0, 2)]) @ span
        assert (found.held_low <= rows + 1e-9).all()
        assert (rows <= found.held_high + 1e-9).all()


def test_exponents_that_a_resample_leaves_open_have_no_bounds() -> None:
    open_end = np.array([[0.0, 1, 0, 0, 0], [0, 0, 0, 1, 0]])
    found = direction_spread(REFERENCE, [REFERENCE, open_end], pivots=(0, 2))
    assert found.held_low is not None
    assert found.held_high is not None
    assert (found.held_low == -np.inf).all()
    assert (found.held_high == np.inf).all()


def test_resamples_must_fit() -> None:
    with pytest.raises(ValueError, match="at least one resample"):
        direction_spread(REFERENCE, [])
    with pytest.raises(ValueError, match="needs resamples of shape \\(2, 5\\), got \\(1, 5\\)"):
        direction_spread(REFERENCE, [REFERENCE, REFERENCE[:1]])
