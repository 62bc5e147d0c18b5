"""Errors by rank are those of the best approximations on the data; budgets name modules as adapters know them."""

import json
import re
from collections.abc import Callable, Mapping

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import isthmus
from foreign_modules import samples
from isthmus.diagnostics import rank_budgets
from isthmus.diagnostics.rank_budgets import rank_errors

DOUBLE = torch.float64


class Twice(nn.Module):
    """One layer that is used twice, and one that is used once."""

    def __init__(self) -> None:
        super().__init__()
        self.shared, self.last = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.relu(self.shared(torch.relu(self.shared(x)))))


def made(module: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 2)
    return module.double()


def test_errors_are_those_of_the_best_approximation_of_each_rank() -> None:
    module, x = made(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5))), samples(50, 6, dtype=DOUBLE)
    found = rank_budgets(isthmus.diagnose(module, x))
    content = json.loads(json.dumps(found))
    with torch.no_grad():
        z = module[0](x) if isinstance(module, nn.Sequential) else x
    centred = z - z.mean(0)
    u, s, vh = torch.linalg.svd(centred, full_matrices=False)
    errors = content["layers"]["0"]["data_error"]
    assert list(errors) == ["1", "2", "4", "8"]
    for k in (1, 2, 4):
        left = centred - (u[:, :k] * s[:k]) @ vh[:k]
        assert errors[str(k)] == pytest.approx(float(left.norm() / centred.norm()), rel=1e-9)
    weight = torch.linalg.svdvals(module.get_parameter("2.weight").detach())
    wanted = float((weight[2:].square().sum() / weight.square().sum()).sqrt())
    assert content["layers"]["2"]["weight_error"]["2"] == pytest.approx(wanted, rel=1e-9)
    held = s.square().cumsum(0) / s.square().sum()
    rank = 1 + int((held < 0.9).sum())
    assert content["rank_pattern"]["^0"] == content["layers"]["0"]["rank"] == rank
    assert content["alpha_pattern"]["^0"] == 2 * rank


def test_what_is_used_twice_has_no_budget_of_its_own() -> None:
    found = rank_budgets(isthmus.diagnose(made(Twice()), samples(50, 6, dtype=DOUBLE)), share=1.0)
    layers, pattern = found["layers"], found["rank_pattern"]
    assert isinstance(layers, dict)
    assert isinstance(pattern, dict)
    assert list(layers) == ["shared", "shared#2", "last"]
    assert pattern == {"^last": 3}


def test_a_spectrum_of_nothing_has_no_errors_and_a_share_is_one() -> None:
    assert rank_errors(np.array([0.0, 0.0, np.nan])) == {}
    assert rank_errors(np.array([3.0, 4e-9])) == {"1": pytest.approx(4e-9 / 3), "2": 0.0}
    found = isthmus.diagnose(made(Twice()), samples(50, 6, dtype=DOUBLE))
    with pytest.raises(ValueError, match="needs a share of the energy"):
        rank_budgets(found, share=0.0)


class Block(nn.Module):
    """Layers of the names that those around have, and convolutions of groups."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1)
        self.layer1 = nn.Sequential(nn.Conv2d(6, 6, 3, padding=1), nn.ReLU())
        self.layer1.add_module("conv1", nn.Conv2d(6, 4, 1))
        self.layer1.add_module("0x1", nn.Conv2d(4, 4, 3, groups=2))
        self.depthwise = nn.Conv2d(4, 4, 3, groups=4)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(16, 5))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.depthwise(self.layer1(torch.relu(self.conv1(x)))))


def of_peft(pattern: Mapping[str, int], module: str) -> int | None:
    """The rule of peft (`get_pattern_key`): the first key of which the end of the name is an instance."""
    return next((rank for key, rank in pattern.items() if re.match(rf"(.*\.)?({key})$", module)), None)


@pytest.mark.parametrize(
    "make", [Block, lambda: nn.Sequential(Block(), nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 2)))]
)
def test_adapters_get_the_rank_of_their_own_layer(make: Callable[[], nn.Module]) -> None:
    module = made(make())
    found = json.loads(
        json.dumps(rank_budgets(isthmus.diagnose(module, samples(60, 3, 6, 6, dtype=DOUBLE)), share=0.8))
    )
    assert found["rank_pattern"].keys() == found["alpha_pattern"].keys()
    ranks = {name: layer["rank"] for name, layer in found["layers"].items()}
    assert len({*ranks.values()}) > 1
    for name, part in module.named_modules():
        is_plain = isinstance(part, nn.Linear) or (isinstance(part, nn.Conv2d) and part.groups == 1)
        assert of_peft(found["rank_pattern"], name) == (ranks[name] if is_plain else None)
