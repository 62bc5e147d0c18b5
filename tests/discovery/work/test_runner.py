"""Units of work: in order, never twice, resumed bit for bit, and refused where they belong to other data."""

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from isthmus import FullyConnected, fit
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.work.runner import Tracker, UnitRunner, check_same_run
from isthmus.discovery.work.unit import Progress, Session, Stopped, Unit, silent
from isthmus.errors import DataError, DataWarning
from isthmus.training import FitEvent, Outcome
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.threads import one_thread_each
from minima import minimum

Hear = Callable[[FitEvent], bool]


class Counted:
    """Units that count how often they are computed."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def unit(self, key: str, *, cost: int = 10) -> Unit:
        def compute(_session: Session) -> Minimum:
            self.calls.append(key)
            return minimum(kind=key, theta=torch.full((2,), len(key) / 3, dtype=torch.float64))

        return Unit(key, compute, cost, "training")


def runner(folder: Path | None = None, *, planned: int = 100) -> UnitRunner:
    return UnitRunner(folder, Tracker(silent, planned))


def event(evaluations: int, *, objective: float = 1.0) -> FitEvent:
    return FitEvent(torch.nn.Identity(), evaluations, 10, objective)


def trained(path: Path | None, hear: Hear) -> Minimum:
    """A short fit, with its end in bits."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 4, generator=generator)
    network = FullyConnected(4, 2, width=8, depth=3, seed=5)
    schedule = (Adam(40), LBFGS(60, plateau=0.0))
    result = fit(network, x, x[:, :2].relu(), ridge=1e-3, solver=schedule, checkpoint=path, callback=hear)
    theta = torch.cat([p.detach().flatten() for p in network.parameters()])
    return minimum(theta=theta, gradient_evaluations=result.gradient_evaluations, outcome=result.outcome)


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_results_come_in_the_order_of_the_units(workers: int) -> None:
    shop, release = runner(), threading.Event()
    shop.workers = workers

    def unit(number: int) -> Unit:
        def compute(_session: Session) -> Minimum:
            if number == 0 and workers > 1:
                assert release.wait(10), "the first unit ends after the second"
            release.set()
            return minimum(start=number)

        return Unit(f"u{number}", compute, 1, "training")

    assert [r.start for r in shop.run([unit(i) for i in range(6)])] == list(range(6))


def test_nothing_is_computed_twice(tmp_path: Path) -> None:
    counted = Counted()
    first = runner(tmp_path).run([counted.unit("a"), counted.unit("bb")])
    again = runner(tmp_path).run([counted.unit("bb"), counted.unit("a"), counted.unit("ccc")])
    assert sorted(counted.calls) == ["a", "bb", "ccc"]
    assert [r.kind for r in again] == ["bb", "a", "ccc"]
    assert torch.equal(first[0].theta, again[1].theta)
    assert not list(tmp_path.glob("*.partial.pt"))


@pytest.mark.parametrize("in_folder", [True, False])
def test_idle_workers_compute_what_may_be_next_and_it_is_found_when_it_is_asked_for(
    in_folder: bool, tmp_path: Path
) -> None:
    counted, shop = Counted(), runner(tmp_path if in_folder else None, planned=100)
    shop.workers = 4
    a, bb, ccc, dddd, eeeee = (counted.unit(letter * n) for n, letter in enumerate("abcde", 1))
    assert [m.kind for m in shop.run([a, bb], ahead=[ccc, a, dddd, eeeee])] == ["a", "bb"]
    assert sorted(counted.calls) == ["a", "bb", "ccc", "dddd"], "as many as were idle"
    assert (shop.tracker.done, shop.tracker.fresh) == (20, 40), "not asked for, it tells of the pace alone"
    assert [m.kind for m in shop.run([dddd], ahead=[eeeee])] == ["dddd"]
    assert len(counted.calls) == 4, "nobody waits, so nobody is idle"
    assert (shop.tracker.done, shop.tracker.fresh) == (30, 40)
    shop.workers = 1
    shop.run([eeeee], ahead=[counted.unit("ffffff")])
    assert "ffffff" not in counted.calls, "one worker is never idle"


def test_nothing_is_computed_ahead_once_time_is_over() -> None:
    counted, shop = Counted(), UnitRunner(None, Tracker(silent, 100, deadline=time.monotonic() - 1.0), workers=4)
    shop.run([counted.unit("a")], ahead=[counted.unit("bb")])
    assert counted.calls == ["a"]


def test_what_is_foreseen_anew_takes_the_place_of_the_plan(tmp_path: Path) -> None:
    shop = runner(tmp_path, planned=100)
    shop.run([Counted().unit("a", cost=30)])
    assert shop.tracker.left() == 70
    shop.tracker.foresee(200)
    assert (shop.tracker.left(), shop.tracker.planned) == (200, 230)


def test_what_a_time_limit_cut_short_goes_on_another_day(tmp_path: Path) -> None:
    def unit(outcome: Outcome, seconds: float) -> Unit:
        def compute(session: Session) -> Minimum:
            path = session.checkpoint
            assert path is not None
            before = path.read_text() if path.exists() else ""
            path.write_text("half")
            return minimum(outcome=outcome, kind=before, seconds=seconds)

        return Unit("fit", compute, 10, "training")

    assert runner(tmp_path).run([unit(Outcome.TIME_LIMIT, 1.0)])[0].kind == ""
    assert [path.name for path in tmp_path.glob("fit*")] == ["fit.partial.pt"]
    assert runner(tmp_path).run([unit(Outcome.STEP_LIMIT, 2.0)])[0].kind == "half"
    assert [path.name for path in tmp_path.glob("fit*")] == ["fit.pt"]
    assert runner(tmp_path).run([unit(Outcome.STEP_LIMIT, 3.0)])[0].seconds == 2.0


def test_without_a_folder_everything_is_computed_again() -> None:
    counted = Counted()
    for _ in range(2):
        runner().run([counted.unit("a")])
    assert counted.calls == ["a", "a"]


def test_a_stopped_unit_resumes_bit_for_bit(tmp_path: Path) -> None:
    whole = trained(None, lambda _event: False)
    shop, under_way, evaluations = runner(tmp_path), threading.Event(), list[int]()
    shop.workers = 2

    def interrupt(_session: Session) -> Minimum:
        assert under_way.wait(20)
        raise KeyboardInterrupt

    def slow(session: Session) -> Minimum:
        def listen(event: FitEvent) -> bool:
            evaluations.append(event.evaluations)
            if event.evaluations < 55:
                return session.hear(event)
            under_way.set()
            while not session.hear(event):
                pass
            return True

        return trained(session.checkpoint, listen)

    with pytest.raises(KeyboardInterrupt):
        shop.run([Unit("other", interrupt, 1, "training"), Unit("fit", slow, 100, "training")])
    assert (tmp_path / "fit.partial.pt").exists()
    assert not (tmp_path / "fit.pt").exists()
    first = evaluations.copy()
    evaluations.clear()

    def rest(session: Session) -> Minimum:
        return trained(session.checkpoint, lambda event: evaluations.append(event.evaluations) or session.hear(event))

    [resumed] = runner(tmp_path).run([Unit("fit", rest, 100, "training")])
    assert torch.equal(resumed.theta, whole.theta)
    assert (resumed.gradient_evaluations, resumed.outcome) == (whole.gradient_evaluations, whole.outcome)
    assert evaluations[0] > first[-1], "what was done is not done again"
    assert not (tmp_path / "fit.partial.pt").exists()
    changed = trained(None, lambda event: event.evaluations > 50)
    assert not torch.equal(changed.theta, whole.theta)


@pytest.mark.parametrize("first", ["fails", "waits"])
def test_an_error_in_a_unit_comes_out_and_stops_the_others(tmp_path: Path, first: str) -> None:
    shop, under_way, stopped = runner(tmp_path), threading.Event(), threading.Event()
    shop.workers = 2

    def fails(_session: Session) -> Minimum:
        assert under_way.wait(10)
        raise ZeroDivisionError("in a unit")

    def waits(session: Session) -> Minimum:
        under_way.set()
        until = time.monotonic() + 30
        while not session.hear(event(1)):
            assert time.monotonic() < until, "the error of the other unit is not heard of"
        stopped.set()
        return minimum(0.5)

    units = [Unit("fails", fails, 1, "training"), Unit("waits", waits, 1, "training")]
    with pytest.raises(ZeroDivisionError, match="in a unit"):
        shop.run(sorted(units, key=lambda unit: unit.key != first))
    assert stopped.is_set()
    assert not list(tmp_path.glob("waits*")), "the half result of a stopped unit is not taken for a whole one"
    with pytest.raises(Stopped):
        shop.run([Counted().unit("later")])


def test_work_of_other_data_or_settings_is_refused(tmp_path: Path) -> None:
    stamp = {"data": "abc", "settings": "Settings()"}
    check_same_run(tmp_path, stamp)
    check_same_run(tmp_path, stamp)
    with pytest.raises(DataError, match="other data"):
        check_same_run(tmp_path, stamp | {"data": "abd"})
    with pytest.raises(DataError, match="other settings"):
        check_same_run(tmp_path, stamp | {"settings": "Settings(seed=1)"})


def swap(one: Path, other: Path) -> None:
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def make_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "torn": (lambda path: path.write_bytes(b"torn"), "cannot be read"),
    "empty": (truncate, "cannot be read"),
    "a flipped bit": (flip, "its checksum differs"),
    "a folder": (make_a_folder, "cannot be read"),
    "swapped": (lambda path: swap(path, path.with_name("bb.pt")), "was written as"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_result_is_set_aside_and_computed_again(damage: str, tmp_path: Path) -> None:
    counted = Counted()
    units = [counted.unit("a"), counted.unit("bb")]
    whole = runner(tmp_path).run(units)
    change, words = DAMAGES[damage]
    change(tmp_path / "a.pt")
    with pytest.warns(DataWarning, match=rf"\.pt: .*{words}.*set aside as .*\.pt\.damaged.*computed again"):
        found = runner(tmp_path).run(units)
    assert [r.kind for r in found] == ["a", "bb"]
    assert all(torch.equal(one.theta, other.theta) for one, other in zip(whole, found, strict=True))
    assert sorted(counted.calls) == (["a", "a", "bb", "bb"] if damage == "swapped" else ["a", "a", "bb"])
    assert runner(tmp_path).run(units)[0].kind == "a"


def told(tracker: Tracker, steps: Sequence[tuple[str, Unit, int]], heard: list[Progress]) -> list[float]:
    for what, unit, evaluations in steps:
        tracker._told = 0.0  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - every event is told, not ten a second
        if what == "at":
            tracker.at(unit, event(evaluations))
        elif what == "done":
            tracker.finished(unit, fresh=True)
        else:
            tracker.skip(unit.cost)
    return [p.fraction for p in heard]


def test_the_share_done_never_falls_and_never_passes_1() -> None:
    heard: list[Progress] = []
    a, b, c, d = (Counted().unit(key, cost=40) for key in "abcd")
    steps = [
        ("at", a, 5), ("at", b, 20), ("at", a, 30), ("done", b, 0), ("at", a, 400), ("at", c, 1), ("done", a, 0),
        ("at", c, 1), ("skip", d, 0), ("at", c, 20), ("at", c, 900), ("done", c, 0), ("at", d, 39), ("done", d, 0),
        ("at", a, 1),
    ]  # fmt: skip
    fractions = told(Tracker(heard.append, 130), steps, heard)
    assert fractions == sorted(fractions)
    assert fractions[0] == 5 / 130
    assert fractions[2] == 50 / 130
    assert fractions[-1] == 1.0
    assert [p.seconds_left for p in heard] == [None] * len(heard), "a first gradient says nothing of the pace"
    begun = Tracker(heard.append, 130)
    begun.began -= 10.0
    told(begun, steps, heard)
    assert all(p.seconds_left is not None and p.seconds_left >= 0 for p in heard[-len(steps) // 3 :])
    reckless = [f for f in fractions if f < 0.2]
    assert reckless != sorted(reckless, reverse=True), "the check sees a falling share"


def test_work_that_comes_besides_has_a_share_of_its_own_that_never_falls() -> None:
    heard: list[Progress] = []
    tracker = Tracker(heard.append, 40)
    a, b, c = (Counted().unit(key, cost=40) for key in "abc")
    told(tracker, [("at", a, 39), ("done", a, 0)], heard)
    tracker.begin("doubt 1, more starts", tracker.left() + 80)
    told(tracker, [("at", b, 20)], heard)
    tracker.foresee(tracker.left() + 80)  # more than was planned for it
    told(tracker, [("at", b, 22), ("done", b, 0), ("at", c, 39)], heard)
    assert [(p.part, p.fraction) for p in heard] == [
        ("", 39 / 40), *[("doubt 1, more starts", share) for share in (20 / 80, 20 / 80, 79 / 160)]
    ]  # fmt: skip


def test_work_of_an_earlier_sitting_counts_as_done_but_not_for_the_pace(tmp_path: Path) -> None:
    counted = Counted()
    runner(tmp_path).run([counted.unit("a", cost=60)])
    again = runner(tmp_path)
    again.run([counted.unit("a", cost=60), counted.unit("b", cost=10)])
    assert (again.tracker.done, again.tracker.fresh) == (70, 10)


def test_events_are_told_at_most_ten_times_a_second() -> None:
    heard: list[Progress] = []
    tracker, unit = Tracker(heard.append, 100), Counted().unit("a")
    for i in range(200):
        tracker.at(unit, event(i))
    assert 1 <= len(heard) < 100


def test_every_stage_is_told_however_short_it_is() -> None:
    heard: list[Progress] = []
    tracker = Tracker(heard.append, 1000)
    a, b = Counted().unit("a"), dataclasses.replace(Counted().unit("b"), stage="another stage")
    for i in range(20):
        tracker.at(a, event(i))
        tracker.at(b, event(i))
    assert {p.stage for p in heard} == {a.stage, b.stage}
    assert len(heard) < 20


def test_units_run_on_one_thread_each_and_the_number_is_put_back() -> None:
    before = torch.get_num_threads()
    with one_thread_each():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    with pytest.raises(ZeroDivisionError), one_thread_each():
        raise ZeroDivisionError
    assert torch.get_num_threads() == before


def test_the_deadline_is_told_to_units() -> None:
    assert runner().seconds_left() is None
    assert not runner().out_of_time()
    late = UnitRunner(None, Tracker(silent, 1, deadline=0.0))
    assert late.out_of_time()
    assert late.seconds_left() == 0.05
