"""What a discovery does with networks of any kind: trained starts, truncations to a rank, refined halves.

A kind says how its networks are made, started, led through few dimensions and measured: `connected`, `streams`. Which
minimum is computed when, and why: `search`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from isthmus.discovery.choices import GAIN
from isthmus.discovery.data.problem import HeldOutRises, Problem
from isthmus.discovery.minimum import Minimum, flat_parameters
from isthmus.discovery.settings import Settings, StartKind
from isthmus.discovery.work.unit import Session
from isthmus.networks import FullyConnected, reduced_jacobians
from isthmus.theory.spectra import spectral_gap_rank
from isthmus.theory.spread_rows import spread_rows
from isthmus.training import FitResult, Limits, Outcome, fit
from isthmus.training.losses.class_shares import ClassShares
from isthmus.training.solvers.looked_at import LookedAt
from isthmus.training.solvers.prospect import NONE_NEEDED, Prospect
from isthmus.training.solvers.solver import LBFGS, Adam, Solver

JACOBIAN_POINTS = 64
WARMER = 4  # a warm-up at another ridge, going on from one, takes a part of its steps
DESCENDED = "descended"  # kind of a minimum that was led down from one of more dimensions
UNREFINED = "unrefined"  # of halves that were left as they were cut, because refining lost more of held-out rows
N = TypeVar("N", bound=nn.Module)
M = TypeVar("M", bound=nn.Module)


class Family(ABC, Generic[N]):
    """The networks of one kind and size that a discovery trains on one problem.

    The functions that they compute through at most r dimensions are nested in r.

    Args:
        problem: the data.
        settings: sizes, budgets, seeds.
    """

    raises_ranks: ClassVar[bool]  # whether there is a run of layers that a rank can be added to

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self.problem, self.settings = problem, settings

    @classmethod
    @abstractmethod
    def adapted(cls, settings: Settings, depth: int | None) -> Settings:
        """The settings as the kind needs them, with so many layers if they were given."""

    @classmethod
    @abstractmethod
    def num_layers(cls, settings: Settings) -> int:
        """How many layers its networks have, for an estimate of their memory."""

    @property
    def most_rank(self) -> int:
        """The rank that no map of these inputs to these targets exceeds."""
        return self.settings.rank_kind.most(self.problem.most_in, self.problem.most_out)

    @property
    @abstractmethod
    def room(self) -> int:
        """The largest rank that networks of this size can show."""

    @property
    @abstractmethod
    def middle(self) -> int:
        """Number of the hidden layer at which they are cut."""

    @abstractmethod
    def new(self, *, seed: int) -> N:
        """An untrained network."""

    @abstractmethod
    def start_linear(self, network: N) -> None:
        """Turn random weights into the reduced-rank regression of the targets on the inputs, plus noise; in place."""

    @abstractmethod
    def warm_up(self, kind: StartKind) -> Adam:
        """The first part of the training of a start."""

    @abstractmethod
    def narrowed(self, network: N, rank: int) -> N:
        """A start led through `rank` dimensions in its middle; it may be the network itself, changed."""

    @abstractmethod
    def restored(self, narrow: N, network: N) -> N:
        """What `narrowed` made of a network, trained meanwhile, in the layout of a start."""

    @abstractmethod
    def halves_of(self, base: Minimum) -> N:
        """The network of a truncation, its two sides ready to be refined."""

    @abstractmethod
    def network_of(self, minimum: Minimum) -> N:
        """The network that a unit of work ended with."""

    @abstractmethod
    def shown(self, starts: Sequence[Minimum], curve: Mapping[int, Minimum], rank: int) -> Minimum:
        """Which of the starts and truncations at the chosen ridge `Discovery.network` is."""

    @abstractmethod
    def written(self, network: N) -> FullyConnected:
        """The same function as a fully connected network."""

    @abstractmethod
    def with_middle(self, minimum: Minimum, network: N) -> Minimum:
        """The minimum with what there is to say of the middle of its network: `activation_rank`, the waist."""

    @abstractmethod
    def spare_rank(self, base: Minimum, most: int) -> int:
        """Rank from `most` down to which a start is truncated at no cost; `most` where that is not known beforehand."""

    @abstractmethod
    def raised(self, session: Session, *, base: Minimum) -> Minimum:
        """A start that tried one rank more; itself where the objective is no lower, or `raises_ranks` is false."""

    def started(self, session: Session, *, ridge: float, number: int) -> Minimum:
        """Train start `number` at `ridge`."""
        network, kind = self._begun(number)
        solver = (self.warm_up(kind), LBFGS(self.settings.lbfgs_evaluations))
        end = self.trained(network, ridge, solver, session)
        return self.measured(network, end, ridge=ridge, start=number, kind=str(kind))

    def warmed_up(self, session: Session, *, ridge: float, number: int) -> Minimum:
        """The first part of the training of a start, which others at several ridges go on from."""
        network, kind = self._begun(number)
        end = self.trained(network, ridge, self.warm_up(kind), session)
        return self.measured(network, end, ridge=ridge, start=number, kind=str(kind))

    def gone_on(self, session: Session, *, base: Minimum, ridge: float) -> Minimum:
        """Go on from a warm-up: at its own ridge at once, at another after a shorter one there.

        At the ridge above the middle one, L-BFGS at once left 3 of 8 dimensions, after 100 steps of Adam 7; cold 5.
        """
        network, lbfgs = self.network_of(base), LBFGS(self.settings.handed_evaluations)
        warm = self.warm_up(StartKind(base.kind))
        solver = lbfgs if ridge == base.ridge else (replace(warm, steps=warm.steps // WARMER), lbfgs)
        end = self.trained(network, ridge, solver, session)
        found = self.measured(network, end, ridge=ridge, start=base.start, kind=base.kind)
        if ridge != base.ridge:
            return found
        gradients, seconds = found.gradient_evaluations + base.gradient_evaluations, found.seconds + base.seconds
        return replace(found, gradient_evaluations=gradients, seconds=seconds)  # of both parts, at the ridge of both

    def _begun(self, number: int) -> tuple[N, StartKind]:
        """The untrained network of a start."""
        kinds = self.settings.starts
        kind = StartKind(kinds[number]) if number < len(kinds) else StartKind.RANDOM
        network = self.new(seed=self.settings.seed_of(number))
        if kind is StartKind.LINEAR:
            self.start_linear(network)
        return network, kind

    def trained_on(self, session: Session, *, base: Minimum) -> Minimum:
        """Go on with a start from where it ended."""
        network = self.network_of(base)
        end = self.trained(network, base.ridge, LBFGS(self.settings.lbfgs_evaluations), session)
        return self.measured(network, end, ridge=base.ridge, start=base.start, kind=base.kind)

    def truncated(self, session: Session, *, base: Minimum, rank: int) -> Minimum:
        """Lead a trained start through `rank` dimensions and polish it at its ridge."""
        network = self.network_of(base)
        prospect = self.prospect(self.problem.objective(network, base.ridge))
        narrow = self.narrowed(network, rank)
        solver = LBFGS(self.settings.polish_evaluations, prospect=prospect)
        end = self.trained(narrow, base.ridge, solver, session)
        return self.measured(self.restored(narrow, network), end, ridge=base.ridge, rank=rank)

    @property
    def known_well(self) -> bool:
        """Whether enough tasks of known rank were searched with such networks to end trainings that change nothing."""
        return False

    def prospect(self, objective: float, *, goal: float = math.inf) -> Prospect:
        """What a training that begins at an objective must reach: a goal, and a fall that is read."""
        if not self.known_well:
            return NONE_NEEDED
        raised = self.problem.loss.compared.raised
        return Prospect(goal=goal, worth=objective - raised(objective, 1 - GAIN))

    def descended(self, session: Session, *, base: Minimum, rank: int) -> Minimum:
        """Lead a minimum of a dimension more through `rank` of them, and train long, so that these take over its part.

        Cut at once to few dimensions, a start rarely recovers: of a curved plane of 7 in 16 columns, training through 7
        ended at an objective of .072 from a cut of all 24, at .031 from 11 down one by one, as low as from the truth.
        """
        network = self.network_of(base)
        narrow = self.narrowed(network, rank)
        solver = (self.warm_up(StartKind.LINEAR), LBFGS(self.settings.descent_evaluations))
        end = self.trained(narrow, base.ridge, solver, session)
        return self.measured(self.restored(narrow, network), end, ridge=base.ridge, rank=rank, kind=DESCENDED)

    def refined(self, session: Session, *, base: Minimum) -> Minimum:
        """Refine both sides of a truncated network, see `refine`."""
        network = self.halves_of(base)
        began, end = flat_parameters(network), self.refine(network, base.ridge, session)
        if torch.equal(began, flat_parameters(network)):  # however the training ended that was undone
            end = replace(end, outcome=base.outcome)
            return self.measured(network, end, ridge=base.ridge, rank=base.rank, middle=1, kind=UNREFINED)
        return self.measured(network, end, ridge=base.ridge, rank=base.rank, middle=1)

    def refine(self, network: N, ridge: float, session: Session) -> FitResult:
        """Train at a ridge smaller than this one, in place; back to where it began if the held-out error rose.

        Few or noisy rows are fitted too closely at the smaller ridge, which shows early. The result is of the training.
        """
        began, error = flat_parameters(network), self.problem.heldout_error(network)
        solver: Solver = LBFGS(self.settings.refine_evaluations)
        if self.known_well:
            solver = LookedAt(solver, self.settings.refine_evaluations // 3, HeldOutRises(self.problem, error))
        end = self.trained(network, ridge * self.settings.refine_ridge, solver, session)
        if not self.problem.heldout_error(network) <= error:
            fill(network, began)
        return end

    def half_of_rows(self, number: int) -> Tensor:
        """Numbers of a random half of the training rows, ascending; of rows that belong together all or none."""
        together, drawn = self.problem.together, torch.Generator().manual_seed(self.settings.seed_of(number))
        if together is None:
            count = len(self.problem.x)
            return torch.randperm(count, generator=drawn)[: count // 2].sort().values
        labels = np.unique(together)
        half = labels[torch.randperm(len(labels), generator=drawn)[: max(len(labels) // 2, 1)].numpy()]
        return torch.from_numpy(np.flatnonzero(np.isin(together, half)))

    def on_half(self, session: Session, *, base: Minimum, number: int) -> Minimum:
        """A refined network trained on with a random half of the training rows, see `refine`."""
        network, half = (
            self.network_of(base),
            type(self)(self.problem.at_rows(self.half_of_rows(number)), self.settings),
        )
        solver = LBFGS(self.settings.refine_evaluations)
        end = half.trained(network, base.ridge * self.settings.refine_ridge, solver, session)
        return self.measured(network, end, ridge=base.ridge, rank=base.rank, middle=1)

    def on_all_rows(self, session: Session, *, base: Minimum) -> Minimum:
        """A refined network trained on with the held-out rows too, at the ridge at which refining left it.

        Args:
            session: where it runs.
            base: the refined network.

        Returns:
            The network; of the held-out rows nothing is known any more.
        """
        network = self.network_of(base)
        ridge = base.ridge * (1.0 if base.kind == UNREFINED else self.settings.refine_ridge)
        whole = type(self)(self.problem.on_all_rows(), self.settings)
        end = whole.trained(network, ridge, LBFGS(self.settings.refine_evaluations), session)
        minimum = whole.measured(network, end, ridge=base.ridge, rank=base.rank, middle=1)
        return replace(minimum, heldout_error=math.nan, heldout_accuracy=None)

    def trained(
        self,
        network: nn.Module,
        ridge: float,
        solver: Solver | tuple[Solver, ...],
        session: Session,
        *,
        told: Tensor | None = None,
    ) -> FitResult:
        """Train a network on the problem, or on shares of classes told of its rows, in place: what every unit does."""
        problem = self.problem
        y, loss = (problem.y, problem.loss) if told is None else (told, ClassShares())
        return fit(
            network, problem.x, y, ridge=ridge, loss=loss, solver=solver, sample_weight=problem.weight,
            limits=Limits(seconds=session.seconds), checkpoint=session.checkpoint, callback=session.hear,
            device=session.device,
        )  # fmt: skip

    def measured(self, network: N, end: FitResult, *, ridge: float, **origin: Any) -> Minimum:
        """The numbers of a trained network that the decision needs, with its parameters."""
        problem = self.problem
        spectrum = self.settings.rank_kind.spectrum(spread_jacobians(self.written(network), problem.x))
        minimum = Minimum(
            objective=end.objective,
            theta=flat_parameters(network),
            ridge=ridge,
            data_loss=end.data_loss,
            penalty=end.penalty,
            stationarity=end.stationarity,
            outcome=end.outcome,
            gradient_evaluations=end.gradient_evaluations,
            seconds=end.seconds,
            train_error=problem.train_error(network),
            heldout_error=problem.heldout_error(network),
            heldout_accuracy=problem.heldout_accuracy(network) if problem.classes else None,
            jacobian_spectrum=tuple(spectrum.tolist()),
            jacobian_rank=0 if end.outcome is Outcome.COLLAPSED else int(spectral_gap_rank(spectrum)),
            **origin,
        )
        return self.with_middle(minimum, network)


def spread_jacobians(network: FullyConnected, x: Tensor) -> Tensor:
    """The network's Jacobians at spread data points, in float64, up to orthonormal maps of many inputs and outputs."""
    points = x[spread_rows(len(x), JACOBIAN_POINTS)]
    exact = network.rewritten(*network.written_layers()).double()
    return reduced_jacobians(exact, points.double()).values


def fill(network: M, theta: Tensor) -> M:
    """Make `theta`, in the order of `network.parameters()`, its parameters; the network itself."""
    # a copy: vector_to_parameters makes views, and units that run side by side share `theta`
    torch.nn.utils.vector_to_parameters(theta.clone(), network.parameters())
    return network
