import pytest
import torch
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.networks import LeakyResNet, ResNet, Waist, walk
from isthmus.training.losses import SQUARED, DataLoss
from isthmus.training.solvers.curvature_model import linearised
from isthmus.training.steps.step import AutogradStep, step_of
from leaky_networks import small_data
from theorem_checks import assert_close, normal


def waist(layer: int, width: int = 5, rank: int = 2) -> Waist:
    return Waist(layer, torch.linalg.qr(normal(8, width, rank)).Q, normal(9, width))


def leaky(layer: int, maps: str = "learned") -> LeakyResNet:
    network = LeakyResNet(3, 3, width=5, depth=4, effective_depth=2.0, maps=maps, seed=0, dtype=torch.float64)
    network.narrow(waist(layer))
    return network


def rank_of(rows: Tensor) -> int:
    return int(torch.linalg.matrix_rank(rows - rows.mean(0), rtol=1e-9))


@pytest.mark.parametrize("kind", ["leaky", "block of one", "block of two"])
def test_the_stream_goes_through_so_many_dimensions_and_no_more(kind: str) -> None:
    size = 2 if kind == "block of two" else 1
    network = leaky(2) if kind == "leaky" else ResNet(3, 3, width=5, depth=4, block_depth=size, seed=0).double()
    if isinstance(network, ResNet):
        network.narrow(waist(2))
    x, _ = small_data()
    streams = [state.activation.detach() for state in walk(network, x)]
    streams = streams if kind == "leaky" else [streams[0], *streams[size:-1:size]]
    assert rank_of(streams[2]) == 2
    assert rank_of(streams[1]) > 2
    network.narrow(None)
    assert rank_of(walk(network, x)[2 * size].activation.detach()) > 2


@pytest.mark.parametrize("layer", [0, 2, 4])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_step_by_hand_is_that_of_autograd(layer: int, smoothing: float) -> None:
    x, y = small_data()
    network, other = leaky(layer), leaky(layer)
    for each in (network, other):
        each.smoothing.fill_(smoothing)
    step, reference = step_of(network, x, DataLoss(SQUARED, y), 0.1), AutogradStep(
        other, x, DataLoss(SQUARED, y), 0.1
    )  # fmt: skip
    with torch.no_grad():
        assert step() == pytest.approx(reference(), rel=1e-12)
    assert_close(step.gradient, reference.gradient, relative=1e-11)


@pytest.mark.parametrize("layer", [0, 2, 4])
def test_the_linearisation_is_that_of_autograd(layer: int) -> None:
    x, y = small_data()
    network, data = leaky(layer), DataLoss(SQUARED, y)
    network.smoothing.fill_(0.2)
    step = step_of(network, x, data, 0.1)
    model, c = linearised(network, x, data), step.curvature
    assert isinstance(c, Tensor)

    def outputs(*parameters: Tensor) -> Tensor:
        names = [name for name, _ in network.named_parameters()]
        changed = torch.func.functional_call(network, dict(zip(names, parameters, strict=True)), (x,))
        return (2 / len(x)) ** 0.5 * changed

    parameters = tuple(p.detach() for p in network.parameters())
    jacobians = torch.func.jacrev(outputs, argnums=tuple(range(len(parameters))))(*parameters)
    J = torch.cat([j.reshape(36, -1) for j in jacobians], 1) / c.sqrt()
    assert_close(model.push(u := normal(0, len(c))).reshape(-1), J @ u, relative=1e-11)
    assert_close(model.pull(r := normal(1, 12, 3)), J.mT @ r.reshape(-1), relative=1e-11)
    assert_close(model.gram(), J @ J.mT, relative=1e-11)
    assert_close(model.jacobian(), J, relative=1e-11)


def test_what_is_no_waist_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="orthonormal columns"):
        Waist(1, normal(0, 5, 2), normal(1, 5))
    with pytest.raises(ShapeError, match="one mean per row of the axes, 5; got 4"):
        Waist(1, torch.eye(5), torch.zeros(4))
    with pytest.raises(ShapeError, match="behind one of the layers 0..4; got width 5 behind layer 7"):
        leaky(2).narrow(waist(7))
