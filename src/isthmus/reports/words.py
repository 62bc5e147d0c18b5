"""Labelled sentences and counts, of which verdicts are made. What they say: `verdict`, `diagnosis_verdict`."""

from collections.abc import Sequence
from dataclasses import dataclass

_ROUNDING = 1e-13
_MOST_DIGITS = 17  # that tell float64 apart


@dataclass(frozen=True, slots=True)
class Line:
    """One labelled sentence of a verdict."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class VerdictText:
    """A verdict in words.

    Attributes:
        headline: the answer in one sentence.
        lines: how sure, why, what one dimension fewer costs and the like, in reading order.
    """

    headline: str
    lines: tuple[Line, ...]


def dimensions(count: int) -> str:
    """A count of dimensions, singular or plural: "1 dimension" or "8 dimensions"."""
    return f"{count} dimension" if count == 1 else f"{count} dimensions"


def percent(share: float) -> str:
    """A share to two digits, but from 99 % on to as many as tell it from all: "4.1 %", "99.6 %", "99.96 %", "150 %".

    What differs from all by rounding alone is all.
    """
    if not share < 1 - _ROUNDING:
        return f"{100 * share:.0f} %"
    digits = 2 if share < 0.99 else 3
    while (text := f"{100 * share:.{digits}g}") == "100" and digits < _MOST_DIGITS:
        digits += 1
    return f"{text} %"


def sentence(text: str) -> str:
    """The text with a capital and a full stop."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."


def numbered(noun: str, numbers: Sequence[int]) -> str:
    """`layer 3`, `layers 2 to 5`, `layers 1, 4 to 6`: ascending numbers, runs of three or more drawn together."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return f"{noun}{'s' * (len(numbers) > 1)} {', '.join(words)}"
