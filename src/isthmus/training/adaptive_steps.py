"""Steps of a leaky network that follow its training: long where the stream moves little (LEAKY-19).

Steps are never learned by gradient: the objective falls as steps exploit the error of Euler's method, which is no merit
of the function. The steps that a network starts with: `networks.leaky_steps`. The solver in between: `preconditioned`.
"""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.networks import LeakyResNet, walk
from isthmus.training.leaky_step import LeakyStep
from isthmus.training.preconditioned import PreconditionedLBFGS
from isthmus.training.solvers import State
from isthmus.training.steps import Step


@dataclass(frozen=True, slots=True)
class AdaptiveSteps:
    """Train and move the steps in turn, to the end at last; then again from there, until the steps fit the minimum.

    Steps that are even on the way are not at the end: layers of a network of 25 layers that moved alike within 5 %
    after short rounds differed by 25 % at the minimum, and its objective by 6e-4 from that of 100 equal layers, instead
    of 5e-5.

    Attributes:
        solver: runs in every round; the rounds before the last end early, at the first width of its smoothed relu.
        rounds: how often the steps are moved on the way, at most; fewer once they are even.
        final_rounds: how often they are moved at a minimum, at most, each time from it to the next one.
        damping: share d of the way, in logarithms, that a step goes at once; d / 2, d / 3, ... at later minima.
        largest: bound on rho Lt; long steps in a bottleneck are cut there.
        round_evaluations: gradient evaluations of a round on the way.
        even: steps stay where none would change by more than this factor against another one.
    """

    solver: PreconditionedLBFGS = field(default_factory=PreconditionedLBFGS)
    rounds: int = 6
    final_rounds: int = 6
    damping: float = 0.5
    largest: float = 0.9
    round_evaluations: int = 300
    even: float = 1.05

    def start(self, step: Step) -> State:
        """The state before the first iteration."""
        if not isinstance(step, LeakyStep):
            raise TypeError(
                f"AdaptiveSteps: needs a LeakyResNet, got {type(step.network).__name__}. Use another solver."
            )
        step.refresh()
        inner = self._solver(0, 0).start(step)
        state: State = {"done": False, "reason": "", "value": inner["value"], "evaluations": inner["evaluations"]}
        return state | {"round": 0, "spent": 0, "inner": inner}

    def advance(self, step: Step, state: State) -> None:
        """One iteration, in place."""
        assert isinstance(step, LeakyStep)
        inner: State = state["inner"]
        before = inner["evaluations"]
        self._solver(state["round"], state["spent"]).advance(step, inner)
        state["value"] = inner["value"]
        state["evaluations"] += inner["evaluations"] - before
        if inner["done"]:
            self._close_round(step, state)

    def iterations(self) -> int:
        """About how many gradient evaluations the phase takes, for time estimates."""
        return self.rounds * self.round_evaluations + self.solver.iterations()

    def _close_round(self, step: LeakyStep, state: State) -> None:
        reason, number = state["inner"]["reason"], state["round"]
        is_minimum = number >= self.rounds
        state["spent"] += state["inner"]["evaluations"] if is_minimum else 0
        is_over = (
            reason == "diverged" or number == self.rounds + self.final_rounds or (is_minimum and reason == "limit")
        )
        # ever smaller moves at minima: a layer beside those that are as long as they may be can go back and forth
        damping = self.damping / (1 + max(number - self.rounds, 0))
        moved = not is_over and self._move(step, damping)
        if is_over or (is_minimum and not moved):
            state["done"], state["reason"] = True, reason
            return
        state["round"] = number + 1 if moved else self.rounds
        state["inner"] = self._solver(state["round"], state["spent"]).start(step)
        state["evaluations"] += state["inner"]["evaluations"]

    def _solver(self, number: int, spent: int) -> PreconditionedLBFGS:
        """Of this round; from the first minimum on all rounds share the evaluations of `solver`."""
        if number < self.rounds:
            return replace(
                self.solver, smoothing=self.solver.smoothing[:1], evaluations=self.round_evaluations, tolerance=1e-2
            )
        return self.solver if number == self.rounds else self.solver.continued(spent)

    def _move(self, step: LeakyStep, damping: float) -> bool:
        """Move the steps once; False where they are even already, up to those that are as long as they may be."""
        network = step.network
        old, moves = network.steps.double(), relative_moves(network, step.x)
        largest = self.largest / network.effective_depth
        change = even_steps(old, moves, damping=1.0, largest=largest) / old
        if float(change.max()) <= self.even * float(change.min()):
            return False
        new = even_steps(old, moves, damping=damping, largest=largest)
        network.weights.copy_(resampled(network.weights, old, new))
        network.steps.copy_(new)
        step.refresh()
        return True


def relative_moves(network: LeakyResNet, x: Float[Tensor, "n d_in"]) -> Float[Tensor, " depth"]:
    """|A_l - A_{l-1}| / |A_l| of every layer, float64 (*exact*)."""
    with torch.no_grad():
        stream = [state.activation.double() for state in walk(network, x)[:-1]]
    sizes = torch.stack([torch.linalg.matrix_norm(a - b) for b, a in zip(stream[:-1], stream[1:], strict=True)])
    norms = torch.stack([torch.linalg.matrix_norm(a) for a in stream[1:]])
    tiny = torch.finfo(torch.float64).tiny
    return (sizes / norms.clamp_min(tiny)).clamp_min(1e-6)  # a layer that does not move at all: no infinite step


def even_steps(
    steps: Float[Tensor, " depth"], moves: Float[Tensor, " depth"], *, damping: float, largest: float
) -> Float[Tensor, " depth"]:
    """Steps nearer to those at which every layer would move equally far (*exact*).

        rho' ~ rho^(1 - d) (rho / c)^d,  c the relative move of the layer;   rho' <= largest,  sum 1

    Args:
        steps: rho_l > 0 with sum 1.
        moves: relative move of each layer, > 0.
        damping: d in (0, 1].
        largest: bound on a step, > 1 / depth.

    Raises:
        ValueError: a bound that no steps of sum 1 can meet.

    Source: 002, appendix A, damped. Test: LEAKY-19.
    """
    if not largest * len(steps) > 1:
        raise ValueError(
            f"even_steps(largest={largest:.3g}): needs more than 1 / depth = {1 / len(steps):.3g}, or the steps cannot "
            "sum to 1. Raise the depth of the network."
        )
    new = steps * moves**-damping
    new, is_cut = new / new.sum(), torch.zeros(len(new), dtype=torch.bool, device=new.device)
    while bool((new > largest)[~is_cut].any()):  # what is cut goes to the others, in proportion
        is_cut |= new > largest
        left = 1 - largest * int(is_cut.sum())
        new = torch.where(is_cut, torch.full_like(new, largest), new * (left / new[~is_cut].sum()))
    return new


def resampled(
    weights: Float[Tensor, "depth width p"], old: Float[Tensor, " depth"], new: Float[Tensor, " depth"]
) -> Float[Tensor, "depth width p"]:
    """Weights as a function of time, read at the mid-points of other steps."""
    return read_at(weights, old.cumsum(0) - old / 2, new.cumsum(0) - new / 2)


def read_at(
    weights: Float[Tensor, "depth width p"], before: Float[Tensor, " depth"], after: Float[Tensor, " new_depth"]
) -> Float[Tensor, "new_depth width p"]:
    """Weights known at increasing times `before`, read at other times: linear in between, constant outside."""
    right = torch.searchsorted(before, after).clamp(1, len(before) - 1) if len(before) > 1 else None
    if right is None:
        return weights.expand(len(after), -1, -1).clone()
    left = right - 1
    share = ((after - before[left]) / (before[right] - before[left])).clamp(0, 1).to(weights.dtype)[:, None, None]
    return (1 - share) * weights[left] + share * weights[right]
