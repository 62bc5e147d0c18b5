"""Residual networks in a discovery: a stream that is led through r dimensions in its middle layer.

The stream of a trained start is led through its r leading principal directions and trained on; the classes are nested
in r, as those of rank-r matrices are. What is done with it: `family`. Fully connected networks: `connected`.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from isthmus.discovery.factors import principal_axes
from isthmus.discovery.kinds.connected import LINEAR_START_NOISE, reduced_rank_map, regression_target
from isthmus.discovery.kinds.family import Family, fill
from isthmus.discovery.minimum import Minimum, least
from isthmus.discovery.settings import Settings, StartKind
from isthmus.discovery.work.unit import Session
from isthmus.networks import FullyConnected, Waist
from isthmus.networks.kinds import kind_named
from isthmus.networks.residual_rewriting import as_fully_connected
from isthmus.networks.residual_stream import ResidualStream
from isthmus.training.solvers.solver import Adam

EVALUATIONS = 400  # of Adam, then of L-BFGS, in each start
VISIBLE = 0.1  # share of the largest singular value of the middle stream above which a direction counts


class Streams(Family[ResidualStream]):
    """`Family` of residual networks with learned maps at both ends."""

    raises_ranks: ClassVar[bool] = False
    rate: ClassVar[float]  # of Adam from random weights; a linear start takes a third

    @classmethod
    def adapted(cls, settings: Settings, depth: int | None) -> Settings:
        """Longer trainings of each start."""
        layers = settings.stream_layers if depth is None else depth
        return replace(settings, adam_steps=EVALUATIONS, lbfgs_evaluations=EVALUATIONS, stream_layers=layers)

    @classmethod
    def num_layers(cls, settings: Settings) -> int:
        """Layers or blocks of the stream."""
        return settings.stream_layers

    @property
    def room(self) -> int:
        """As much as their data are wide."""
        return self.settings.widest

    @property
    def middle(self) -> int:
        """The number among linear layers, the input map counted, of that behind which the waist stands."""
        return self.waist_layer + 1

    @property
    def waist_layer(self) -> int:
        """The middle layer of the stream."""
        return self.settings.stream_layers // 2

    @property
    def width(self) -> int:
        """Room for the data, and for the positive and the negative part of a linear start."""
        return max(self.settings.stream_width, self.problem.d_in, self.problem.d_out)

    @property
    @abstractmethod
    def arguments(self) -> Mapping[str, object]:
        """What the kind takes besides sizes and seed."""

    def new(self, *, seed: int) -> ResidualStream:
        """Of the depth of the settings, in float32."""
        network = kind_named(self.settings.network).made(
            self.problem.d_in, self.problem.d_out, width=self.width, depth=self.settings.stream_layers, seed=seed,
            dtype=torch.float32, **self.arguments,
        )  # fmt: skip
        assert isinstance(network, ResidualStream)
        return network

    @abstractmethod
    def carry(self, network: ResidualStream, encoder: Tensor, decoder: Tensor) -> None:
        """Add a linear map through m coordinates to weights near zero, in place: encoder (m, d_in), decoder (d_out, m).

        Of more coordinates than the stream can carry the first are taken.
        """

    def start_linear(self, network: ResidualStream) -> None:
        """C V^T of y ~ x C V^T, through coordinates that the stream carries."""
        x = self.problem.x
        coordinates, back = reduced_rank_map(x, regression_target(self.problem))
        with torch.no_grad():
            network.embedding.mul_(LINEAR_START_NOISE)
            network.unembedding.mul_(LINEAR_START_NOISE)
            self.carry(network, coordinates.T.to(x.dtype), back.to(x.dtype))

    def warm_up(self, kind: StartKind) -> Adam:
        """Adam at the rate of the kind."""
        return Adam(self.settings.adam_steps, self.rate / 3 if kind is StartKind.LINEAR else self.rate)

    def narrowed(self, network: ResidualStream, rank: int) -> ResidualStream:
        """A waist through the leading principal directions of the middle stream, with its mean; in place."""
        stream = self._middle_stream(network)
        mean = stream.mean(0)
        network.narrow(Waist(self.waist_layer, principal_axes(stream - mean, rank), mean))
        return network

    def restored(self, narrow: ResidualStream, network: ResidualStream) -> ResidualStream:  # noqa: ARG002 - they are the same
        """The waist stays."""
        return narrow

    def halves_of(self, base: Minimum) -> ResidualStream:
        """Both sides of the waist as they are."""
        return self.network_of(base)

    def network_of(self, minimum: Minimum) -> ResidualStream:
        """Its waist included."""
        network = fill(self.new(seed=0), minimum.theta)
        if minimum.waist_axes is not None and minimum.waist_mean is not None:
            network.narrow(Waist(self.waist_layer, minimum.waist_axes, minimum.waist_mean))
        return network

    def shown(self, starts: Sequence[Minimum], curve: Mapping[int, Minimum], rank: int) -> Minimum:  # noqa: ARG002
        """The free network of least objective: its energies say what the waists do not force upon it."""
        return least(starts)

    def written(self, network: ResidualStream) -> FullyConnected:
        """The stream as layers of neurons."""
        return as_fully_connected(network)

    def with_middle(self, minimum: Minimum, network: ResidualStream) -> Minimum:
        """Its visible rank and its waist."""
        minimum = replace(minimum, activation_rank=self.visible_rank(network))
        if (waist := network.waist) is None:
            return minimum
        axes = torch.linalg.eigh(waist.projection.double()).eigenvectors[:, -waist.rank :]
        return replace(minimum, waist_rank=waist.rank, waist_axes=axes, waist_mean=waist.offset.double())

    def visible_rank(self, network: ResidualStream) -> int:
        """Number of principal directions of the middle stream that stand out (*estimate*)."""
        stream = self._middle_stream(network)
        if not bool(torch.isfinite(stream).all()):
            return 0  # diverged: there is no stream whose rank could be read
        s = torch.linalg.svdvals(stream - stream.mean(0))
        return int((s > VISIBLE * s[0]).sum()) if float(s[0]) > 0 else 0

    def _middle_stream(self, network: ResidualStream) -> Tensor:
        with torch.no_grad():
            return network.stream(self.problem.x, self.waist_layer).double()

    def spare_rank(self, base: Minimum, most: int) -> int:  # noqa: ARG002
        """Not known beforehand."""
        return most

    def raised(self, session: Session, *, base: Minimum) -> Minimum:  # noqa: ARG002
        """Itself: a stream has all its ranks."""
        return base


class LeakyStreams(Streams):
    """`LeakyResNet`s that step exponentially, so that any depth goes."""

    rate: ClassVar[float] = 2e-2  # leaky weights are Lt times as large as those of a ResNet

    @property
    def arguments(self) -> Mapping[str, object]:
        """Learned maps, and the leak of the settings."""
        return {"effective_depth": self.settings.effective_depth, "maps": "learned", "scheme": "exponential"}

    def carry(self, network: ResidualStream, encoder: Tensor, decoder: Tensor) -> None:
        """The positive and the negative part of each coordinate, which identities keep alive."""
        m = min(network.width // 2, len(encoder))
        for sign, rows in ((1, slice(m)), (-1, slice(m, 2 * m))):
            network.embedding[rows] += sign * encoder[:m]
            network.unembedding[:, rows] += sign * decoder[:, :m]


class PlainStreams(Streams):
    """Any other residual network: its blocks add to the stream, and near zero they leave it as it is."""

    rate: ClassVar[float] = 3e-3

    @property
    def arguments(self) -> Mapping[str, object]:
        """Of a ResNet one matrix in each block; of others what is usual."""
        return {"block_depth": 1} if self.settings.network == "resnet" else {}

    def carry(self, network: ResidualStream, encoder: Tensor, decoder: Tensor) -> None:
        """Each coordinate as it is, through blocks near zero."""
        m = min(network.width, len(encoder))
        network.embedding[:m] += encoder[:m]
        network.unembedding[:, :m] += decoder[:, :m]
        ends = {id(network.embedding), id(network.unembedding)}
        for parameter in network.parameters():
            if parameter.ndim > 1 and id(parameter) not in ends:
                parameter.mul_(LINEAR_START_NOISE)
