"""The hand-written step against autograd, and the data losses against their formulas."""

import pytest
import torch

from isthmus import FullyConnected, LeakyResNet
from isthmus.training.losses import CROSS_ENTROPY, LOSSES, SQUARED, DataLoss, Loss
from isthmus.training.steps.connected_step import FullyConnectedStep
from isthmus.training.steps.leaky_step import LeakyStep
from isthmus.training.steps.step import AutogradStep, step_of
from loss_targets import targets_of
from tolerances import rounding

SHAPES = [
    pytest.param({"width": 7, "depth": 4}, id="relu"),
    pytest.param({"width": 7, "depth": 4, "negative_slope": 0.3}, id="leaky"),
    pytest.param({"width": 7, "depth": 4, "negative_slope": -0.4}, id="negative-slope"),
    pytest.param({"width": (6, 3, 3, 8), "depth": 5, "linear": (2, 3)}, id="linear-middle"),
    pytest.param({"width": 5, "depth": 3, "bias": False}, id="no-bias"),
    pytest.param({"width": 1, "depth": 1}, id="affine"),
]


def pair(
    shape: dict[str, object], dtype: torch.dtype, loss: Loss, weighted: bool
) -> tuple[AutogradStep, FullyConnectedStep]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(40, 5, generator=generator, dtype=dtype)
    y = torch.randn(40, 4, generator=generator, dtype=dtype)
    y = targets_of(loss, y)
    weight = torch.rand(40, generator=generator, dtype=dtype) if weighted else None
    data = DataLoss(loss, y, None if weight is None else weight / weight.sum())
    networks = [FullyConnected(5, 4 * loss.per_target, **shape, seed=1, dtype=dtype) for _ in range(2)]  # pyright: ignore[reportArgumentType]
    with torch.no_grad():
        for network in networks:
            for bias in network.biases:
                bias.normal_(generator=torch.Generator().manual_seed(7))
    return AutogradStep(networks[0], x, data, 0.01), FullyConnectedStep(networks[1], x, data, 0.01)


def by_name(step: AutogradStep | FullyConnectedStep) -> list[torch.Tensor]:
    """Gradients in the order of `network.parameters()`, whatever the flat layout: read through the views."""
    layout = {p.data_ptr(): p for p in step.network.parameters()}
    start = step.theta.data_ptr()
    size = step.theta.element_size()
    return [
        step.gradient[(at - start) // size : (at - start) // size + p.numel()].view(p.shape) for at, p in layout.items()
    ]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda l: l.name)
@pytest.mark.parametrize("weighted", [False, True], ids=["uniform", "weighted"])
def test_gradient_by_hand_equals_autograd(
    shape: dict[str, object], dtype: torch.dtype, loss: Loss, weighted: bool
) -> None:
    automatic, by_hand = pair(shape, dtype, loss, weighted)
    first, second = automatic(), by_hand()
    assert second == pytest.approx(first, rel=rounding(size=100, dtype=dtype))
    for a, b in zip(by_name(automatic), by_name(by_hand), strict=True):
        torch.testing.assert_close(b, a, rtol=rounding(size=400, dtype=dtype), atol=rounding(size=400, dtype=dtype))


LEAKY = [
    pytest.param({}, 0.0, id="relu"),
    pytest.param({}, 0.3, id="smoothed"),
    pytest.param({"maps": "learned", "steps": "irregular"}, 0.2, id="learned-maps"),
    pytest.param({"scheme": "exponential", "bias": False}, 0.0, id="exponential-no-bias"),
    pytest.param({"maps": "learned", "depth": 5, "effective_depth": 4.5}, 0.0, id="learned-relu"),
]


@pytest.mark.parametrize(("shape", "smoothing"), LEAKY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda l: l.name)
def test_leaky_gradient_by_hand_equals_autograd(
    shape: dict[str, object], smoothing: float, dtype: torch.dtype, loss: Loss
) -> None:
    x = torch.randn(40, 5, generator=torch.Generator().manual_seed(3), dtype=dtype)
    y = torch.randn(40, 4, generator=torch.Generator().manual_seed(4), dtype=dtype)
    data = DataLoss(loss, targets_of(loss, y))
    sizes = {"width": 9, "depth": 6, "effective_depth": 3.0} | shape
    networks = [LeakyResNet(5, 4 * loss.per_target, **sizes, seed=1, dtype=dtype) for _ in range(2)]  # pyright: ignore[reportArgumentType]
    for network in networks:
        network.smoothing.fill_(smoothing)
    automatic, by_hand = AutogradStep(networks[0], x, data, 0.3), step_of(networks[1], x, data, 0.3)
    assert isinstance(by_hand, LeakyStep)
    allowed = rounding(size=400, dtype=dtype)
    for _ in range(2):  # the buffers serve again
        assert by_hand() == pytest.approx(automatic(), rel=allowed)
        torch.testing.assert_close(by_hand.gradient, automatic.gradient, rtol=allowed, atol=allowed)
        torch.testing.assert_close(by_hand.curvature, automatic.curvature, rtol=allowed, atol=0)
        torch.testing.assert_close(by_hand.outputs(), automatic.outputs(), rtol=allowed, atol=allowed)
        for step in (automatic, by_hand):
            step.theta.add_(step.gradient, alpha=-0.01)
    networks[1].smoothing.fill_(smoothing + 0.5)
    by_hand()
    with pytest.raises(AssertionError):  # the comparison sees another activation
        torch.testing.assert_close(by_hand.gradient, automatic.gradient, rtol=allowed, atol=allowed)


def test_the_comparison_sees_a_wrong_gradient() -> None:
    automatic, by_hand = pair({"width": 7, "depth": 4}, torch.float64, SQUARED, False)
    by_hand.ridge *= 1.001
    automatic()
    by_hand()
    with pytest.raises(AssertionError):
        torch.testing.assert_close(by_hand.gradient.norm(), automatic.gradient.norm(), rtol=1e-9, atol=0)


def test_parameters_are_views_of_one_vector() -> None:
    _, step = pair({"width": 7, "depth": 3}, torch.float64, SQUARED, False)
    step.theta.zero_()
    assert all(not p.any() for p in step.network.parameters())
    assert step.theta.numel() == sum(p.numel() for p in step.network.parameters())


@pytest.mark.parametrize("weighted", [False, True])
def test_losses_follow_their_formulas(weighted: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(9, 3, generator=generator, dtype=torch.float64)
    labels, y = torch.arange(9) % 3, torch.randn(9, 3, generator=generator, dtype=torch.float64)
    w = torch.arange(1.0, 10.0, dtype=torch.float64) / 45 if weighted else torch.full((9,), 1 / 9, dtype=torch.float64)
    given = w if weighted else None
    squared = float((w * (outputs - y).square().sum(1)).sum())
    assert DataLoss(SQUARED, y, given).value(outputs) == pytest.approx(squared, rel=1e-12)
    entropy = float((w * torch.nn.functional.cross_entropy(outputs, labels, reduction="none")).sum())
    assert DataLoss(CROSS_ENTROPY, labels, given).value(outputs) == pytest.approx(entropy, rel=1e-12)
    assert entropy != pytest.approx(squared, rel=1e-3)
