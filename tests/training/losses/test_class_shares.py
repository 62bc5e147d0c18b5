"""The cross-entropy of shares of classes: that of classes where a row is sure, its gradient, its best constant."""

import pytest
import torch
from torch import Tensor

from isthmus.errors import DataError
from isthmus.training.losses import CROSS_ENTROPY, DataLoss
from isthmus.training.losses.class_shares import ClassShares

LOSS = ClassShares()
DRAWN = torch.Generator().manual_seed(3)
OUTPUTS = 3 * torch.randn(7, 4, generator=DRAWN, dtype=torch.float64)
CLASSES = torch.randint(4, (7,), generator=DRAWN)
SURE = torch.nn.functional.one_hot(CLASSES, 4).double()
SHARES = torch.randn(7, 4, generator=DRAWN, dtype=torch.float64).softmax(1)
WEIGHT = torch.rand(7, generator=DRAWN, dtype=torch.float64).softmax(0)


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_sure_rows_have_the_loss_and_the_gradient_of_their_class(weight: Tensor | None) -> None:
    of_shares = DataLoss(LOSS, SURE, weight).value_and_gradient(OUTPUTS.clone())
    of_classes = DataLoss(CROSS_ENTROPY, CLASSES, weight).value_and_gradient(OUTPUTS.clone())
    assert of_shares[0] == pytest.approx(of_classes[0], rel=1e-14)
    torch.testing.assert_close(of_shares[1], of_classes[1], rtol=1e-13, atol=1e-16)
    torch.testing.assert_close(LOSS.row_losses(OUTPUTS, SURE), CROSS_ENTROPY.row_losses(OUTPUTS, CLASSES))


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_the_gradient_is_that_of_the_loss(weight: Tensor | None) -> None:
    free = OUTPUTS.clone().requires_grad_()
    share = torch.full((7,), 1 / 7, dtype=torch.float64) if weight is None else weight
    wanted = (share * (free.logsumexp(1) - (SHARES * free).sum(1))).sum()
    wanted.backward()
    value, gradient = DataLoss(LOSS, SHARES, weight).value_and_gradient(OUTPUTS.clone())
    assert value == pytest.approx(wanted.item(), rel=1e-14)
    torch.testing.assert_close(gradient, free.grad, rtol=1e-13, atol=1e-16)


def test_several_networks_at_once_have_the_losses_of_each() -> None:
    both = torch.stack([OUTPUTS, -OUTPUTS])
    losses, gradients = LOSS.batched(both.clone(), SHARES)
    for outputs, loss, gradient in zip(both, losses, gradients, strict=True):
        value, alone = DataLoss(LOSS, SHARES).value_and_gradient(outputs.clone())
        assert float(loss) == pytest.approx(value, rel=1e-14)
        torch.testing.assert_close(gradient, alone)
        assert float(LOSS.summed(outputs, SHARES)) == pytest.approx(7 * value, rel=1e-14)


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_no_constant_is_better_than_the_best(weight: Tensor | None) -> None:
    best = LOSS.best_constant(SHARES, weight, 4)
    data = DataLoss(LOSS, SHARES, weight)
    assert data.value(best.expand(7, -1)) == pytest.approx(LOSS.constant_loss(SHARES, weight, 4), rel=1e-14)
    _, gradient = data.value_and_gradient(best.expand(7, -1).clone())
    assert gradient.sum(0).abs().max() < 1e-15
    numpy_weight = None if weight is None else weight.numpy()
    assert LOSS.unit(SHARES.numpy(), numpy_weight) == pytest.approx(LOSS.constant_loss(SHARES, weight, 4), rel=1e-14)


def test_what_is_no_share_is_refused_by_its_row() -> None:
    LOSS.check(SHARES, "fit(y)")
    for row in ([0.5, 0.6, 0.0, 0.0], [1.5, -0.5, 0.0, 0.0]):
        bad = SHARES.clone()
        bad[4] = torch.tensor(row, dtype=torch.float64)
        with pytest.raises(DataError, match=r"fit\(y\): row 4 of y"):
            LOSS.check(bad, "fit(y)")
