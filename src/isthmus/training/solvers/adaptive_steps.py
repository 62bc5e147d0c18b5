"""Steps of a leaky network that follow its training: long where the stream moves little (LEAKY-19).

Steps are never learned by gradient: the objective falls as steps exploit the error of Euler's method, which is no merit
of the function. The steps that a network starts with: `networks.leaky_steps`. The solver in between: `preconditioned`.
"""

import math
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.networks import LeakyResNet, walk
from isthmus.training.fit_result import StopReason
from isthmus.training.solvers.preconditioned import PreconditionedLBFGS
from isthmus.training.solvers.solver import State, end
from isthmus.training.steps.leaky_step import leaky_network
from isthmus.training.steps.step import Step

_UNMOVED: State = {"spent": 0, "minimum": None, "uneven": math.inf, "shrunk": 1.0}  # before the first minimum


@dataclass(frozen=True, slots=True)
class AdaptiveSteps:
    """Train and move the steps in turn, to a minimum at last; then from there to the next, until the steps fit it.

    Steps that are even on the way are not at the end: layers of a network of 25 layers that moved alike within 5 %
    after short rounds differed by 25 % at the minimum, and its objective by 6e-4 from that of 100 equal layers, instead
    of 8e-5. Where evaluations or time end between two minima, or a round diverges there, the last minimum is kept.

    Attributes:
        solver: runs in every round; those on the way end early, at the first width of its smoothed relu. All rounds at
            minima share its evaluations.
        rounds: how often the steps are moved on the way, at most; fewer once they are even.
        final_rounds: how often they are moved at a minimum, at most: a network may end uneven.
        damping: share d of the way, in logarithms, that a step goes at once; halved at minima where the last move left
            the layers no more even.
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
        """The state before the first iteration.

        Raises:
            ValueError: too few layers for steps within `largest`.
        """
        network = leaky_network(step.network, "AdaptiveSteps")
        depth, Lt = network.depth, network.effective_depth
        if depth > 1 and not self.largest * depth > Lt:
            raise ValueError(
                f"AdaptiveSteps(largest={self.largest:g}): {depth} steps of rho Lt <= {self.largest:g} cannot add up "
                f"to Lt = {Lt:g}. Take more than {Lt / self.largest:.3g} layers, or steps that stay as they are."
            )
        step.refresh()
        inner = self._solver(0, 0).start(step)
        state: State = {"done": False, "reason": "", "value": inner["value"], "evaluations": inner["evaluations"]}
        return state | {"round": 0, "inner": inner} | _UNMOVED

    def advance(self, step: Step, state: State) -> None:
        """One iteration, in place."""
        inner: State = state["inner"]
        before = inner["evaluations"]
        self._solver(state["round"], state.get("spent", 0)).advance(step, inner)
        state["value"] = inner["value"]
        state["evaluations"] += inner["evaluations"] - before
        if inner["done"]:
            self._close_round(step, _UNMOVED | state, state)

    def iterations(self) -> int:
        """About how many gradient evaluations the phase takes, for time estimates."""
        return self.rounds * self.round_evaluations + self.solver.iterations()

    def settle(self, step: Step, state: State) -> None:
        """Put the last minimum back, if there was one: what came after it is not trained. Else leave the last width."""
        self.solver.settle(step, state["inner"])
        if minimum := state.get("minimum"):
            network = leaky_network(step.network, "AdaptiveSteps")
            step.theta.copy_(minimum["theta"])
            network.steps.copy_(minimum["steps"])
            network.smoothing.copy_(minimum["smoothing"])
            step.refresh()

    def _close_round(self, step: Step, known: State, state: State) -> None:
        """Move on to the next round, or end; `known` is the state with what one of an older version lacks."""
        network = leaky_network(step.network, "AdaptiveSteps")
        ending, number = StopReason(state["inner"]["reason"]), state["round"]
        if number < self.rounds:
            if ending is StopReason.DIVERGED:
                end(state, ending)
                return
            following = number + 1 if self._move(step, self.damping) else self.rounds
        else:
            following = number + 1
            state["spent"] = known["spent"] + state["inner"]["evaluations"]
            if ending in {StopReason.LIMIT, StopReason.DIVERGED}:
                minimum = known["minimum"]
                self.settle(step, known)
                end(state, StopReason(minimum["reason"]) if minimum else ending)
                state["value"] = minimum["value"] if minimum else state["value"]
                return
            state["minimum"] = {
                "theta": step.theta.clone(), "steps": network.steps.clone(), "value": state["value"],
                "smoothing": network.smoothing.clone(), "reason": ending.value,
            }  # fmt: skip
            # a layer beside those that are as long as they may be can go back and forth
            uneven = self.unevenness(network, step.x, at_once=step.at_once)
            state["shrunk"] = known["shrunk"] / (2 if uneven >= known["uneven"] else 1)
            state["uneven"] = uneven
            is_last = number == self.rounds + self.final_rounds or state["spent"] >= self.solver.evaluations
            if is_last or not self._move(step, self.damping * state["shrunk"]):
                end(state, ending)
                return
        state["round"] = following
        state["inner"] = self._solver(following, state.get("spent", 0)).start(step)
        state["evaluations"] += state["inner"]["evaluations"]

    def _solver(self, number: int, spent: int) -> PreconditionedLBFGS:
        """Of this round; from the first minimum on all rounds share the evaluations of `solver`."""
        if number < self.rounds:
            return replace(
                self.solver, smoothing=self.solver.smoothing[:1], evaluations=self.round_evaluations, tolerance=1e-2
            )
        return self.solver if number == self.rounds else self.solver.continued(spent)

    def unevenness(self, network: LeakyResNet, x: Float[Tensor, "n d_in"], *, at_once: int | None = None) -> float:
        """By what factor one step would change against another one, were all layers to move alike; 1 for one layer.

        Steps that are as long as they may be, and would have to be longer, do not count.
        """
        if network.depth == 1:
            return 1.0
        old, largest = network.steps.double(), self.largest / network.effective_depth
        change = even_steps(old, relative_moves(network, x, at_once=at_once), damping=1.0, largest=largest) / old
        return float(change.max() / change.min())

    def _move(self, step: Step, damping: float) -> bool:
        """Move the steps once; False where they are even already."""
        network = leaky_network(step.network, "AdaptiveSteps")
        if self.unevenness(network, step.x, at_once=step.at_once) <= self.even:
            return False
        old, moves = network.steps.double(), relative_moves(network, step.x, at_once=step.at_once)
        new = even_steps(old, moves, damping=damping, largest=self.largest / network.effective_depth)
        network.weights.copy_(resampled(network.weights, old, new))
        network.steps.copy_(new)
        step.refresh()
        return True


def relative_moves(
    network: LeakyResNet, x: Float[Tensor, "n d_in"], *, at_once: int | None = None
) -> Float[Tensor, " depth"]:
    """|A_l - A_{l-1}| / |A_l| of every layer, float64 (*exact*), of so many rows at once."""
    runs: list[Tensor] = []
    for rows in x.split(at_once or len(x)):
        with torch.no_grad():
            stream = [state.activation.double() for state in walk(network, rows)[:-1]]
        pairs = zip(stream[:-1], stream[1:], strict=True)
        runs.append(
            torch.stack([torch.stack([torch.linalg.matrix_norm(a - b), torch.linalg.matrix_norm(a)]) for b, a in pairs])
        )
    sizes, norms = (torch.linalg.vector_norm(torch.stack(runs), dim=0) if len(runs) > 1 else runs[0]).unbind(1)
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

    Source: Jacot and Kaiser 2024, section 3, damped. Test: LEAKY-19.
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
