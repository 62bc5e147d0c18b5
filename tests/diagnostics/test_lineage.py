"""Whose numbers enter a layer: those of an activation before it only where they are the same, else its own."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from diagnostics.architectures import numbers
from isthmus import Monitor, diagnose

Between = Callable[[Tensor], Tensor]
DOUBLE = torch.float64


def spectrum(rows: Tensor) -> np.ndarray:
    return (torch.linalg.svdvals(rows - rows.mean(0)) / len(rows) ** 0.5).detach().numpy()


class Chain(nn.Module):
    """6 - 6 - 4 with anything in between; keeps what its layers gave."""

    def __init__(self, between: Between) -> None:
        super().__init__()
        self.between, self.gave = between, list[Tensor]()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.first, self.last = nn.Linear(6, 6).double(), nn.Linear(6, 4).double()

    def forward(self, x: Tensor) -> Tensor:
        z = self.first(x)
        self.gave = [z.detach().clone()]
        z = self.last(self.between(z))
        self.gave.append(z.detach().clone())
        return z


def filled(z: Tensor) -> Tensor:
    z[:, :3] = z[:, 3:] * 2
    return z


def through_a_view(z: Tensor) -> Tensor:
    z[:, :3].mul_(10.0)
    return z


def flat_in_place(z: Tensor) -> Tensor:
    z.view(-1).relu_()
    return z


def twice_in_place(z: Tensor) -> Tensor:
    return functional.relu(z, inplace=True).mul_(3.0)


BETWEEN: dict[str, Between] = {
    "divided": lambda z: z / 10,
    "squared": lambda z: z**2,
    "modulus": torch.abs,
    "exponential": torch.exp,
    "shifted": lambda z: z - 3,
    "reciprocal": lambda z: 1 / (z + 10),
    "added to itself": lambda z: z + z,
    "dropout at work": lambda z: functional.dropout(z, 0.5, training=True),
    "filled": filled,
    "through a view": through_a_view,
    "flat in place": flat_in_place,
    "twice in place": twice_in_place,
    "copied": lambda z: z.clone(),
    "nothing": lambda z: z,
    "relu": torch.relu,
    "relu in place": torch.relu_,
    "gelu": functional.gelu,
    "swish": lambda z: z * torch.sigmoid(z),
    "normalised": lambda z: functional.layer_norm(z, (6,)),
}


@pytest.mark.parametrize("jacobians", [None, False])
@pytest.mark.parametrize("name", BETWEEN)
def test_a_layer_gives_what_it_gives_whatever_stands_before_it(name: str, jacobians: bool | None) -> None:
    """Spectra of every z against those of the tensors themselves."""
    module, x = Chain(BETWEEN[name]), numbers(50, 6).double()
    torch.manual_seed(3)  # of dropout; a diagnosis draws from there too, and puts it back
    with torch.random.fork_rng():
        diagnosis = diagnose(module, x, jacobians=jacobians)
    found = diagnosis.layers["preactivation_singular_values"].values
    # torch itself cannot differentiate what is overwritten behind a ReLU, and it is said
    assert any("cannot be differentiated" in s for s in diagnosis.warnings) == (
        name == "twice in place" and jacobians is not False
    )
    if name == "dropout at work":  # random: the scale is what was wrong
        torch.manual_seed(3)
    module(x)
    close = 0.3 if name == "dropout at work" else 1e-7
    for row, z in zip(found, module.gave, strict=True):
        np.testing.assert_allclose(row[: z.shape[1]], spectrum(z), rtol=close, atol=1e-12)


@pytest.mark.parametrize("name", BETWEEN)
def test_balance_is_told_of_homogeneous_links_alone(name: str) -> None:
    found = diagnose(Chain(BETWEEN[name]), numbers(50, 6).double()).layers["balance_residual"].values
    # in place behind a view the link is not followed
    assert np.isfinite(found[0]) == (name in ("copied", "nothing", "relu", "relu in place", "twice in place"))


@pytest.mark.parametrize("after", [lambda a: a**2, lambda a: a - 3, lambda a: a * a, torch.exp])
def test_arithmetic_behind_a_relu_may_end_homogeneity(after: Between) -> None:
    found = diagnose(Chain(lambda z: after(torch.relu(z))), numbers(50, 6).double()).layers
    assert np.isnan(found["balance_residual"].values[0])
    assert found["nonlinearity_impact"].values[0] > 0.1


class Stream(nn.Module):
    """x += f(x), and a layer that reads the stream before it was written and one that reads it afterwards."""

    def __init__(self, *, in_place: bool) -> None:
        super().__init__()
        self.in_place = in_place
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.into, self.f, self.g = nn.Linear(6, 6).double(), nn.Linear(6, 6).double(), nn.Linear(6, 6).double()

    def forward(self, x: Tensor) -> Tensor:
        x = self.into(x)
        step = 10 * torch.tanh(self.f(x))
        if self.in_place:
            x += step
        else:
            x = x + step
        return self.g(x)


def test_a_stream_that_is_written_in_place_is_the_same_network() -> None:
    x = numbers(50, 6).double()
    expected, found = (diagnose(Stream(in_place=flag), x) for flag in (False, True))
    for name, values in expected.layers.data_vars.items():
        np.testing.assert_allclose(found.layers[name].values, values.values, rtol=1e-7, atol=1e-12, err_msg=str(name))


@pytest.mark.parametrize("is_last", [True, False])
def test_an_activation_is_what_goes_on_and_no_intermediate_result(is_last: bool) -> None:
    """A normalisation by hand squares it; a penalty may do that behind it."""

    def normalised(z: Tensor) -> Tensor:
        a = torch.relu(z)
        mean = (a * a if is_last else a.pow(2)).mean(-1, keepdim=True)
        return a * torch.rsqrt(mean + 1e-6)

    module, x = Chain(normalised), numbers(50, 6).double()
    found = diagnose(module, x).layers
    module(x)
    expected = spectrum(torch.relu(module.gave[0]))
    np.testing.assert_allclose(found["activation_singular_values"].values[0][:6], expected, rtol=1e-7)
    (record, _) = Monitor(module, x).record(0)
    np.testing.assert_allclose(record.spectrum, expected, rtol=1e-5, atol=1e-9)
