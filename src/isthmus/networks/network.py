"""What every class of networks of ours offers: abstract classes, by which the rest of the house knows a network.

How a class is named, made from a plan and tried: `kinds`. The classes: `fully_connected`, `leaky`, `resnet`.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from isthmus.networks.arguments import seed_argument, whole_argument
from isthmus.networks.layers import LayerState


class Network(nn.Module, ABC):
    """A network of ours: rows of `d_in` numbers in, rows of `d_out` out.

    Attributes:
        d_in: number of input features.
        d_out: number of outputs.
        rows_stand_alone: whether what comes out for a row depends on that row alone.
    """

    d_in: int
    d_out: int
    rows_stand_alone: ClassVar[bool] = True

    def forward(self, x: Float[Tensor, "n d_in"]) -> Float[Tensor, "n d_out"]:
        """f(x), samples as rows."""
        return self.layer_states(x)[-1].activation

    @abstractmethod
    def layer_states(self, x: Float[Tensor, "n d_in"]) -> list[LayerState]:
        """See `isthmus.walk`."""

    @abstractmethod
    def penalty(self) -> Float[Tensor, ""]:
        """The norm that `ridge` multiplies, a sum of c_i theta_i^2 / 2."""

    @abstractmethod
    def description(self) -> dict[str, object]:
        """What rebuilds the network apart from its tensors, in terms of JSON; "class" is the name of its class.

        Raises:
            TypeError: the network has a part that no description holds.
        """

    @classmethod
    @abstractmethod
    def from_description(cls, description: Mapping[str, Any], tensors: Mapping[str, Tensor], name: str) -> "Network":
        """The network that `description` described, with the tensors of its `state_dict`.

        Args:
            description: of any origin: what it says is held against the tensors before anything is allocated.
            tensors: by their names in the network.
            name: by which errors call it.

        Raises:
            ValueError: the tensors do not fit the description.
        """


def penalised(network: nn.Module) -> frozenset[str]:
    """Names of the parameters that count where a class has no penalty of its own: the trainable ones.

    All of a network that is frozen as a whole: it was put away after its training.
    """
    trained = frozenset(name for name, p in network.named_parameters() if p.requires_grad)
    return trained or frozenset(name for name, _ in network.named_parameters())


def penalty_of(network: nn.Module, counted: Collection[str] | None = None) -> Float[Tensor, ""]:
    """What `ridge` multiplies: `network.penalty()` where the class defines one, else the squared norm of parameters.

    Args:
        network: any module.
        counted: names of the parameters that count, those of `penalised` unless given: a copy without gradients does
            not know any more which of its parameters were trained.
    """
    own = getattr(network, "penalty", None)
    if callable(own):
        value = own()
        assert isinstance(value, Tensor)
        return value
    names = penalised(network) if counted is None else counted
    squares = [p.square().sum() for name, p in network.named_parameters() if name in names]
    return torch.stack(squares).sum() if squares else torch.zeros(())


def check_numbers_of(call: str, *, seed: object, dtype: object, **sizes: object) -> None:
    """Refuse sizes and a seed that are no whole numbers, and a type of parameters that have no gradients.

    Raises:
        ValueError: says which. DataError, which is one: the seed.
    """
    for name, size in sizes.items():
        many = isinstance(size, Sequence | np.ndarray | Tensor) and not isinstance(size, str) and np.ndim(size) > 0
        for one in size if many else (size,):  # pyright: ignore[reportGeneralTypeIssues]
            whole_argument(one, f"{call}({name}=...)")
    if seed is not None:
        seed_argument(seed, f"{call}(seed=...)")
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise ValueError(f"{call}(dtype={str(dtype)[:40]}): needs a floating-point type of torch, as torch.float64.")
