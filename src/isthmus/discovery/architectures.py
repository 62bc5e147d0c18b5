"""Which functions make the stages of a discovery for each kind of network; the stages themselves are the same.

Fully connected networks: `curves`. Residual streams: `streams`. The order of the stages: `search`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from isthmus.discovery import curves, streams
from isthmus.discovery.ladder import spare_rank
from isthmus.discovery.problem import Problem
from isthmus.discovery.settings import NetworkKind, Settings
from isthmus.networks import FullyConnected, LeakyResNet, ResNet

Result = curves.Result
AnyNetwork = FullyConnected | LeakyResNet | ResNet


@dataclass(frozen=True, slots=True)
class Architecture:
    """The stages for one kind of network.

    Attributes:
        trained_start: one start, trained and measured.
        raised_start: a start that tries one rank more, or None where there is no linear run to add it to.
        spare_rank: rank to which a start is truncated at no cost, or None where that is not known beforehand.
        truncated: a start led through `rank` dimensions and polished.
        refined_halves: a truncated network whose halves are refined at a smaller ridge where that helps.
        network: what a start or a truncation ended with.
        refined_network: what `refined_halves` ended with.
        shown: which result `Discovery.network` is, from the starts and the truncations at the chosen ridge.
        middle: number of the hidden layer at which networks are cut.
    """

    trained_start: Callable[..., Result]
    raised_start: Callable[..., Result] | None
    spare_rank: Callable[[Problem, Settings, Result, int], int] | None
    truncated: Callable[..., Result]
    refined_halves: Callable[..., Result]
    network: Callable[[Problem, Settings, Result], AnyNetwork]
    refined_network: Callable[[Problem, Settings, Result], AnyNetwork]
    shown: Callable[[Sequence[Result], Mapping[int, Result], int], Result]
    middle: Callable[[Settings], int]


def architecture_of(settings: Settings) -> Architecture:
    """The stages for the network that the settings ask for."""
    return _CONNECTED if settings.network == NetworkKind.CONNECTED else _STREAM


def _connected_network(problem: Problem, settings: Settings, result: Result) -> FullyConnected:
    return curves.network_of(problem, settings, _theta(result))


def _narrow_network(problem: Problem, settings: Settings, result: Result) -> FullyConnected:
    return curves.narrow_network_of(problem, settings, _theta(result), result["rank"])


def _theta(result: Result) -> Tensor:
    return result["theta"]


def _nearest_rank(starts: Sequence[Result], curve: Mapping[int, Result], rank: int) -> Result:  # noqa: ARG001
    return curve[max((r for r in curve if r <= rank), default=min(curve))]  # that of the rank may have diverged


def _best_start(starts: Sequence[Result], curve: Mapping[int, Result], rank: int) -> Result:  # noqa: ARG001
    """The free network of least objective: its energies say what the waists do not force upon it."""
    return min(starts, key=lambda r: r["objective"])


_CONNECTED = Architecture(
    trained_start=curves.trained_start,
    raised_start=curves.raised_start,
    spare_rank=spare_rank,
    truncated=curves.truncated,
    refined_halves=curves.refined_halves,
    network=_connected_network,
    refined_network=_narrow_network,
    shown=_nearest_rank,
    middle=lambda settings: settings.relu_layers + 1,
)
_STREAM = Architecture(
    trained_start=streams.trained_start,
    raised_start=None,
    spare_rank=None,
    truncated=streams.truncated,
    refined_halves=streams.refined_halves,
    network=streams.network_of,
    refined_network=streams.network_of,
    shown=_best_start,
    middle=lambda settings: streams.waist_layer(settings) + 1,
)
