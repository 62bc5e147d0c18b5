"""The kinds of network that a discovery can train: fully connected ones, and whatever has a residual stream.

Each is one file, which says how its networks are made, started, led through few dimensions and measured; what is the
same for all of them: `family`. The kinds as such, and how one from outside is registered: `networks.kinds`.
"""

from isthmus.discovery.data.problem import Problem
from isthmus.discovery.kinds.connected import Connected
from isthmus.discovery.kinds.family import Family
from isthmus.discovery.kinds.streams import LeakyStreams, PlainStreams
from isthmus.discovery.settings import CONNECTED, Settings
from isthmus.networks.kinds import kind_named, kinds
from isthmus.networks.residual_stream import ResidualStream


def kind_of(network: str | None) -> str:
    """The name of the kind that a caller means.

    Raises:
        ValueError: there is none of this name that a discovery can train.
    """
    if network in {None, "fully-connected", *kind_named(CONNECTED).names}:
        return CONNECTED
    if network not in trainable():
        known = ", ".join(map(repr, trainable()))
        raise ValueError(f"discover(network={network!r}): needs one of {known}, or None for {CONNECTED!r}.")
    return str(network)


def trainable() -> list[str]:
    """The kinds that a discovery can train, the usual one first."""
    return [CONNECTED, *(kind.name for kind in kinds() if issubclass(kind.network, ResidualStream))]


def family_class(name: str) -> type[Connected | LeakyStreams | PlainStreams]:
    """What a discovery does with networks of this kind."""
    if name == CONNECTED:
        return Connected
    return LeakyStreams if kind_named(name).name == "leaky" else PlainStreams


def family_of(problem: Problem, settings: Settings) -> Family:
    """The networks that the settings ask for."""
    return family_class(settings.network)(problem, settings)
