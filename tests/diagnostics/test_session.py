"""Squares of activations are taken in as many threads as torch has; modules whose layers run as the data say."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor, nn
from torch.utils.data import DataLoader

import isthmus
from diagnostics.architectures import numbers
from isthmus.diagnostics.samples import Samples
from isthmus.diagnostics.session import open_session
from isthmus.errors import DataError


def blas_threads() -> set[int]:
    """Of all libraries of linear algebra in this process."""
    return {int(found["num_threads"]) for found in ThreadpoolController().info() if found["user_api"] == "blas"}


def test_sums_run_in_the_threads_of_torch_which_others_do_not_keep() -> None:
    heard, before = list[set[int]](), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadpoolController().limit(limits=2, user_api="blas"):
            with open_session(nn.Linear(5, 3), Samples.of(numbers(40, 5))) as session:
                session.sums(20, lambda _output, _start: heard.append(blas_threads()))
            assert blas_threads() == {2}
    finally:
        torch.set_num_threads(before)
    assert heard == [{1}, {1}]


def test_a_program_for_one_number_of_rows_says_how_it_takes_others() -> None:
    x = numbers(8, 5).float()
    fixed = torch.export.export(nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)), (x,)).module()
    assert isthmus.diagnose(fixed, x).layers.sizes["layer"] == 2
    with pytest.raises(DataError, match="exported for one number of rows: export it with dynamic_shapes"):
        isthmus.diagnose(fixed, numbers(60, 5).float())


class Experts(nn.Module):
    """Each sample goes through one of three layers: all are called, or those that are chosen."""

    def __init__(self, *, are_all_called: bool) -> None:
        super().__init__()
        self.are_all_called = are_all_called
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.gate, self.last = nn.Linear(5, 4), nn.Linear(6, 3)
            self.experts = nn.ModuleList(nn.Linear(5, 6) for _ in range(4))
        with torch.no_grad():
            self.gate.bias[3] = -100  # nobody chooses the last

    def forward(self, x: Tensor) -> Tensor:
        chosen = self.gate(x).argmax(1)
        out = torch.zeros(len(x), 6, dtype=x.dtype)
        for k in range(4) if self.are_all_called else chosen.unique().tolist():
            out[chosen == k] = torch.relu(self.experts[k](x[chosen == k]))
        return self.last(out)

    def rows_of(self, k: int, x: Tensor) -> Tensor:
        return self.experts[k](x[self.gate(x).argmax(1) == k]).detach()


class Forking(nn.Module):
    """One layer or another, as the first sample says."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.into, self.left, self.right = nn.Linear(5, 6), nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.into(x))
        return self.left(h) if x[0, 0] > 0 else self.right(h)


class Leaving(nn.Module):
    """Ends early where it is sure."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.into, self.early, self.late = nn.Linear(5, 6), nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.into(x))
        early = self.early(h)
        return early if x[0, 0] > 0 else self.late(torch.relu(h))


@pytest.mark.parametrize("jacobians", [None, False])
@pytest.mark.parametrize("are_all_called", [True, False])
def test_experts_have_rows_of_the_samples_that_chose_them(are_all_called: bool, jacobians: bool | None) -> None:
    module, x = Experts(are_all_called=are_all_called).double(), numbers(200, 5).double()
    found = isthmus.diagnose(module, x, jacobians=jacobians)
    names = [str(name) for name in found.layers["name"].values]
    for k in range(3):
        row, z = found.layers.isel(layer=names.index(f"experts.{k}")), module.rows_of(k, x)
        assert int(row["rows"]) == len(z)
        wanted = torch.linalg.svdvals(z - z.mean(0)).numpy() / len(z) ** 0.5
        assert row["preactivation_singular_values"].values[:5] == pytest.approx(wanted[:5], rel=1e-6)
        if jacobians is None:  # no axis of it counts all samples
            assert np.isnan(row["jacobian_singular_values"].values).all()
    assert ("experts.3" in names) == are_all_called
    if are_all_called:
        assert np.isnan(found.layers["dimension_activation"].values[names.index("experts.3")])
    else:
        assert "Which layers run depends on the data: all rows were given at once." in found.warnings
        assert ("experts.3", "never called on this data (Linear)") in found.skipped
    assert np.isfinite(found.layers["activation_singular_values"].values[names.index("last"), 0])


@pytest.mark.parametrize("make", [Forking, Leaving, lambda: Experts(are_all_called=False)])
def test_batches_that_take_different_ways_are_refused_in_words(make: Callable[[], nn.Module]) -> None:
    with pytest.raises(DataError, match="which layers of .* run depends on the data: some rows"):
        isthmus.diagnose(make(), DataLoader(numbers(200, 5), batch_size=10))  # pyright: ignore[reportArgumentType]


def test_batches_may_leave_an_expert_without_samples() -> None:
    module, x = Experts(are_all_called=True).double(), numbers(200, 5).double()
    whole = isthmus.diagnose(module, x, jacobians=False).layers
    parts = isthmus.diagnose(module, DataLoader(x, batch_size=4)).layers  # pyright: ignore[reportArgumentType]
    for name in ("rows", "preactivation_singular_values", "activation_singular_values"):
        np.testing.assert_allclose(parts[name].values, whole[name].values, rtol=1e-5, atol=1e-7)


class OneSize(nn.Module):
    """A residual network that takes one number of rows only."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows, self.first, self.second = rows, nn.Linear(5, 5), nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        if len(x) != self.rows:
            raise ValueError(f"{self.rows} rows, please")
        return x + torch.relu(self.second(x + torch.relu(self.first(x))))


@pytest.mark.parametrize("rows", [20, 1500])
def test_residual_networks_of_one_number_of_rows_are_read_with_their_streams(rows: int) -> None:
    """What blocks cost had been read of fewer rows than the module takes, which ended in its own error."""
    x = numbers(rows, 5)
    for jacobians in (True, False):
        found = isthmus.diagnose(OneSize(rows).double(), x, jacobians=jacobians)
        assert "stream_singular_values" in found.layers
    y = isthmus.diagnose(OneSize(rows).double(), x, x, ridge=0.1).layers
    assert np.isfinite(y["hamiltonian"].values).sum() == 2
