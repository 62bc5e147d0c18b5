"""The kinds of network that a discovery can train: one row each.

Each kind is one file, which says how its networks are made, started, led through few dimensions and measured; what is
the same for all of them: `family`.
"""

from collections.abc import Mapping

from isthmus.discovery.data.problem import Problem
from isthmus.discovery.kinds.connected import Connected
from isthmus.discovery.kinds.family import Family
from isthmus.discovery.kinds.streams import LeakyStreams, ResNetStreams
from isthmus.discovery.settings import CONNECTED, Settings

KINDS: Mapping[str, type[Connected | LeakyStreams | ResNetStreams]] = {
    "connected": Connected,
    "leaky": LeakyStreams,
    "resnet": ResNetStreams,
}
_ALSO = {"fully-connected": CONNECTED}


def kind_of(network: str | None) -> str:
    """The name of the kind that a caller means.

    Raises:
        ValueError: there is none of this name.
    """
    name = CONNECTED if network is None else _ALSO.get(network, network)
    if name not in KINDS:
        known = ", ".join(map(repr, KINDS))
        raise ValueError(f"discover(network={network!r}): needs one of {known}, or None for {CONNECTED!r}.")
    return name


def family_of(problem: Problem, settings: Settings) -> Family:
    """The networks that the settings ask for."""
    return KINDS[settings.network](problem, settings)
