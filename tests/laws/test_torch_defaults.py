"""What torch takes for granted, a type and a device, changes no public call."""

import copy
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from isthmus import (
    FullyConnected,
    LeakyResNet,
    Limits,
    ResNet,
    compress,
    diagnose,
    discover,
    factorise,
    fit,
    forensics,
    foresee,
)
from isthmus.errors import DataError
from isthmus.networks.devices import made_on_cpu
from isthmus.training import fit_several

X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.c_[np.sin(X[:, 0]), X[:, 0] + X[:, 1]]
FEW = Limits(evaluations=20)


@contextmanager
def default_dtype(dtype: torch.dtype) -> Generator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def numbers(module: nn.Module) -> list[bytes]:
    return [p.detach().numpy().tobytes() for p in module.parameters()]


def network() -> FullyConnected:
    return FullyConnected(4, 2, width=8, depth=3, seed=0, dtype=torch.float32)


def trained_one(net: FullyConnected) -> object:
    fit(net, X, Y, ridge=1e-2, limits=FEW)
    return numbers(net)


def trained_two(net: FullyConnected) -> object:
    fit_several([net], X, Y, ridge=1e-2, limits=FEW, workers=1)
    return numbers(net)


def found(_: FullyConnected, **arguments: Any) -> object:
    asked = discover(X, Y, ridge=(1e-2, 1e-3), starts=2, effort="quick", limits=FEW, workers=2, **arguments)
    return numbers(asked.network), asked.predict(X).tobytes(), asked.interval.lower


def foretold(_: FullyConnected) -> object:
    told = foresee(X, Y, ridge=1e-2, starts=1, effort="quick", limits=FEW)
    return told.shapes, told.evaluations, told.memory


def constant(_: FullyConnected) -> object:
    return numbers(discover(X, np.ones((60, 1))).network)


def chain(net: FullyConnected) -> nn.Sequential:
    layers = [nn.Linear(w.shape[1], w.shape[0], dtype=w.dtype, device="cpu") for w in net.weights]
    with torch.no_grad():
        for layer, weight in zip(layers, net.weights, strict=True):
            layer.weight.copy_(weight)
            layer.bias.zero_()
    return nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])


def compressed(net: FullyConnected) -> object:
    # how fast a network is differs from run to run
    found = compress(chain(net), torch.from_numpy(X).float(), tolerance=0.3, allow_slower=True)
    return [p.shape for p in found.module.parameters()]


def cut(net: FullyConnected) -> object:
    return numbers(factorise(net, torch.from_numpy(X).float(), 2).encoder)


def read(net: FullyConnected) -> object:
    table = diagnose(net, torch.from_numpy(X).float(), y=torch.from_numpy(Y).float(), ridge=1e-2)
    return table.layers.to_dict()["data_vars"].keys(), repr(table.rank)


CALLS: list[Callable[[FullyConnected], object]] = [
    trained_one,
    trained_two,
    found,
    foretold,
    constant,
    compressed,
    cut,
    read,
]


@pytest.mark.parametrize("call", CALLS)
def test_calls_give_the_same_whatever_torch_takes_for_granted(call: Callable[[FullyConnected], object]) -> None:
    usual = call(network())
    for dtype in (torch.float64, torch.bfloat16):
        net = network()
        with default_dtype(dtype):
            assert call(net) == usual, dtype
    net = network()
    with torch.device("meta"):
        assert call(net) == usual, "a default device"


def test_networks_lie_on_the_default_device_with_the_weights_of_their_seed() -> None:
    kinds: list[Callable[[], nn.Module]] = [
        network,
        lambda: LeakyResNet(3, 2, width=4, depth=3, effective_depth=2.0, seed=0),
        lambda: ResNet(3, 2, width=4, depth=2, block_depth=2, seed=0),
    ]
    for make in kinds:
        with torch.device("meta"):
            assert {p.device.type for p in make().parameters()} == {"meta"}
        with torch.device("cpu:0"):
            assert numbers(make()) == numbers(make())


def test_a_strangers_module_elsewhere_keeps_the_default_device() -> None:
    """What it makes in its forward would lie on the CPU, where it is not."""
    usual = made_on_cpu(lambda _: torch.zeros(1).device.type)
    with torch.device("meta"):
        assert usual(nn.Linear(1, 1)) == "meta"
        assert usual(nn.Linear(1, 1, device="cpu")) == usual(network()) == "cpu"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_diagnosis_within_inference_mode_has_its_derivatives(dtype: torch.dtype) -> None:
    def module() -> tuple[nn.Module, torch.Tensor]:
        return FullyConnected(4, 2, width=8, depth=3, seed=0, dtype=dtype), torch.from_numpy(X).to(dtype)

    usual, given = diagnose(*module()), module()
    with torch.inference_mode():
        made_there = module()
        for net, x in (given, made_there, (chain(made_there[0]), made_there[1].clone())):  # pyright: ignore[reportArgumentType]
            found = diagnose(net, x)
            assert found.warnings == usual.warnings
            slopes = [d.layers["jacobian_singular_values"].values for d in (found, usual)]
            np.testing.assert_allclose(*slopes, rtol=1e-6, atol=1e-9)
        assert torch.is_inference_mode_enabled()


def distilled(net: FullyConnected) -> object:
    x = torch.from_numpy(X).float()
    made = compress(chain(net), x, tolerance=0.3, polish="distil", allow_slower=True).module
    return [p.shape for p in made.parameters()]


def told(net: FullyConnected, y: torch.Tensor) -> object:
    dtype = net.weights[0].dtype
    found = forensics(net, torch.from_numpy(X).to(dtype), y.to(dtype) if y.is_floating_point() else y)
    return found.ridge, found.residual, found.loss


def trained_stranger(net: FullyConnected) -> object:
    with torch.inference_mode(False):
        module = chain(net).requires_grad_(True)
    fit(module, torch.from_numpy(X).float(), torch.from_numpy(Y).float(), ridge=1e-2, limits=FEW)
    return numbers(module)


def in_float64(call: Callable[[FullyConnected], object]) -> Callable[[FullyConnected], object]:
    return lambda net: call(net.rewritten(*([t.double() for t in part] for part in net.written_layers() if part)))


INFERRED: dict[str, Callable[[FullyConnected], object]] = {
    **{call.__name__: call for call in CALLS if call is not read},  # the law below is its
    "distilled": distilled,
    "told": lambda net: told(net, torch.from_numpy(Y)),
    "told in float64": in_float64(lambda net: told(net, torch.from_numpy(Y))),
    "told of classes": lambda net: told(net, torch.from_numpy(Y[:, 0] > 0).long()),
    "trained_stranger": trained_stranger,
}


@pytest.mark.parametrize("name", INFERRED)
def test_calls_give_the_same_within_inference_mode(name: str) -> None:
    call = INFERRED[name]
    usual, given = call(network()), network()
    with torch.inference_mode():
        assert call(given) == usual  # what they make of arrays is made here
        assert torch.is_inference_mode_enabled()
        if "trained" not in name:
            assert call(network()) == usual, "a network that is made there"


def test_a_network_that_is_made_within_inference_mode_is_not_trained() -> None:
    with torch.inference_mode():
        net = network()
    for one in (net, nn.Sequential(net)):
        with pytest.raises(DataError, match="made within torch.inference_mode"):
            fit(one, X, Y, ridge=1e-2, limits=FEW)
    fit(copy.deepcopy(net), X, Y, ridge=1e-2, limits=FEW)
