"""The greedy search of a compression: what saves most first, kept while the error stays allowed.

The sites: `sites`. The moves: `compression_moves`, `exact_moves`. The public function: `compression`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from isthmus.discovery.chains.compression_moves import plan
from isthmus.discovery.chains.exact_moves import stretches, without_redundant_neurons
from isthmus.discovery.chains.rows import batches, enough
from isthmus.discovery.chains.sites import MovePlan, Site, SiteKind, sites
from isthmus.networks.chain import run
from isthmus.networks.copies import on_copy
from isthmus.networks.stage_kinds import ResidualSum, Stage, inner_chains, with_inner_chain

# shares of the tolerance spent one after the other: at the full one at once, the first layer takes it all
BUDGETS = (0.25, 0.5, 0.8, 1.0)
EXACT = "dead, constant or parallel neurons removed"


@dataclass(frozen=True, slots=True)
class Change:
    """One move that was kept.

    Attributes:
        what: the move in words.
        layers: names of the first and the last layer it touched.
        parameters: number of parameters it saved.
        relative_error: of the network after it: of what a search keeps, the bound that its samples give; of what
            `compress` returns, that on the samples that report.
    """

    what: str
    layers: tuple[str, str]
    parameters: int
    relative_error: float


@dataclass(slots=True, eq=False)
class CompressionSearch:
    """A chain on its way down.

    Attributes:
        stages: the steps now.
        fitting: samples that the moves are fitted on.
        error: of a chain of steps, on the samples that choose; a bound on that of others.
        tolerance: the largest error allowed.
        changes: what was done, in order.
        history: the steps after each change, those of the beginning first.
        refused: site -> the error of the least saving there, where that was too much.
    """

    stages: list[Stage]
    fitting: Tensor
    error: Callable[[Sequence[Stage]], float]
    tolerance: float
    changes: list[Change] = field(default_factory=list[Change])
    history: list[list[Stage]] = field(default_factory=list[list[Stage]])
    refused: dict[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        self.history.append(self.stages)

    def run(self) -> None:
        """Exact moves, then all others in rounds of rising allowance."""
        for budget in (share * self.tolerance for share in BUDGETS):
            self.go_down(budget)

    def go_down(self, budget: float) -> None:
        """All moves that keep to the budget, then those in the branches of residual sums."""
        self._remove_redundant(budget)
        self.refused.clear()
        while self._best_move(budget):
            pass
        for place, stage in enumerate(self.stages):  # moves inside a step leave the places of the others
            chains, spent = inner_chains(stage), self.changes[-1].relative_error if self.changes else 0.0
            free = max(budget**2 - spent**2, 0.0)
            shares = [(spent**2 + free * number / len(chains)) ** 0.5 for number in range(1, len(chains))]
            for path, share in zip(chains, [*shares, budget], strict=False):  # squared errors add up
                self._go_down_inside(place, path, share)
            for path in [*chains][:-1]:  # what some have left
                self._go_down_inside(place, path, budget)

    def _go_down_inside(self, place: int, path: str, budget: float) -> None:
        """A search of its own in a chain inside step `place`: it sees what enters it; the whole network judges."""
        stage = self.stages[place]

        def around(steps: Sequence[Stage]) -> list[Stage]:
            return _replaced(self.stages, (place, place), [with_inner_chain(stage, path, steps)])

        x = stream_at(self.stages[:place], self.fitting)
        inner = CompressionSearch(
            inner_chains(stage)[path], entering(stage, path, x), lambda new: self.error(around(new)), self.tolerance
        )
        inner.go_down(budget)
        for change, new in zip(inner.changes, inner.history[1:], strict=True):
            self.changes.append(change)
            self.history.append(around(new))
        self.stages = self.history[-1]
        self.refused |= inner.refused

    def _remove_redundant(self, budget: float) -> None:
        for index in range(len(stretches(self.stages))):
            span = stretches(self.stages)[index]  # the number of stretches stays, their places do not
            trial = _replaced(self.stages, span, without_redundant_neurons(self.stages, span, self.fitting))
            if parameters(trial) < parameters(self.stages) and (error := self.error(trial)) <= budget:
                self._keep(trial, EXACT, span, error)

    def _best_move(self, budget: float) -> bool:
        """Make the move that saves most within the budget; whether there was one."""
        best: tuple[int, float, list[Stage], Site] | None = None
        for site in sorted(sites(self.stages), key=self._most_saving, reverse=True):
            key = site_name(self.stages, site)
            if key in self.refused or (best is not None and self._most_saving(site) <= best[0]):
                continue
            found = self._smallest(site, budget, key)
            if found is not None and (best is None or found[0] > best[0]):
                best = (*found, site)
        if best is None:
            return False
        _, error, trial, site = best
        self._keep(trial, site.kind.value, (site.first, site.last), error)
        return True

    def _smallest(self, site: Site, budget: float, key: str) -> tuple[int, float, list[Stage]] | None:
        """(saving, error, steps) of the smallest size at a site that keeps to the budget, by bisection."""
        found = plan(site, self.stages, self.fitting)
        if not found.sizes:
            return None
        low, high = 0, len(found.sizes) - 1
        error, trial = self._trial(site, found, high)
        if error > budget:
            self.refused[key] = error
            return None
        while low < high:
            middle = (low + high) // 2
            other, smaller = self._trial(site, found, middle)
            if other <= budget:
                high, error, trial = middle, other, smaller
            else:
                low = middle + 1
        saving = parameters(self.stages) - parameters(trial)
        return (saving, error, trial) if saving > 0 else None

    def _trial(self, site: Site, found: MovePlan, index: int) -> tuple[float, list[Stage]]:
        trial = _replaced(self.stages, (site.first, site.last), found.build(found.sizes[index]))
        return self.error(trial), trial

    def _most_saving(self, site: Site) -> int:
        """Parameters of the site: more than these cannot be saved there."""
        layers = self.stages[site.first : site.last + 1]
        outside = 1 if site.kind is SiteKind.MERGE else 0
        return parameters(layers) - outside

    def _keep(self, trial: list[Stage], what: str, span: tuple[int, int], error: float) -> None:
        names = (self.stages[span[0]].name, self.stages[span[1]].name)
        self.changes.append(Change(what, names, parameters(self.stages) - parameters(trial), error))
        self.stages = trial
        self.history.append(trial)


def entering(stage: Stage, path: str, x: Tensor) -> Tensor:
    """What enters a chain inside a step, from what enters the step; of tokens and pixels no more than are looked at."""
    if isinstance(stage.module, ResidualSum):
        return x
    found: list[Tensor] = []

    def rows_of(few: Tensor) -> int:
        on_copy(stage.module, few)
        entered = found.pop()
        return entered.numel() // entered.shape[-1]

    handle = stage.module.get_submodule(path).register_forward_pre_hook(lambda _, args: found.append(args[0].clone()))
    try:
        with torch.no_grad():
            for batch in batches(enough(x, rows_of)):
                on_copy(stage.module, batch)
    finally:
        handle.remove()
    return torch.cat(found)


def stream_at(stages: Sequence[Stage], x: Tensor) -> Tensor:
    """What the steps give on samples, batch by batch."""
    with torch.no_grad():
        return torch.cat([run(stages, batch) for batch in batches(x)])


def parameters(stages: Sequence[Stage]) -> int:
    """Number of parameters of the steps, those once that serve in several."""
    return sum({id(p): p.numel() for stage in stages for p in stage.module.parameters()}.values())


def site_name(stages: Sequence[Stage], site: Site) -> str:
    """A site in words, the same before and after moves elsewhere."""
    names = dict.fromkeys((stages[site.first].name, stages[site.last].name))
    return f"{' to '.join(names)}: {site.kind.value}"


def _replaced(stages: Sequence[Stage], span: tuple[int, int], new: Sequence[Stage]) -> list[Stage]:
    return [*stages[: span[0]], *new, *stages[span[1] + 1 :]]
