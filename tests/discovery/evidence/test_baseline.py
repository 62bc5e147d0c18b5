"""The linear baseline against closed forms: the spectrum that PCA leaves, and logistic regression that cannot fail."""

import dataclasses

import numpy as np
import pytest
import torch

from isthmus.discovery.data.problem import Problem
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.evidence.baseline import linear_errors
from isthmus.training.losses import CROSS_ENTROPY, SQUARED, Loss
from tolerances import rounding

NUM_SAMPLES = 60


def samples(d: int = 5) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(NUM_SAMPLES, d, generator=generator, dtype=torch.float64) * torch.arange(d, 0, -1) + 3
    return x


def posed(x: torch.Tensor, y: torch.Tensor, *, loss: Loss = SQUARED, unit: float = 1.0) -> Problem:
    """A problem whose held-out rows are the training rows, so that errors have a closed form."""
    d_out = int(y.max()) + 1 if loss.classes else y.shape[1]
    standardiser = Standardiser.of(x.numpy())
    return Problem(x, y, x, y, loss, d_out, standardiser, None, unit, autoencoding=y is x)


def test_autoencoding_leaves_the_spectrum_that_pca_leaves() -> None:
    x = samples()
    s = torch.linalg.svdvals(x - x.mean(0))
    variance = float((x - x.mean(0)).square().sum() / NUM_SAMPLES)
    exact = [float(s[k:].square().sum() / s.square().sum()) for k in range(6)]
    found = linear_errors(posed(x, x, unit=variance), most=5)
    assert found == pytest.approx(exact, abs=rounding(size=NUM_SAMPLES))
    assert found[0] == pytest.approx(1.0, rel=rounding(size=NUM_SAMPLES))
    amplitudes = [float(s[k:].sum() / s.sum()) for k in range(6)]
    assert found != pytest.approx(amplitudes, abs=1e-2), "squares, not singular values"


def test_regression_leaves_noise_and_the_spectrum_of_the_fit() -> None:
    x = samples()
    generator = torch.Generator().manual_seed(1)
    y = x @ torch.randn(5, 3, generator=generator, dtype=torch.float64)
    y = y + torch.randn(NUM_SAMPLES, 3, generator=generator, dtype=torch.float64)
    design = torch.cat([x, torch.ones(NUM_SAMPLES, 1, dtype=torch.float64)], 1)
    fitted = design @ torch.linalg.lstsq(design, y).solution
    s = torch.linalg.svdvals(fitted - y.mean(0))
    noise = float((y - fitted).square().sum())
    exact = [(noise + float(s[k:].square().sum())) / NUM_SAMPLES for k in range(4)]
    found = linear_errors(posed(x, y), most=3)
    assert found == pytest.approx(exact, rel=rounding(size=NUM_SAMPLES, condition=10.0))
    assert found[-1] > noise / NUM_SAMPLES * (1 - 1e-9), "no linear map beats least squares"


def test_beyond_the_last_dimension_the_error_stays() -> None:
    x = samples(2)
    found = linear_errors(posed(x, x), most=6)
    assert len(found) == 7
    assert found[3:] == [found[2]] * 4
    assert found[1] > found[2]


def test_held_out_rows_are_measured_with_the_training_map() -> None:
    x = samples()
    problem = posed(x, x)
    shifted = Problem(x, x, x + 10, x + 10, SQUARED, 5, problem.inputs, None, 1.0, autoencoding=True)
    assert linear_errors(shifted, most=0)[0] == pytest.approx(
        float((x + 10 - x.mean(0)).square().sum() / NUM_SAMPLES), rel=rounding(size=NUM_SAMPLES)
    )


def test_classes_along_the_first_component_need_one_dimension() -> None:
    generator = np.random.default_rng(0)
    labels = np.arange(NUM_SAMPLES) % 2
    x = torch.from_numpy(np.stack([8.0 * labels, generator.normal(size=NUM_SAMPLES)], 1))
    y = torch.from_numpy(labels)
    found = linear_errors(posed(x, y, loss=CROSS_ENTROPY, unit=float(np.log(2))), most=2)
    assert found[0] == pytest.approx(1.0, rel=rounding(size=NUM_SAMPLES))
    assert found[1] < 0.05
    across = torch.from_numpy(np.stack([labels * 0.1, 9 * generator.normal(size=NUM_SAMPLES)], 1))
    blind = linear_errors(posed(across, y, loss=CROSS_ENTROPY, unit=float(np.log(2))), most=1)
    assert blind[1] > 0.8, "the first component says nothing about these classes"


def test_labels_that_are_all_different_are_classes_without_a_word() -> None:
    """Six copies of a warning of scikit-learn reached the user: "could represent a regression problem"."""
    labels = torch.arange(NUM_SAMPLES)
    assert len(linear_errors(posed(samples(), labels, loss=CROSS_ENTROPY), most=2)) == 3  # warnings are errors here


def test_a_training_split_with_one_class_alone_keeps_the_constant() -> None:
    x = samples()
    labels = torch.arange(NUM_SAMPLES) % 2
    both = posed(x, labels, loss=CROSS_ENTROPY, unit=1.0)
    lone = dataclasses.replace(both, y=torch.zeros_like(labels))
    errors = linear_errors(lone, most=3)
    assert errors == [errors[0]] * 4
    assert linear_errors(both, most=3) != pytest.approx([linear_errors(both, most=3)[0]] * 4)
