import io

import pytest
from rich.console import Console

from isthmus.cli.progress_bar import PlainLines, described, line_of, shown_progress, time_left
from isthmus.discovery.work.unit import Progress

EVENT = Progress("training", 0.25, 1e-3, 2, 140, 900, 0.03125, 8, 80.0)


def test_an_event_in_words() -> None:
    assert described(EVENT) == "training  rank 8  ridge 0.001  start 2  step 140/900  objective 0.03125"
    assert described(Progress("reading", 0.0)) == "reading  step 0"
    assert described(Progress("reading", 0.0, part="doubt 1, descent")) == "doubt 1, descent: reading  step 0"
    assert described(Progress("training", 0.5, step=722, total_steps=700)) == "training  step 700/700"


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (-1.0, "0:00 left"), (59.6, "1:00 left"), (3725.0, "1:02:05 left")]
)
def test_the_time_left(seconds: float | None, text: str) -> None:
    assert time_left(seconds) == text


def test_plain_lines_come_at_most_every_ten_seconds() -> None:
    said: list[str] = []
    clock = iter([0.0, 0.0, 1.0, 9.9, 10.0, 15.0, 20.5, 21.0])
    listener = PlainLines(said.append, lambda: next(clock), words=line_of)
    for _ in range(6):
        listener(EVENT)
    assert said == [f"25 %  1:20 left  {described(EVENT)}"] * 3
    ended = Progress("reading", 1.0)
    listener(ended)  # no line is due yet
    listener.say_last()
    listener.say_last()
    assert said[3:] == [line_of(ended)]


def test_a_terminal_shows_everything_in_one_line() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120, color_system=None)
    with shown_progress(console) as listener:
        listener(EVENT)
    text = stream.getvalue()
    for part in ("25 %", "1:20 left", described(EVENT)):
        assert part in text


def test_markup_in_a_stage_is_text() -> None:
    stream = io.StringIO()
    with shown_progress(Console(file=stream, force_terminal=True, width=120, color_system=None)) as listener:
        listener(Progress("[bold]curve[/]", 0.5))
    assert "[bold]curve[/]" in stream.getvalue()


def test_without_a_terminal_there_are_plain_lines() -> None:
    stream = io.StringIO()
    with shown_progress(Console(file=stream, width=40)) as listener:
        listener(EVENT)
    assert stream.getvalue() == f"25 %  1:20 left  {described(EVENT)}\n"
