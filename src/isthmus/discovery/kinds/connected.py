"""Fully connected networks in a discovery: an encoder, linear layers, a decoder.

The linear run plays the near-identity middle of a very deep network: its cost is a Schatten quasi-norm, it trains in
seconds, and it factors exactly. What is done with it: `family`. Residual networks: `streams`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from isthmus.discovery.choices import FREE
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.data.scaling import COLLINEAR
from isthmus.discovery.factorisation import cut_network, joined
from isthmus.discovery.halves import RANK
from isthmus.discovery.kinds.family import Family, fill
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.settings import Settings, StartKind
from isthmus.discovery.work.unit import Session
from isthmus.networks import FullyConnected
from isthmus.networks.folding import merge_linear_runs
from isthmus.networks.layer_widths import narrow_linear_run, widen_linear_run
from isthmus.training.moves import middle_rank, rebalancing, truncate_middle
from isthmus.training.solvers.rank_raising import raise_rank
from isthmus.training.solvers.solver import LBFGS, Adam, Decay
from isthmus.training.solvers.trials import RankTrials

RATE = 3e-3  # of Adam from random weights; a linear start takes a third
FAST_RATE = 1e-2  # of networks that are trained to predict, after a slow beginning
MOVE_EVERY = 20
LINEAR_START_NOISE = 0.05  # share of the random weights left in a linear start, so that the ReLU layers can bend


class Connected(Family[FullyConnected]):
    """`Family` of `FullyConnected` networks with a run of linear layers between two halves."""

    raises_ranks: ClassVar[bool] = True

    @classmethod
    def adapted(cls, settings: Settings, depth: int | None) -> Settings:
        """As many linear layers as the depth leaves."""
        if depth is None:
            return settings
        return replace(settings, linear_layers=depth - settings.depth + settings.linear_layers)

    @classmethod
    def num_layers(cls, settings: Settings) -> int:
        """Weight matrices."""
        return settings.depth

    @property
    def room(self) -> int:
        """The width of the linear layers."""
        return self.settings.linear_width

    @property
    def middle(self) -> int:
        """The first linear layer."""
        return self.settings.encoder.layers + 1

    def new(self, *, seed: int) -> FullyConnected:
        """Random weights in all layers."""
        return self.of_middle([self.settings.linear_width] * self.settings.linear_layers, seed=seed)

    def narrow(self, rank: int, *, middle: int, seed: int = 0) -> FullyConnected:
        """A middle of `rank` neurons in each of its layers, with identities between them."""
        network = self.of_middle([rank] * middle, seed=seed)
        first = self.middle
        with torch.no_grad():
            for weight in network.weights[first : first + middle - 1]:
                weight.copy_(torch.eye(rank))
        return network

    def of_middle(self, widths: Sequence[int], *, seed: int) -> FullyConnected:
        """A network whose linear layers have these widths."""
        before, after = self.settings.encoder.widths, self.settings.decoder.widths
        linear = range(len(before) + 1, len(before) + len(widths) + 1)
        layers = [*before, *widths, *after]
        d_in, d_out = self.problem.d_in, self.problem.d_out
        return FullyConnected(
            d_in, d_out, width=layers, depth=len(layers) + 1, linear=linear, seed=seed, dtype=torch.float32
        )

    def through(self, session: Session, *, ridge: float, rank: int, number: int, told: Tensor | None = None) -> Minimum:
        """Train a network of `rank` middle neurons from random weights: for what it predicts, not for its objective.

        Args:
            session: where it runs.
            ridge: of its penalty.
            rank: its dimensions.
            number: of the start.
            told: what other networks say of the training rows, shares of classes (n, classes); None: their classes.
        """
        network = self.of_middle([rank], seed=self.settings.seed_of(number))
        slow, steps = Adam(self.settings.linear_steps // 8, RATE, decay_from=1.0), self.settings.linear_steps
        adam = Adam(steps, FAST_RATE, decay_from=0.0, decay=Decay.COSINE)  # at once, it would leave neurons dead
        end = self.trained(network, ridge, (slow, adam), session, told=told)
        return self.measured(network, end, ridge=ridge, start=number, rank=rank, middle=1)

    def start_linear(self, network: FullyConnected) -> None:
        """B = C V^T of y ~ x B, from the SVD of the fitted values: C^T in the encoder, identities, V in the decoder."""
        s, x = self.settings, self.problem.x
        coordinates, back = reduced_rank_map(x, regression_target(self.problem))
        room = [s.linear_width, coordinates.shape[1], s.encoder.carries(), s.decoder.carries()]
        m = min(size for size in room if size is not None)
        c, v = coordinates[:, :m].to(x.dtype), back[:, :m].to(x.dtype)
        eye = torch.eye(m, dtype=x.dtype)
        first, last = s.encoder.layers, s.encoder.layers + s.linear_layers
        with torch.no_grad():
            w = [weight.mul_(LINEAR_START_NOISE) for weight in network.weights]
            s.encoder.add_linear_map(w[: first + 1], c.T, eye)
            for weight in w[first + 1 : last]:
                weight[:m, :m] += eye
            s.decoder.add_linear_map([w[last][:, :m], *w[last + 1 :]], eye, v)

    def warm_up(self, kind: StartKind) -> Adam:
        """Adam with rebalancing in between."""
        if kind is StartKind.LINEAR:
            # begun too early, L-BFGS leaves it with one or two dimensions at a large ridge
            return self.adam(self.settings.linear_steps, RATE / 3)
        return self.adam(self.settings.adam_steps, RATE)

    @staticmethod
    def adam(steps: int, rate: float) -> Adam:
        """Adam as networks of this kind take it."""
        return Adam(steps, rate, moves=(rebalancing,), move_every=MOVE_EVERY)

    def narrowed(self, network: FullyConnected, rank: int) -> FullyConnected:
        """Middle matrices truncated to the rank, written in as many neurons."""
        truncate_middle(network, rank)
        # a fifth fewer products, and biases cannot add a direction
        return narrow_linear_run(network, rank)

    def restored(self, narrow: FullyConnected, network: FullyConnected) -> FullyConnected:
        """The wide network with the narrow one's weights in its first neurons."""
        widen_linear_run(narrow, network)
        return network

    def halves_of(self, base: Minimum) -> FullyConnected:
        """One linear hidden layer of as many neurons as the rank where the middle was."""
        return self.cut_to(self.network_of(base), base.dimensions)

    def cut_to(self, network: FullyConnected, rank: int) -> FullyConnected:
        """The network with one linear hidden layer of `rank` neurons where its middle was."""
        halves = cut_network(network, self.problem.x, rank, layer=self.middle)
        merged = merge_linear_runs(halves.decoder)
        return joined(halves.encoder, merged, dtype=network.weights[0].dtype)

    def network_of(self, minimum: Minimum) -> FullyConnected:
        """In the widths of the settings, or with a middle as narrow as its rank."""
        if minimum.middle is None:
            return fill(self.new(seed=0), minimum.theta)
        return fill(self.narrow(minimum.dimensions, middle=minimum.middle), minimum.theta)

    def shown(self, starts: Sequence[Minimum], curve: Mapping[int, Minimum], rank: int) -> Minimum:  # noqa: ARG002
        """The truncation of the rank, or of the next lower one that did not diverge."""
        return curve[max((r for r in curve if r <= rank), default=min(curve))]

    def written(self, network: FullyConnected) -> FullyConnected:
        """It is one."""
        return network

    def with_middle(self, minimum: Minimum, network: FullyConnected) -> Minimum:
        """The rank of its middle matrices."""
        return replace(minimum, activation_rank=middle_rank(network))

    @property
    def known_well(self) -> bool:
        """Of regressions by squared error with curved halves.

        Weak combinations of linear halves show late; an arc that is autoencoded is unrolled after its objective has
        stood still; counts of rank 2 read 3, in doubt; of other losses, and of classes, nothing was measured.
        """
        problem = self.problem
        return self.settings.rank_kind is RANK and problem.loss.is_quadratic and not problem.autoencoding

    def spare_rank(self, base: Minimum, most: int) -> int:
        """Least rank, at most `most`, to which a start is truncated without a rise of its objective, by bisection."""
        allowed = self.problem.loss.compared.raised(base.objective, 1 + FREE)
        short, enough = 0, most
        while enough - short > 1:
            rank = (short + enough) // 2
            network = self.network_of(base)
            truncate_middle(network, rank)
            if self.problem.objective(network, base.ridge) <= allowed:
                enough = rank
            else:
                short = rank
        return enough

    def raised(self, session: Session, *, base: Minimum) -> Minimum:
        """One rank more is tried from a trained start, at its ridge."""
        network = self.network_of(base)
        polish = LBFGS(self.settings.raise_evaluations, prospect=self.prospect(base.objective, goal=base.objective))
        solver = RankTrials(polish, most=1, attempt=raise_rank)
        end = self.trained(network, base.ridge, solver, session)
        return self.measured(network, end, ridge=base.ridge, start=base.start, kind=str(StartKind.RAISED))


def reduced_rank_map(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """(C, V) in float64 with the best rank-m linear predictor x C[:, :m] V[:, :m]^T for every m (least squares).

    Directions of the fitted values beyond rounding are left out. PCA where y is x.
    """
    x, y = x.double(), y.double()
    # float32 inputs that are collinear but for rounding (0/1 columns of one category, a sum of columns) have singular
    # values of 1e-7: without the cut their coefficients are 1e5 and the start is useless
    fitted_map = torch.linalg.lstsq(x, y, rcond=COLLINEAR, driver="gelsd").solution
    _, s, vh = torch.linalg.svd(x @ fitted_map, full_matrices=False)
    keep = int((s > 1e-9 * s[0]).sum()) if float(s[0]) > 0 else 0
    v = vh[:keep].T
    return fitted_map @ v, v


def regression_target(problem: Problem) -> Tensor:
    """What a linear start, which has no bias, regresses on: outputs that stand for the targets, centred."""
    scores = problem.loss.scores(problem.y, problem.d_out)
    return scores if problem.loss.standardised else scores - scores.mean(0)
