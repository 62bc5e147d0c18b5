"""The one loop over the layers of a network: `walk(network, x)` gives what each weight layer saw and did.

Everything that looks inside a network maps over `walk`. The other loops: `forward`, and the hand-written training step.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from isthmus.errors import ShapeError
from isthmus.theory.bridge import as_torch
from isthmus.theory.inputs import check_tensor

Points = NDArray[Any] | list[Any]  # what is taken for a tensor


@dataclass(frozen=True, slots=True)
class LayerState:
    """What weight layer number `position` (1..L) computes on a batch.

    Attributes:
        position: number of the layer, 1 is the first weight matrix.
        preactivation: z_l = a_{l-1} W_l^T + b_l, shape (n, width_l).
        activation: a_l = sigma(z_l), shape (n, width_l); equal to the preactivation where no nonlinearity follows.
        weight: W_l, shape (width_l, width_{l-1}).
        bias: b_l, shape (width_l,), or None.
        name: where the layer sits in the module, as in `named_modules`.

    >>> [state.preactivation.shape[1] for state in isthmus.walk(network, torch.from_numpy(x))]
    [8, 8, 2]
    """

    position: int
    preactivation: Tensor
    activation: Tensor
    weight: Tensor
    bias: Tensor | None
    name: str = ""


@runtime_checkable
class Walkable(Protocol):
    """A network that knows its own layers."""

    def layer_states(self, x: Tensor) -> list[LayerState]:
        """The states of all weight layers on the batch `x`."""
        ...


def walk(network: nn.Module, x: Float[Tensor, "n d_in"]) -> list[LayerState]:
    """The states of all weight layers of a network on a batch, first to last.

    Args:
        network: a network of this library, or any module whose `nn.Linear` layers are called once each; the activation
            of a layer is then what the next called module that keeps its shape returns. Functions and modules that
            work in place overwrite nothing of what comes back.
        x: samples as rows.

    Returns:
        One `LayerState` per weight layer, in the order in which they are called; tensors carry gradients where
        gradients are enabled.

    Raises:
        ShapeError: `x` does not have the number of features that the layer takes that is called first.
        ValueError: the module has no linear layer.

    >>> [state.position for state in isthmus.walk(network, torch.from_numpy(x))]
    [1, 2, 3]
    """
    if isinstance(network, Walkable):
        return network.layer_states(x)
    return _walk_by_hooks(network, x)


def check_features(call: str, x: Tensor, d_in: int) -> None:
    """Raise `ShapeError` unless `x` is a batch of rows with `d_in` features."""
    if x.ndim != 2 or x.shape[1] != d_in:
        raise ShapeError(
            f"{call}: needs x of shape (n, {d_in}), samples as rows; got {tuple(x.shape)}. "
            "Flatten images with x.flatten(1); a single sample is x[None]."
        )


def check_samples(call: str, x: Tensor, d_in: int) -> None:
    """Raise `ShapeError` unless `x` is a batch of at least one row with `d_in` features."""
    check_features(call, x, d_in)
    if not len(x):
        raise ShapeError(f"{call}: needs at least one sample, got none: exact on no data means nothing.")


def as_points(call: str, **given: object) -> list[Tensor]:
    """Tensors, arrays and lists as tensors of finite real floating-point numbers, in the order of their names."""
    found = {name: check_tensor(call, name, as_torch(value)) for name, value in given.items()}
    return list(found.values())


def check_numbers(call: str, **tensors: Tensor | None) -> None:
    """Raise unless every tensor given has finite real floating-point entries."""
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        if not tensor.dtype.is_floating_point:
            remedy = f"{name}.real" if tensor.dtype.is_complex else f"{name}.double()"
            raise TypeError(f"{call}: needs {name} of real floating-point numbers; got {tensor.dtype}. Pass {remedy}.")
        if not bool(torch.isfinite(tensor).all()):
            count = int((~torch.isfinite(tensor)).sum())
            raise ValueError(
                f"{call}: needs finite {name}; got {count} NaN or infinite entries, shape {tuple(tensor.shape)}. "
                "Remove them first."
            )


def _walk_by_hooks(network: nn.Module, x: Tensor) -> list[LayerState]:
    """Record every `nn.Linear` call of a foreign module, and the elementwise module called right after it."""
    linears = [(name, module) for name, module in network.named_modules() if isinstance(module, nn.Linear)]
    if not linears:
        raise ValueError(
            f"walk(network, x): needs a module with nn.Linear layers; {type(network).__name__} has none. "
            "Other layer kinds are read by isthmus.diagnose."
        )
    record = _Record(x)
    handles = [handle for name, module in linears for handle in record.of_linear(name, module)]
    handles += [
        module.register_forward_hook(record.behind)
        for module in network.modules()
        if not isinstance(module, nn.Linear) and not any(module.children())
    ]
    try:
        network(x)
    finally:
        for handle in handles:
            handle.remove()
    return record.states


@dataclass(slots=True, eq=False)
class _Record:
    """What hooks have seen. The network goes on with copies: what is recorded it cannot overwrite in place.

    Attributes:
        x: the samples.
        states: of the layers called so far.
        stream: the copy of the last activation that the network goes on with.
    """

    x: Tensor
    states: list[LayerState] = field(default_factory=list[LayerState])
    stream: Tensor | None = None

    def of_linear(self, name: str, layer: nn.Linear) -> list[RemovableHandle]:
        """Hooks around a linear layer."""

        def entered(_layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            if not self.states and inputs:
                self._check_first(inputs[0], name, layer.in_features)

        def left(_layer: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
            self.states.append(LayerState(len(self.states) + 1, output, output, layer.weight, layer.bias, name))
            self.stream = output.clone()
            return self.stream

        return [layer.register_forward_pre_hook(entered), layer.register_forward_hook(left)]

    def behind(self, _module: nn.Module, inputs: tuple[Tensor, ...], output: object) -> Tensor | None:
        """After another module; of one that keeps the shape of what a layer gave, what it returns is the activation."""
        if self.stream is None or not inputs or inputs[0] is not self.stream or not isinstance(output, Tensor):
            return None
        if output.shape != inputs[0].shape:
            return None
        self.states[-1] = replace(self.states[-1], activation=output)
        self.stream = output.clone()
        return self.stream

    def _check_first(self, entering: Tensor, name: str, d_in: int) -> None:
        """The layer that is called first, wherever it stands in the module, takes rows of so many features."""
        if entering.shape == self.x.shape:
            check_features("walk(network, x)", self.x, d_in)
        elif entering.ndim != 2 or entering.shape[1] != d_in:
            raise ShapeError(
                f"walk(network, x): the first layer that is called, {name!r}, takes rows of {d_in} features; what "
                f"enters it has shape {tuple(entering.shape)}, of x {tuple(self.x.shape)}. isthmus.diagnose reads all."
            )


def activation(preactivation: Tensor, negative_slope: float) -> Tensor:
    """sigma_a: t for t >= 0 and a t for t < 0 (derivative 1 at 0)."""
    return torch.nn.functional.leaky_relu(preactivation, negative_slope) if negative_slope else preactivation.relu()


def activation_derivative(preactivation: Tensor, negative_slope: float) -> Tensor:
    """sigma_a': 1 for t >= 0 and a for t < 0, in the precision of `preactivation`."""
    one = torch.ones_like(preactivation)
    return torch.where(preactivation >= 0, one, one * negative_slope)


def relative_error(new: Tensor, old: Tensor) -> float:
    """|new - old|_F / |old|_F; 0 where both are zero, infinite where only the old is."""
    gap, size = float((new - old).norm()), float(old.norm())
    return gap / size if size > 0 else (0.0 if gap == 0 else float("inf"))
