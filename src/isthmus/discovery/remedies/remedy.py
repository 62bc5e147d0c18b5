"""A discovery in doubt, what can be done about it, and in which order: `Case`, `Remedy`, `treat`.

The remedies themselves: their classes beside. The first answer: `search`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, NoReturn

from isthmus.discovery.choices import EVEN, PASSES, PASSES_THOROUGH, ROW_GRADIENTS, UNMOVED
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.decision import told_by_linear_maps
from isthmus.discovery.depth.path import DepthPath
from isthmus.discovery.depth.units import DepthSettings
from isthmus.discovery.search import Search
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.search_memory import Foresight
from isthmus.errors import NotConverged
from isthmus.theory import Verdict

SURENESS = (Verdict.TOO_FEW_DATA, Verdict.NO_SHARP_RANK, Verdict.DOUBTFUL, Verdict.CONFIDENT)


class Effort(StrEnum):
    """How much work a doubt is worth."""

    QUICK = "quick"
    DEFAULT = "default"
    THOROUGH = "thorough"

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise ValueError(f"discover(effort={value!r}): needs one of {', '.join(cls)}.")

    @property
    def passes(self) -> float:
        """Work on doubts, in first passes of the search."""
        return {Effort.QUICK: 0.0, Effort.DEFAULT: PASSES, Effort.THOROUGH: PASSES_THOROUGH}[self]

    def budget(self, first: Foresight) -> int:
        """Gradients of a first pass that doubts are worth: so many passes, of many rows what `ROW_GRADIENTS` leaves.

            min(passes first.all, max(s ROW_GRADIENTS / first.rows - first.all, s first.all)),   s = passes / PASSES

        The same on any machine, unlike seconds; of few rows a gradient is calls rather than products.
        """
        share = self.passes / PASSES
        left = share * ROW_GRADIENTS / max(first.rows, 1) - first.all
        return int(min(self.passes * first.all, max(left, share * first.all)))


def sureness(search: Search) -> int:
    """How sure its decision is, as a number: more is surer."""
    return SURENESS.index(search.decision.verdict)


@dataclass(frozen=True, slots=True)
class Applied:
    """One remedy that was applied.

    Attributes:
        name: of the remedy.
        words: what was done.
        evaluations: gradient evaluations that it was planned to take, as `Remedy.price` counts them, by which the
            budget goes: same on any machine.
        rank: that was decided afterwards.
        verdict: and how sure it was then.
    """

    name: str
    words: str
    evaluations: int
    rank: int
    verdict: Verdict

    def as_plain(self) -> dict[str, object]:
        """Plain Python, for JSON."""
        return {
            "name": self.name, "words": self.words, "evaluations": self.evaluations, "rank": self.rank,
            "verdict": self.verdict.name,
        }  # fmt: skip


@dataclass(slots=True, eq=False)
class Case:
    """What a remedy is given, and changes.

    Attributes:
        search: that is believed, after its first answer.
        sample: the rows that it is over, and the way to more.
        depth: which depths are tried where depth may settle it.
        numbered: whether the columns are of one kind, such as pixels, as far as their names say.
        path: the rank over depth, once it is known.
        applied: what was done so far.
        first: what the first answer was planned to take.
    """

    search: Search
    sample: Sample
    depth: DepthSettings
    numbered: bool = False
    path: DepthPath | None = None
    applied: list[Applied] = field(default_factory=list[Applied])
    first: Foresight = field(init=False)

    def __post_init__(self) -> None:
        self.first = self.search.size.foresight

    @property
    def passes(self) -> float:
        """Work on doubts so far, in first passes."""
        return sum(one.evaluations for one in self.applied) / max(self.first.all, 1)

    @property
    def dearer(self) -> float:
        """How many times as many rows a gradient goes over as in the first pass."""
        return self.search.size.foresight.rows / max(self.first.rows, 1)

    @property
    def settled(self) -> bool:
        """Whether nothing is in doubt that work could settle: what linear maps leave open no training does."""
        certain = self.search.decision.verdict in {Verdict.CONFIDENT, Verdict.TOO_FEW_DATA}
        return certain or told_by_linear_maps(self.search.readings)

    @property
    def sureness(self) -> int:
        """Of the answer that is believed."""
        return SURENESS.index(self.search.decision.verdict)

    def anew(self, sample: Sample, settings: Settings, *, name: str) -> Search:
        """A search of its own over the rows of a sample, which is over."""
        problem = sample.posed_again(settings)
        assert problem is not None  # the targets of the first search vary, and no row of it is missing
        search = Search(problem, settings, self.search.runner, name=name)
        search.in_doubt = True
        search.run()
        return search

    @property
    def idle(self) -> bool:
        """Whether the last remedies moved nothing."""
        last = [(one.rank, one.verdict) for one in self.applied[-UNMOVED - 1 :]]
        return len(last) > UNMOVED and len({*last}) == 1

    def times(self, name: str) -> int:
        """How often this remedy was applied."""
        return sum(one.name == name for one in self.applied)


class Remedy(ABC):
    """One thing that can be done about doubts.

    Attributes:
        name: by which results list it.
        settles: share of the doubtful cases that it is expected to settle (measured: docs/notes/remedies.md).
        most: how often it is applied to one case.
        of_sure: whether it looks for a doubt where there is none, instead of settling one.
    """

    name: ClassVar[str]
    settles: ClassVar[float]
    most: ClassVar[int] = 1
    of_sure: ClassVar[bool] = False

    @abstractmethod
    def answers(self, case: Case) -> bool:
        """Whether it answers one of the doubts that stand."""

    @abstractmethod
    def cost(self, case: Case) -> int:
        """Gradient evaluations that it plans."""

    def price(self, case: Case) -> int:
        """In gradients of the first pass, by which the budget goes."""
        return math.ceil(self.cost(case) * case.dearer)

    @abstractmethod
    def apply(self, case: Case) -> str:
        """Do it and change the case; in words, what was done."""

    def promise(self, case: Case) -> float:
        """What it may settle for each gradient evaluation; 0 where it answers nothing."""
        able = case.times(self.name) < self.most and self.answers(case)
        return self.chance(case) / max(self.cost(case), 1) if able else 0.0

    def chance(self, case: Case) -> float:  # noqa: ARG002 - what most settle does not depend on the case
        """What it is expected to settle of cases like this one."""
        return self.settles


def treat(case: Case, remedies: Sequence[Remedy], *, budget: int) -> None:
    """Apply one remedy after the other, that of the most promise first, within so many gradients of the first pass.

    It ends where nothing is in doubt, nothing answers what is, the last ones moved nothing and nothing is left that
    settles as many as not, the budget or the time is used up.
    """
    runner = case.search.runner
    while not runner.out_of_time():
        case.search.in_doubt |= not case.settled
        meant = [remedy for remedy in remedies if remedy.of_sure == case.settled]
        able = [remedy for remedy in meant if remedy.promise(case) > 0 and remedy.price(case) <= budget]
        if case.idle:
            able = [remedy for remedy in able if remedy.chance(case) >= EVEN]
        if not able:
            return
        remedy = max(able, key=lambda one: one.promise(case))
        cost, price = remedy.cost(case), remedy.price(case)
        runner.tracker.begin(f"doubt {len(case.applied) + 1}, {remedy.name}", runner.tracker.left() + cost)
        sure, before = case.sureness, (case.search, case.sample, case.path, case.search.state)
        try:
            words, failed = remedy.apply(case), False
        except NotConverged:
            words, failed = "all that was trained diverged, so that the answer from before stands", True
        budget -= price
        late = not failed and runner.out_of_time() and case.sureness <= sure
        if failed or late:
            case.search, case.sample, case.path, case.search.state = before  # the state is set on the search of before
        if late:
            words += "; time was over before it settled anything, so that the answer from before stands"
        decision = case.search.decision
        case.applied.append(Applied(remedy.name, words, price, decision.rank, decision.verdict))
