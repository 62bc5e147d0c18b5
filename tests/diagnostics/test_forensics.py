"""The ridge of a training is read off its network: exactly where `fit` ended, closely where Adam did."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import isthmus
from foreign_modules import samples
from isthmus.errors import DataError, ShapeError
from isthmus.training import Outcome

DOUBLE = torch.float64


def targets(x: Tensor) -> Tensor:
    return torch.stack([x[:, 0] + x[:, 1], x[:, 2] * 0.5 - x[:, 0]], 1)


@pytest.mark.parametrize("ridge", [1e-2, 3e-2])
def test_it_is_exact_where_fit_has_converged(ridge: float) -> None:
    x = samples(60, 4, dtype=DOUBLE)
    network = isthmus.FullyConnected(4, 2, width=5, depth=3, linear=(1, 2), seed=0, dtype=DOUBLE)
    result = isthmus.fit(network, x, targets(x), ridge=ridge)
    assert result.outcome is Outcome.CONVERGED
    found = isthmus.forensics(result.network, x, targets(x))
    assert found.ridge == pytest.approx(ridge, rel=1e-6)
    assert found.residual <= 1e-6
    assert found.is_stationary
    assert found.loss == pytest.approx(result.data_loss, rel=1e-9)
    strong = found.parameters["size"].values > 0.1
    assert np.allclose(found.parameters["ridge"].values[strong], ridge, rtol=1e-4)


@pytest.mark.slow
def test_a_penalty_of_its_own_is_taken_as_it_is() -> None:
    x = samples(60, 4, dtype=DOUBLE)
    network = isthmus.ResNet(4, 2, width=5, depth=2, block_depth=1, linear=True, seed=0, dtype=DOUBLE)
    result = isthmus.fit(network, x, targets(x), ridge=1e-2)
    found = isthmus.forensics(result.network, x, targets(x))
    assert found.residual <= 10 * result.stationarity + 1e-9
    assert found.ridge == pytest.approx(1e-2, rel=10 * result.stationarity + 1e-9)


def classifier(x: Tensor, classes: Tensor, decay: float) -> nn.Sequential:
    """6-16-16-3 that Adam with L2 has trained."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))
    optimiser = torch.optim.Adam(module.parameters(), lr=5e-3, weight_decay=decay)
    for _ in range(1500):
        optimiser.zero_grad()
        functional.cross_entropy(module(x), classes).backward()
        optimiser.step()
    return module


@pytest.mark.slow
def test_adam_with_weight_decay_and_a_function_of_torch() -> None:
    x = samples(90, 6)
    classes = x[:, :3].argmax(1)
    module = classifier(x, classes, 2e-2)
    before = {name: (p.requires_grad, p.detach().clone()) for name, p in module.named_parameters()}
    found = isthmus.forensics(module, x, classes)
    other = isthmus.forensics(module, x, classes, loss=functional.cross_entropy)
    assert 2 * found.ridge == pytest.approx(2e-2, rel=0.1)
    assert other.ridge == pytest.approx(found.ridge, rel=1e-9)
    assert found.collapse is not None
    assert 0 < found.collapse.variation < 1
    assert found.collapse.simplex_distance < 0.5
    tail, bound = (found.parameters[name].values for name in ("tail", "tail_bound"))
    known = np.isfinite(tail)
    assert known.sum() == 3
    assert (tail[known] <= bound[known] + 1e-9).all()
    after = {name: (p.requires_grad, p.detach()) for name, p in module.named_parameters()}
    assert all(flag == after[name][0] and torch.equal(p, after[name][1]) for name, (flag, p) in before.items())


def test_a_network_that_no_penalty_explains_says_so() -> None:
    x = samples(60, 4, dtype=DOUBLE)
    fresh = isthmus.FullyConnected(4, 2, width=5, depth=3, seed=0, dtype=DOUBLE)
    found = isthmus.forensics(fresh, x, targets(x))
    assert not found.is_stationary
    assert found.collapse is None
    with pytest.raises(ShapeError, match="needs one row of y per row of x, 60; got 59"):
        isthmus.forensics(fresh, x, targets(x)[:-1])


def normalised(*, training: bool) -> tuple[nn.Module, Tensor, Tensor]:
    """8-24-24-4 with a batch norm that Adam with L2 trained on its batches, or with it frozen; ridge 1e-3."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        x = torch.randn(100, 8, dtype=DOUBLE)
        y = torch.sin(x @ torch.randn(8, 4, dtype=DOUBLE))
        module = nn.Sequential(nn.Linear(8, 12), nn.BatchNorm1d(12), nn.Tanh(), nn.Linear(12, 4)).double()
    module.train(training)
    optimiser = torch.optim.Adam(module.parameters(), lr=1e-2, weight_decay=2e-3)
    for step in range(2500):
        optimiser.param_groups[0]["lr"] = 1e-2 * 0.1 ** (step // 800)
        optimiser.zero_grad()
        functional.mse_loss(module(x), y).backward()
        optimiser.step()
    return module.eval(), x, y


@pytest.mark.slow
@pytest.mark.parametrize("training", [True, False])
def test_batch_norms_are_taken_as_they_were_trained(*, training: bool) -> None:
    module, x, y = normalised(training=training)
    before = {name: t.clone() for name, t in module.state_dict().items()}
    found = isthmus.forensics(module, x, y, loss=functional.mse_loss)
    assert found.is_frozen is not training
    by_name = dict(zip(found.parameters["name"].values, found.parameters["ridge"].values, strict=True))
    assert by_name["3.weight"] == pytest.approx(1e-3, rel=0.02)
    assert found.ridge == pytest.approx(1e-3, rel=0.05)
    if training:  # its length does not matter to the loss
        assert by_name["0.weight"] < 0.5e-3
    else:
        assert found.is_stationary
    assert all(torch.equal(before[name], t) for name, t in module.state_dict().items())
    assert not any(part.training for part in module.modules())


class Unwilling(nn.Module):
    """Cannot be copied: what is looked at is the module itself."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def __deepcopy__(self, memo: object) -> "Unwilling":
        raise RuntimeError("no copies")

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


@pytest.mark.slow
def test_running_statistics_of_a_module_that_is_lent_stay_as_they_were() -> None:
    module, x, y = normalised(training=True)
    norm = module.get_submodule("1")
    assert isinstance(norm, nn.BatchNorm1d)
    norm.momentum = None  # a mean over all batches
    before = {name: t.clone() for name, t in module.state_dict().items()}
    isthmus.forensics(Unwilling(module), x, y, loss=functional.mse_loss)
    assert all(torch.equal(before[name], t) for name, t in module.state_dict().items())
    assert norm.momentum is None


@pytest.mark.parametrize(("odd", "words"), [(-100, "got -100"), (7, "from 0 to 2, as there are outputs; got 7")])
def test_classes_that_are_none_are_told_in_one_line(odd: int, words: str) -> None:
    x, y = samples(60, 4), torch.arange(60) % 3
    y[5] = odd
    module = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    with pytest.raises(DataError, match=words):
        isthmus.forensics(module, x, y)
    with pytest.raises(DataError, match=words):
        isthmus.diagnose(module, x, y, ridge=1e-3)
    with pytest.raises(DataError, match="loss failed on outputs") if odd > 0 else pytest.raises(DataError, match=words):
        isthmus.forensics(module, x, y, loss=functional.cross_entropy)


@pytest.mark.parametrize("rows", [257, 1025, 60])
def test_no_row_is_left_alone_where_rows_are_normalised_together(rows: int) -> None:
    """A batch norm without running statistics takes no single row; of 257 or 1,025 one was left over."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(
            nn.Linear(4, 6), nn.BatchNorm1d(6, track_running_stats=False), nn.ReLU(), nn.Linear(6, 2)
        ).eval()
    x = samples(rows, 4)
    assert np.isfinite(isthmus.forensics(module, x, targets(x)).loss)
    assert isthmus.compress(module, x, tolerance=0.5, heldout=samples(1025, 4, seed=1)).flops_before > 0


@pytest.mark.parametrize("in_place", [nn.ReLU(inplace=True), nn.SiLU(inplace=True), nn.Hardtanh(inplace=True)])
def test_what_is_overwritten_behind_a_matrix_changes_nothing(in_place: nn.Module) -> None:
    """The bound on the tail of a matrix is made of gradients by what it gave, not by what was written over it."""

    def read(*, is_in_place: bool) -> dict[str, np.ndarray]:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            module = nn.Sequential(nn.Linear(4, 8), in_place, nn.Linear(8, 3))
        vars(in_place)["inplace"] = is_in_place
        x = samples(60, 4)
        own = module(x).detach().argmax(1)  # the loss pulls the weights out, as where a ridge holds them
        table = isthmus.forensics(module, x, own).parameters
        return {str(name): column.values for name, column in table.data_vars.items()}

    expected, found = read(is_in_place=False), read(is_in_place=True)
    assert np.isfinite(expected["tail_bound"]).any()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-9, err_msg=name)
