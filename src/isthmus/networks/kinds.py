"""The kinds of networks: one record each, by which plans, files and laws know it. A new kind is one file and one row.

What a class has to offer: `network`, `residual_stream`. How it is trained by hand, if it is: `training.steps.step`,
`training.solvers.schedule`. A kind from outside of this library: `register` makes it known in one process, see
`examples/gated_resnet.py`; an installed package announces it to all of them as an entry point of the group `GROUP`.
"""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from isthmus.errors import DataWarning, outside
from isthmus.networks.argument_fields import Field, choice, listed, real, switch, whole
from isthmus.networks.departures import departure
from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.leaky import LeakyResNet
from isthmus.networks.network import Network
from isthmus.networks.resnet import ResNet

GROUP = "isthmus.kinds"  # entry points: gated = "my_networks:GATED" names a `KindOfNetwork`
MOST_LAYERS = 100_000  # each is an object of its own: a hundred million would be hours before anything is said
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KindOfNetwork:
    """One kind of networks.

    Attributes:
        name: as it is typed in a plan.
        network: its class; made from d_in, d_out, the `arguments` and dtype.
        arguments: what a plan may give, with ranges and defaults; `width`, `depth` and `seed` among them.
        examples: arguments of small networks, which between them have every part that there is: the laws go over them.
        also: other names of it.
        preconditioned: whether `PreconditionedLBFGS` trains it, on the squared error.
        spelling: of arguments the one way to write them, where several make the same network: these are one run.
    """

    name: str
    network: type[Network]
    arguments: Mapping[str, Field]
    examples: Sequence[Mapping[str, object]]
    also: tuple[str, ...] = ()
    preconditioned: bool = False
    spelling: Callable[[Mapping[str, object]], Mapping[str, object]] = dict

    @property
    def names(self) -> tuple[str, ...]:
        """All of its names, the one of plans first."""
        return (self.name, *self.also)

    def made(self, d_in: int, d_out: int, *, dtype: torch.dtype | None = None, **arguments: object) -> Network:
        """An untrained network.

        Raises:
            ValueError: arguments that do not fit together.
        """
        maker: Callable[..., Network] = self.network
        return maker(d_in, d_out, **arguments, dtype=dtype)


def _connected_spelling(arguments: Mapping[str, object]) -> Mapping[str, object]:
    """Equal widths as one number, linear layers in their order and each once."""
    width, linear, found = arguments["width"], arguments["linear"], dict(arguments)
    if isinstance(width, list) and len(width) + 1 == arguments["depth"] and len(set(width)) == 1:
        found["width"] = width[0]
    if isinstance(linear, list):
        found["linear"] = sorted(set(linear))
    return found


SHAPE: Mapping[str, Field] = {"width": whole(1), "depth": whole(1, most=MOST_LAYERS), "seed": whole(0, default=0)}
_KINDS = [
    KindOfNetwork(
        "fully_connected",
        FullyConnected,
        {
            **SHAPE,
            "width": listed(whole(1), also_single=True),
            "negative_slope": real("a number between -1 and 1", lambda v: -1 < v < 1, default=0.0),
            "linear": listed(whole(1), default=[]),
            "bias": switch(default=True),
        },
        examples=(
            {"width": 6, "depth": 4},
            {"width": [6, 4, 5], "depth": 4, "negative_slope": 0.3, "linear": [2]},
            {"width": 5, "depth": 3, "negative_slope": -0.2, "bias": False},
        ),
        also=("connected",),
        spelling=_connected_spelling,
    ),
    KindOfNetwork(
        "leaky",
        LeakyResNet,
        {
            **SHAPE,
            "effective_depth": real("a number >= 0", lambda v: v >= 0),
            "steps": choice("equidistant", "irregular", "adaptive", default="equidistant"),
            "maps": choice("fixed", "learned", default="fixed"),
            "bias": switch(default=True),
            "scheme": choice("euler", "exponential", default="euler"),
        },
        examples=(
            {"width": 6, "depth": 4, "effective_depth": 1.5},
            {"width": 5, "depth": 3, "effective_depth": 4.0, "steps": "irregular", "maps": "learned", "bias": False,
             "scheme": "exponential"},
        ),
        preconditioned=True,
    ),
    KindOfNetwork(
        "resnet",
        ResNet,
        {
            **SHAPE,
            "block_depth": whole(1, most=2),
            "residual_weight": real("a number > 0", lambda v: v > 0, default=1.0),
            "linear": switch(default=False),
        },
        examples=(
            {"width": 6, "depth": 3, "block_depth": 1},
            {"width": 5, "depth": 3, "block_depth": 2, "residual_weight": 0.5},
            {"width": 5, "depth": 2, "block_depth": 2, "linear": True},
        ),
    ),
]  # fmt: skip


_unread = [GROUP]  # emptied before the first package is imported: it may ask for kinds itself


def kinds() -> tuple[KindOfNetwork, ...]:
    """All kinds, those of this library first."""
    while _unread:
        _read_announced(_unread.pop())
    return tuple(_KINDS)


def _read_announced(group: str) -> None:
    """Register what installed packages announce; one that is broken says so and is left out.

    A folder of data that one works in is none of the places where packages lie, whatever it holds.
    """
    here = Path.cwd()
    places = [place for place in sys.path if place and Path(place).resolve() != here]
    for entry in (e for distribution in distributions(path=places) for e in distribution.entry_points):
        if entry.group != group:
            continue
        try:
            found = entry.load()
            if not isinstance(found, KindOfNetwork):
                raise TypeError(f"a {type(found).__name__} is no KindOfNetwork")
            register(found)
        except Exception as error:  # noqa: BLE001 - of somebody else's code
            text = f"network kind {entry.name!r} of {entry.value}: left out ({type(error).__name__}: {error})."
            warnings.warn(text, DataWarning, stacklevel=outside())


def register(kind: KindOfNetwork) -> None:
    """Make a kind known in this process; a class of the same name, as of a module loaded again, gives way to it.

    Raises:
        ValueError: a name that another kind has.
    """
    others = [other for other in _KINDS if other.network.__name__ != kind.network.__name__]
    if clash := {name for other in others for name in other.names} & set(kind.names):
        raise ValueError(f"register({kind.name!r}): another kind of network is called {min(clash)!r}. Name it anew.")
    _KINDS[:] = [*others, kind]


def kind_named(name: str) -> KindOfNetwork:
    """The kind of this name.

    Raises:
        ValueError: there is none.
    """
    for kind in kinds():
        if name in kind.names:
            return kind
    raise ValueError(f"network kind {name!r}: needs one of {', '.join(repr(kind.name) for kind in kinds())}.")


def class_named(name: str) -> type[Network] | None:
    """The class that a description calls so, if it is one of ours."""
    return next((kind.network for kind in kinds() if kind.network.__name__ == name), None)


def of_class(table: Mapping[type[nn.Module], T], network: nn.Module, otherwise: T) -> T:
    """What a table says of the class of a network, or of the next of its bases that is there.

    `otherwise` too of one that need not compute what the class does: the rows of a table read weights.
    """
    found = next((base for base in type(network).__mro__ if base in table), None)
    return otherwise if found is None or departure(network, found) else table[found]
