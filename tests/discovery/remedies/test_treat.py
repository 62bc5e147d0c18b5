"""Which remedy comes first, when it ends, what is kept of it: on stand-ins whose doubts end as they are told."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from isthmus.discovery.choices import EVEN, PASSES, ROW_GRADIENTS, UNMOVED
from isthmus.discovery.findings import LinearReading, Readings
from isthmus.discovery.remedies.anew import BRIEF
from isthmus.discovery.remedies.remedy import Case, Effort, Remedy, treat
from isthmus.discovery.work.runner import Tracker, UnitRunner
from isthmus.discovery.work.search_memory import Foresight
from isthmus.discovery.work.unit import silent
from isthmus.errors import NotConverged
from isthmus.theory import Verdict
from isthmus.theory.curve_readings import CurveReading

NO_SAMPLE: Any = None
READ = Readings(
    ridge=1e-3, objective=CurveReading(3, 0.1), neighbours=(), scree=CurveReading(2, 0.1), jacobian_rank=3, widest=4,
    heldout_error=(1.0, 0.6, 0.3, 0.1), linear_error=(1.0, 0.5, 0.2, 0.1),
)  # fmt: skip


def foreseen(gradients: int, *, rows: int = 1000) -> Foresight:
    """A first pass of so many gradients over so many rows."""
    return Foresight(most_ranks=5, ridges=3, batches=((1, gradients),), rows=rows)


def a_case(*, first_pass: int = 100) -> Case:
    """A case in doubt, of a search that has nothing but its decision."""
    search: Any = SimpleNamespace(
        readings=READ,
        size=SimpleNamespace(foresight=foreseen(first_pass)),
        decision=SimpleNamespace(rank=3, verdict=Verdict.DOUBTFUL),
        state=SimpleNamespace(decision=SimpleNamespace(rank=3, verdict=Verdict.DOUBTFUL)),
        runner=UnitRunner(None, Tracker(silent, 0)),
        in_doubt=False,
    )
    case = Case.__new__(Case)
    case.search, case.sample, case.depth, case.numbered, case.path = search, NO_SAMPLE, BRIEF, False, None
    case.applied, case.first = [], search.size.foresight
    return case


@dataclass
class Told(Remedy):
    """Costs and settles what it is told."""

    label: str
    gradients: int
    share: float
    cures: bool = False
    of_sure: bool = False  # pyright: ignore[reportIncompatibleVariableOverride] - a class says it of all its remedies
    times: int = 1
    settles: ClassVar[float] = 1.0
    ends: Verdict = Verdict.DOUBTFUL
    late: bool = False

    def __post_init__(self) -> None:
        self.name, self.settles, self.most = self.label, self.share, self.times  # pyright: ignore[reportAttributeAccessIssue]

    def answers(self, case: Case) -> bool:  # noqa: ARG002
        return self.share > 0

    def cost(self, case: Case) -> int:  # noqa: ARG002
        return self.gradients

    def apply(self, case: Case) -> str:
        if self.cures:
            case.search.decision = SimpleNamespace(rank=2, verdict=Verdict.CONFIDENT)  # pyright: ignore[reportAttributeAccessIssue]
        return f"did {self.label}"


def applied(case: Case) -> list[str]:
    return [one.name for one in case.applied]


def test_what_promises_most_for_its_price_comes_first() -> None:
    case = a_case()
    treat(case, [Told("dear", 100, 0.5), Told("cheap", 10, 0.1), Told("sure", 10, 0.9)], budget=1000)
    assert applied(case) == ["sure", "cheap", "dear"]


def test_no_training_settles_what_linear_maps_leave_open() -> None:
    cure = Told("cure", 10, 0.5, cures=True)
    for rank, done in ((3, []), (4, ["cure"])):  # 4: of which the rows held out first say nothing
        case = a_case()
        case.search.readings = replace(READ, mapped=LinearReading(rank, rank, rank, (0.3,) * 5))
        treat(case, [cure], budget=1000)
        assert applied(case) == done


def test_a_sure_answer_is_held_against_what_looks_for_doubts_alone() -> None:
    class Doubting(Told):
        def apply(self, case: Case) -> str:
            case.search.decision = SimpleNamespace(rank=3, verdict=Verdict.DOUBTFUL)  # pyright: ignore[reportAttributeAccessIssue]
            return super().apply(case)

    for finds, done in ((False, ["proof"]), (True, ["proof", "more"])):
        case = a_case()
        case.search.decision = SimpleNamespace(rank=3, verdict=Verdict.CONFIDENT)  # pyright: ignore[reportAttributeAccessIssue]
        proof = (Doubting if finds else Told)("proof", 10, 0.1, of_sure=True)
        treat(case, [Told("more", 10, 0.9), proof], budget=1000)
        assert applied(case) == done
        assert case.search.in_doubt is finds


def test_a_remedy_whose_trainings_all_diverge_leaves_the_answer_from_before() -> None:
    """That ended a discovery which had its answer."""

    class Diverging(Told):
        def apply(self, case: Case) -> str:
            case.search, case.sample = a_case().search, "another"  # pyright: ignore[reportAttributeAccessIssue]
            raise NotConverged("discover: every start diverged at every ridge")

    case = a_case()
    search = case.search
    treat(case, [Diverging("first", 10, 0.9), Told("cure", 10, 0.1, cures=True)], budget=1000)
    assert applied(case) == ["first", "cure"]
    assert "diverged" in case.applied[0].words
    assert case.search is search
    assert case.sample is NO_SAMPLE


def test_it_ends_when_nothing_is_in_doubt() -> None:
    case = a_case()
    treat(case, [Told("cure", 10, 0.9, cures=True), Told("more", 10, 0.1)], budget=1000)
    assert applied(case) == ["cure"]
    assert case.applied[0].as_plain() == {
        "name": "cure", "words": "did cure", "evaluations": 10, "rank": 2, "verdict": "CONFIDENT",
    }  # fmt: skip


def test_too_few_data_is_no_doubt_that_work_settles() -> None:
    case = a_case()
    case.search.decision = SimpleNamespace(rank=1, verdict=Verdict.TOO_FEW_DATA)  # pyright: ignore[reportAttributeAccessIssue]
    treat(case, [Told("more", 10, 0.1)], budget=1000)
    assert applied(case) == []


def test_the_budget_is_never_exceeded_and_what_fits_is_still_done() -> None:
    case = a_case()
    treat(case, [Told("dear", 60, 0.9), Told("again", 30, 0.1, times=5)], budget=100)
    assert applied(case) == ["dear", "again"]
    assert case.passes == 0.9


def test_a_remedy_is_applied_as_often_as_it_may_be() -> None:
    case = a_case()
    treat(case, [Told("again", 1, 0.1, times=3)], budget=1000)
    assert applied(case) == ["again"] * 3


def test_when_nothing_moves_any_more_nothing_follows() -> None:
    case = a_case()
    treat(case, [Told("again", 1, 0.1, times=9)], budget=1000)
    assert applied(case) == ["again"] * (UNMOVED + 1)


@pytest.mark.parametrize(("share", "follows"), [(EVEN, True), (EVEN - 0.01, False)])
def test_but_what_is_left_that_settles_as_many_as_not(share: float, *, follows: bool) -> None:
    case = a_case()
    treat(case, [Told("again", 1, 0.1, times=9), Told("dear", 900, share)], budget=1000)
    assert applied(case) == ["again"] * (UNMOVED + 1) + ["dear"] * follows


def test_nothing_is_done_that_answers_nothing_or_for_no_budget() -> None:
    case = a_case()
    treat(case, [Told("never", 1, 0.0)], budget=1000)
    treat(case, [Told("more", 1, 0.5)], budget=0)
    assert applied(case) == []


def test_the_time_limit_ends_it() -> None:
    case = a_case()
    case.search.runner.tracker.deadline = 0.0
    treat(case, [Told("more", 1, 0.5)], budget=1000)
    assert applied(case) == []


def test_what_a_remedy_made_less_sure_when_time_was_over_is_undone() -> None:
    class Cut(Told):
        def apply(self, case: Case) -> str:
            other: Any = a_case().search
            case.search = other
            case.search.decision = SimpleNamespace(rank=9, verdict=self.ends)  # pyright: ignore[reportAttributeAccessIssue]
            if self.late:
                before.runner.tracker.deadline = 0.0
            return "cut"

    cases = [
        (Verdict.NO_SHARP_RANK, True, True), (Verdict.DOUBTFUL, True, True), (Verdict.CONFIDENT, True, False),
        (Verdict.NO_SHARP_RANK, False, False),
    ]  # fmt: skip
    for ends, late, stays in cases:
        case, remedy = a_case(), Cut("cut", 1, 0.5)
        before, remedy.ends, remedy.late = case.search, ends, late
        treat(case, [remedy], budget=1)
        assert (case.search is before) is stays
        assert ("time was over" in case.applied[0].words) is stays


def test_effort_is_a_number_of_first_passes() -> None:
    assert [Effort(name).passes for name in ("quick", "default", "thorough")] == [0.0, 10.0, 40.0]


def test_many_rows_are_worth_fewer_passes_the_same_on_any_machine() -> None:
    """A rank of 10,000 rows of 45 columns was in doubt after 732 s, of one of two cores that were busy."""
    first = foreseen(9_000, rows=8_000)
    default, thorough = Effort.DEFAULT.budget(first), Effort.THOROUGH.budget(first)
    assert Effort.QUICK.budget(first) == 0
    assert 0 < default < PASSES * first.all
    assert (default + first.all) * first.rows <= ROW_GRADIENTS
    assert thorough + first.all == 4 * (default + first.all)
    assert Effort.DEFAULT.budget(replace(first, rows=1_000)) == PASSES * first.all
    assert Effort.DEFAULT.budget(replace(first, rows=40_000)) == first.all, "whoever asks for more rows has time"


def test_a_gradient_over_more_rows_counts_as_many_of_the_first_pass() -> None:
    """What followed a search of 40,000 rows was counted as if it were of 10,000."""

    class Larger(Told):
        def apply(self, case: Case) -> str:
            case.search.size = SimpleNamespace(foresight=foreseen(100, rows=4000))  # pyright: ignore[reportAttributeAccessIssue]
            return super().apply(case)

    case, more = a_case(), Told("more", 10, 0.1, times=2)
    treat(case, [Larger("larger", 10, 0.9), more], budget=89)
    assert [(one.name, one.evaluations) for one in case.applied] == [("larger", 10), ("more", 40)]
    assert case.passes == 0.5, "the third would be the 90th of 89"
