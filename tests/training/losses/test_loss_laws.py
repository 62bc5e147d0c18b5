"""What holds for every loss of the registry: one that is registered is tested here, on targets of `loss_targets`."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from isthmus import FullyConnected, Limits, fit
from isthmus.discovery.data.problem import Problem, pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.errors import ShapeError
from isthmus.training.losses import LOSSES, DataLoss, Loss, is_constant, known, loss_argument
from isthmus.training.losses.data_loss import variance
from isthmus.training.sharded.shared_rows import SharedRows
from isthmus.training.sharded.team import Team
from loss_targets import targets_of
from tolerances import rounding

N, D = 30, 4
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda l: l.name)
weights = pytest.mark.parametrize("weighted", [False, True], ids=["uniform", "weighted"])
STEP = 1e-6  # of central differences in float64, whose error is then about eps / STEP
DIFFERENCES = 1e-8


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def outputs_and_data(loss: Loss, *, weighted: bool) -> tuple[Tensor, DataLoss]:
    """Outputs on both sides of every kink, targets of the loss, weights that sum to 1."""
    y = loss.targets(targets_of(loss, normal(N, D, seed=1)), torch.float64)
    w = torch.rand(N, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return 1.5 * normal(N, D * loss.per_target), DataLoss(loss, y, w / w.sum() if weighted else None)


def shares(data: DataLoss) -> Tensor:
    return torch.full((N,), 1 / N, dtype=torch.float64) if data.weight is None else data.weight


@every_loss
@weights
def test_the_value_is_the_weighted_mean_of_the_rows(loss: Loss, weighted: bool) -> None:
    outputs, data = outputs_and_data(loss, weighted=weighted)
    rows = loss.row_losses(outputs, data.y)
    assert rows.shape == (N,)
    assert float(rows.min()) >= 0
    assert data.value(outputs) == pytest.approx(float(shares(data) @ rows), rel=rounding(size=N * D))
    assert float(loss.summed(outputs, data.y)) == pytest.approx(float(rows.sum()), rel=rounding(size=N * D))


@every_loss
@weights
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_the_gradient_is_that_of_autograd(loss: Loss, weighted: bool, dtype: torch.dtype) -> None:
    outputs, data = outputs_and_data(loss, weighted=weighted)
    outputs = outputs.requires_grad_()
    (expected,) = torch.autograd.grad(shares(data) @ loss.row_losses(outputs, data.y), outputs)
    value, gradient = data.to(dtype).value_and_gradient(outputs.detach().to(dtype).clone())
    allowed = rounding(size=D, dtype=dtype)
    assert gradient.dtype == dtype
    assert float((gradient - expected).abs().max()) <= allowed * float(expected.abs().max())
    assert value == pytest.approx(data.value(outputs.detach()), rel=rounding(size=N * D, dtype=dtype))


@every_loss
def test_the_gradient_is_that_of_differences(loss: Loss) -> None:
    outputs, data = outputs_and_data(loss, weighted=True)
    gradient = data.value_and_gradient(outputs.clone())[1]
    for i, j in ((0, 0), (3, 1), (7, 3), (N - 1, 2)):
        ends = [outputs.clone(), outputs.clone()]
        ends[0][i, j] -= STEP
        ends[1][i, j] += STEP
        slope = (data.value(ends[1]) - data.value(ends[0])) / (2 * STEP)
        assert float(gradient[i, j]) == pytest.approx(slope, abs=DIFFERENCES)


@every_loss
def test_a_batch_is_each_of_its_networks(loss: Loss) -> None:
    _, data = outputs_and_data(loss, weighted=False)
    outputs = normal(3, N, D * loss.per_target, seed=5)
    losses, gradients = loss.batched(outputs.clone(), data.y)
    for own, value, gradient in zip(outputs, losses, gradients, strict=True):
        expected, slopes = data.value_and_gradient(own.clone())
        assert float(value) == pytest.approx(expected, rel=rounding(size=N * D))
        assert float((gradient - slopes).abs().max()) <= rounding(size=D) * float(slopes.abs().max())


@every_loss
def test_no_row_is_more_curved_than_it_says(loss: Loss) -> None:
    outputs, data = outputs_and_data(loss, weighted=False)
    bound = torch.as_tensor(loss.curvature(outputs, data.y), dtype=torch.float64).expand(N)

    def of_row(i: int) -> Callable[[Tensor], Tensor]:
        return lambda row: loss.row_losses(row[None], data.y[i : i + 1])[0]

    tops = [
        float(torch.linalg.eigvalsh(torch.autograd.functional.hessian(of_row(i), outputs[i]))[-1]) for i in range(N)
    ]
    assert all(0 <= top <= float(b) * (1 + rounding(size=D)) for top, b in zip(tops, bound, strict=True))
    # and it is no wild guess: some row comes near
    assert max(top / float(b) for top, b in zip(tops, bound, strict=True)) > 0.5


@every_loss
@weights
def test_no_constant_is_better_than_the_best(loss: Loss, weighted: bool) -> None:
    _, data = outputs_and_data(loss, weighted=weighted)
    best = loss.best_constant(data.y, data.weight, loss.num_outputs(data.y))
    least = data.value(best.expand(N, -1).clone())
    single = rounding(dtype=torch.float32)  # in which training works
    assert loss.constant_loss(data.y, data.weight, D) == pytest.approx(least, rel=single)
    slopes = data.value_and_gradient(best.expand(N, -1).clone())[1]
    assert float(slopes.sum(0).abs().max()) <= rounding(size=N * D)
    for seed in range(5):
        assert data.value((best + 0.1 * normal(len(best), seed=seed)).expand(N, -1).clone()) > least
    blind = loss.best_constant(data.y, None, len(best))
    assert weighted != bool(torch.allclose(blind, best)), "weights count"


@every_loss
@weights
def test_the_best_constant_has_an_error_of_one(loss: Loss, weighted: bool) -> None:
    x, y = normal(N, 3, seed=8).numpy(), targets_of(loss, normal(N, D, seed=9)).double().numpy()
    targets = Standardiser.of(y, total=True) if loss.standardised else None
    weight = np.arange(1.0, N + 1) if weighted else None
    held = np.zeros(N, dtype=bool)
    problem = pose(x, y, held, loss=loss, inputs=Standardiser.of(x), targets=targets, weight=weight)
    assert isinstance(problem, Problem)
    assert problem.d_out == D * loss.per_target
    single = rounding(size=N, dtype=torch.float32)
    assert problem.constant_loss() / problem.unit == pytest.approx(1.0, rel=single)


@pytest.mark.parametrize("weight", [None, torch.full((3000,), 1 / 3000)], ids=["uniform", "weights in float32"])
@pytest.mark.parametrize("name", ["squared", "gaussian"])
def test_targets_far_from_0_have_the_spread_that_they_have_there(name: str, weight: Tensor | None) -> None:
    loss, y = loss_argument(name, "test"), normal(3000, 2)
    near = loss.constant_loss(y, weight, 2 * loss.per_target)
    assert loss.constant_loss(y + 1e8, weight, 2 * loss.per_target) == pytest.approx(near, rel=1e-7)


def test_outputs_that_are_one_number_far_from_0_are_called_constant() -> None:
    outputs, y = torch.full((3001, 1), 1e6 / 7), normal(3001, 1).float() + 1e6 / 7
    assert variance(outputs) == 0
    assert is_constant(outputs, DataLoss(loss_argument("squared", "test"), y))


@every_loss
def test_targets_keep_their_values_in_another_precision(loss: Loss) -> None:
    y = loss.targets(targets_of(loss, normal(N, D)), torch.float32)
    assert torch.equal(loss.cast(loss.cast(y, torch.float64), torch.float32), y)
    assert loss.cast(y, torch.float64).dtype in {torch.float64, torch.int64}
    outputs = loss.num_outputs(y)
    assert outputs == D * loss.per_target == len(loss.output_names("abcd"))
    loss.check(y, "here")
    assert loss.scores(y, outputs).shape == (N, outputs)
    assert bool(torch.isfinite(loss.scores(y, outputs)).all())


@every_loss
def test_targets_that_vary_are_told_from_constant_ones_in_any_team(loss: Loss) -> None:
    _, data = outputs_and_data(loss, weighted=False)
    same = DataLoss(loss, data.y[:1].expand(data.y.shape).contiguous())
    varied, constant = normal(N, D), torch.ones(N, D, dtype=torch.float64)
    assert is_constant(constant, data)
    assert not is_constant(varied, data)
    assert not is_constant(varied, same)
    assert loss.spread(0.0) <= 0 < loss.spread(0.5)
    for of in (data, same):
        alone = loss.spread(variance(loss.scatter(of.y)))
        assert SharedRows(varied, of, total=N, team=Team()).target_spread() == pytest.approx(alone, rel=1e-12)


@every_loss
def test_gaussian_data_become_targets_of_its_form(loss: Loss) -> None:
    y = targets_of(loss, normal(N, D, seed=3))
    columns = torch.nn.functional.one_hot(y, D).double().numpy() if loss.classes else y.numpy()
    drawn = loss.from_gaussian(normal(N, D, seed=4).numpy(), columns)
    assert drawn.shape == tuple(y.shape)
    assert drawn.dtype == np.float64
    loss.check(loss.targets(torch.from_numpy(drawn), torch.float64), "here")
    outputs = normal(N, D * loss.per_target).numpy()
    assert loss.means(outputs).shape == (N, D)
    spreads = loss.spreads(outputs)
    assert spreads is None or (spreads.shape == (N, D) and bool((spreads > 0).all()))


@every_loss
def test_a_fit_goes_on_bit_for_bit(loss: Loss, tmp_path: Path) -> None:
    x, y = normal(N, 3), targets_of(loss, normal(N, D, seed=1))

    def fitted(path: Path | None, stop: int = 10**9) -> tuple[float, Tensor]:
        network = FullyConnected(3, D * loss.per_target, width=6, depth=3, seed=0, dtype=torch.float64)
        result = fit(
            network, x, y, ridge=1e-2, loss=loss.name, limits=Limits(evaluations=160), checkpoint=path,
            callback=lambda event: event.evaluations >= stop,
        )  # fmt: skip
        return result.objective, torch.cat([p.detach().reshape(-1) for p in network.parameters()])

    whole, path = fitted(None), tmp_path / "fit.pt"
    cut = fitted(path, stop=70)
    assert path.exists()
    assert cut[0] > whole[0]
    again = fitted(path)
    assert again[0] == whole[0]
    assert torch.equal(again[1], whole[1])


@every_loss
def test_a_fit_ends_below_the_best_constant(loss: Loss) -> None:
    x = normal(N, 3)
    y = targets_of(loss, torch.cat([x, x[:, :1]], 1))
    network = FullyConnected(3, D * loss.per_target, width=12, depth=3, seed=0, dtype=torch.float64)
    result = fit(network, x, y, ridge=1e-4, loss=loss, limits=Limits(evaluations=300))
    assert result.data_loss < 0.2 * loss.constant_loss(loss.targets(y, torch.float64), None, D)


@every_loss
def test_its_name_gives_it_back(loss: Loss) -> None:
    assert loss_argument(loss.name, "here") == loss == loss_argument(loss, "here")
    assert loss_argument(loss.name, "here") is loss
    assert loss.kind in repr(known())
    assert hash(loss) == hash(dataclasses.replace(loss))
    assert type(loss).__name__ in repr(loss)
    for field in dataclasses.fields(loss):
        other = dataclasses.replace(loss, **{field.name: 0.3})
        assert other != loss
        assert loss_argument(other.name, "here") == other
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(loss, field.name, 0.3)
    with pytest.raises(ValueError, match="here.*needs one of 'squared', 'cross_entropy'"):
        loss_argument(f"{loss.name}:1:2:3", "here")


@pytest.mark.parametrize("name", ["", "l2", "Squared", "squared ", "squared:1", "cross-entropy"])
def test_an_unknown_loss_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match="fit.*needs one of " + ", ".join(map(repr, LOSSES))):
        fit(FullyConnected(3, 1, width=2, depth=2, seed=0), normal(5, 3), normal(5, 1), ridge=0.1, loss=name)


def test_targets_are_not_spread_over_outputs() -> None:
    for loss in LOSSES.values():
        if not loss.classes:
            with pytest.raises(ShapeError, match="4"):
                fit(FullyConnected(3, D, width=2, depth=2), normal(N, 3), normal(N, 1).abs(), ridge=0.1, loss=loss)
        if not loss.classes and not loss.is_quadratic:  # of a module that does not say how many outputs it has
            with pytest.raises(ShapeError, match="4"):
                loss.total_and_gradient(normal(N, D), normal(N, 1).abs(), None)
