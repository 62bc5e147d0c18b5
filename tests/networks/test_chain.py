"""A module as a chain of steps: what is opened, what stays closed and why, and that it computes the same."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from foreign_modules import Branching, Checked, Images, Residual, attention, nested, samples, seeded
from isthmus.networks import FullyConnected
from isthmus.networks.chain import UnreadableModule, as_module, read_chain
from isthmus.networks.graph_stages import exported

IMAGE = samples(9, 1, 8, 8)
ROWS = samples(9, 5)
KINDS = {
    "nested": (nested, ROWS, ["Linear", "GELU", "Linear", "LayerNorm", "SiLU", "Linear"]),
    "images": (
        Images, IMAGE,
        ["Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d", "Conv2d", "ReLU", "Flatten", "Linear", "GELU", "BatchNorm1d",
         "Linear"],
    ),
    "residual": (Residual, ROWS, ["Linear", "GELU", "ResidualSum", "ResidualSum", "Tanh", "Linear"]),
    "shapes": (Checked, ROWS, ["Linear", "SiLU", "Linear"]),
    "attention": (attention, samples(9, 4, 5), ["Linear", "TransformerEncoder", "Linear"]),
}  # fmt: skip


def network() -> FullyConnected:
    return FullyConnected(5, 3, width=4, depth=4, linear=(2,), negative_slope=0.1, seed=0)


@pytest.mark.parametrize("case", KINDS)
def test_steps_are_found_and_compute_the_same(case: str) -> None:
    make, x, kinds = KINDS[case]
    module = seeded(make)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    chain = read_chain(module, x)
    assert [type(stage.module).__name__ for stage in chain] == kinds
    with torch.no_grad():
        assert torch.allclose(as_module(chain)(x), module(x), atol=1e-6)
    # a copy: what is done to the chain is not done to the module
    for parameter in as_module(chain).parameters():
        parameter.data.zero_()
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())


def test_an_exported_program_gives_the_same_steps() -> None:
    module = seeded(Images)
    graph = exported(module, IMAGE)
    chain = read_chain(graph, IMAGE)
    assert [type(stage.module).__name__ for stage in chain] == KINDS["images"][2]
    assert [stage.name for stage in chain if stage.name in dict(module.named_modules())] == [
        "conv1", "norm1", "conv2", "fc1", "norm2", "fc2"
    ]  # fmt: skip
    with torch.no_grad():
        assert torch.allclose(as_module(chain)(IMAGE), module(IMAGE), atol=1e-6)


def test_names_and_reasons_are_those_of_the_module() -> None:
    reasons = {stage.name: stage.reason for stage in read_chain(seeded(Residual), ROWS)}
    assert reasons["enter"] == reasons["leave"] == ""
    assert "skip connection" in reasons["blocks.0"]
    assert "attention" in read_chain(seeded(attention), samples(9, 4, 5))[1].reason
    assert "normalisation" in read_chain(seeded(nested), ROWS)[3].reason


def test_networks_of_ours_are_opened_also_inside_others() -> None:
    for module, before in ((network(), 0), (nn.Sequential(nn.Tanh(), network(), nn.Linear(3, 2)), 1)):
        chain = read_chain(module, ROWS)
        kinds = [type(stage.module).__name__ for stage in chain[before : before + 6]]
        assert kinds == ["Linear", "LeakyReLU", "Linear", "Linear", "LeakyReLU", "Linear"]


class TwoInputs(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


class TwoOutputs(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, x


@pytest.mark.parametrize(
    ("make", "reason"),
    [(Branching, "neither traced .* nor exported"), (TwoInputs, "takes 2 inputs"), (TwoOutputs, "gives 2 outputs")],
)
def test_what_is_no_chain_is_refused_with_the_reason(make: Callable[[], nn.Module], reason: str) -> None:
    module = seeded(make)
    with pytest.raises(UnreadableModule, match=reason):
        read_chain(module, ROWS)


class ByMode(nn.Module):
    """Shape-dependent in a way that a trace cannot see: the attribute is read at tracing time."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 5)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.layer(x) * self.calls


def test_a_graph_that_computes_something_else_is_refused() -> None:
    with pytest.raises(UnreadableModule, match="does not compute what it does"):
        read_chain(ByMode(), ROWS)
