"""What has no row is named: modules, and parameters beside modules, or of products that are not watched."""

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from diagnostics.architectures import ARCHITECTURES, numbers
from isthmus import diagnose

Product = Callable[["Mixed", Tensor], Tensor]


class Mixed(nn.Module):
    """A layer, and beside it parameters that are multiplied in one way or another."""

    def __init__(self, product: Product) -> None:
        super().__init__()
        self.product = product
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.first = nn.Linear(6, 6)
            self.weight, self.shift = nn.Parameter(torch.randn(6, 6)), nn.Parameter(torch.randn(6))
            self.unused = nn.Parameter(torch.randn(3, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.product(self, torch.relu(self.first(x)))


# the product, which parameters it uses without a row, and which not at all
PRODUCTS: dict[str, tuple[Product, set[str], set[str]]] = {
    "einsum": (lambda m, x: torch.einsum("nd,hd->nh", x, m.weight) + m.shift, {"weight", "shift"}, set()),
    "columns": (lambda m, x: (m.weight @ x.T).T, {"weight"}, {"shift"}),
    "batches": (lambda m, x: torch.bmm(x[None], m.weight[None])[0], {"weight"}, {"shift"}),
    "entries": (lambda m, x: (x[:, None] * m.weight).sum(-1), {"weight"}, {"shift"}),
    "factors": (lambda m, x: torch.addmm(m.shift, x, m.weight, alpha=0.5), {"weight", "shift"}, set()),
    "linear": (lambda m, x: nn.functional.linear(x, m.weight, m.shift), set(), set()),
    "computed": (lambda m, x: nn.functional.linear(x, (m.weight * 2).tril(), m.shift.exp()), set(), set()),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("jacobians", [None, False])
def test_every_parameter_is_in_a_row_or_named(name: str, jacobians: bool | None) -> None:
    product, missing, idle = PRODUCTS[name]
    told = dict(diagnose(Mixed(product), numbers(40, 6), jacobians=jacobians).skipped)
    watched = {part for part, reason in told.items() if "that could be watched" in reason}
    assert watched == missing
    assert {part for part, reason in told.items() if "never used on this data" in reason} == {"unused", *idle}


@pytest.mark.dear(3)
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_nothing_that_is_in_a_row_is_named(name: str) -> None:
    """Weight norm, packed projections, recurrences, lists of weights."""
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = diagnose(ARCHITECTURES[name].make(), ARCHITECTURES[name].data(), jacobians=False)
    assert [part for part, reason in found.skipped if reason.startswith("parameter of")] == []


def test_a_leaf_whose_weights_are_used_without_a_call_was_not_unused() -> None:
    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.into, self.table, self.idle = nn.Linear(6, 4), nn.Bilinear(4, 4, 2), nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            h = self.into(x)
            return torch.einsum("ni,oij,nj->no", h, self.table.weight, h)

    told = dict(diagnose(Around(), numbers(40, 6)).skipped)
    assert told["table"] == "bilinear: no single weight matrix"
    assert told["idle"] == "never called on this data (Linear)"


@pytest.mark.filterwarnings(
    "ignore"
)  # torch announces the end of its quantisation, and of what its tensors are made of
def test_quantised_layers_are_said_to_be_quantised() -> None:
    inner = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    quantised = torch.ao.quantization.quantize_dynamic(inner, {nn.Linear})  # pyright: ignore
    told = dict(diagnose(nn.Sequential(quantised, nn.Linear(8, 3)), numbers(40, 8), jacobians=False).skipped)
    assert "quantised" in told["0.0"]
    assert not any("never" in reason for reason in told.values())
