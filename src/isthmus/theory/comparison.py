"""How losses are compared: by ratios where 0 means an exact prediction, by differences in nats where it means nothing.

What is read off curves of them: `curve_readings`. Which way a loss is compared: its `compared`, `training.losses`.
"""

import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

_AS_A_FACTOR = 100.0  # per cent
_LEAST, _MOST = 1e-300, 700.0  # a loss that has a logarithm, and a rise that has an exponential


class Comparison(ABC):
    """How far one loss lies above another: the rise, a difference of logarithms of squared errors."""

    amount_unit: ClassVar[str]

    @abstractmethod
    def of_errors(self, unit: float) -> "Comparison":
        """The same for losses that were divided by `unit`."""

    @abstractmethod
    def level(self, loss: float) -> float:
        """The number whose differences are rises."""

    @abstractmethod
    def rise(self, above: float, below: float) -> float:
        """From one loss to another."""

    @abstractmethod
    def raised(self, loss: float, factor: float) -> float:
        """The loss that lies log(factor) above this one."""

    @abstractmethod
    def between(self, here: float, there: float, share: float) -> float:
        """The loss that lies this share of the way from one to another."""

    @abstractmethod
    def amount(self, rise: float) -> float:
        """A rise as people read it, in `amount_unit`."""

    @abstractmethod
    def said(self, rise: float) -> str:
        """The same in words."""


@dataclass(frozen=True, slots=True)
class Ratios(Comparison):
    """Of losses whose 0 is an exact prediction, in units that mean nothing: log a / b."""

    amount_unit: ClassVar[str] = "%"

    def of_errors(self, unit: float) -> Comparison:  # noqa: ARG002
        """Itself."""
        return self

    def level(self, loss: float) -> float:
        """Its logarithm."""
        return math.log(max(loss, _LEAST))

    def rise(self, above: float, below: float) -> float:
        """The logarithm of their ratio; a loss of 0, of rows that are predicted exactly, counts as 1e-300."""
        ratio = max(above, _LEAST) / max(below, _LEAST)
        # a subnormal ratio has lost digits
        is_exact = sys.float_info.min <= ratio < math.inf
        return math.log(ratio) if is_exact else self.level(above) - self.level(below)

    def raised(self, loss: float, factor: float) -> float:
        """So many times as much."""
        return factor * loss

    def between(self, here: float, there: float, share: float) -> float:
        """A line in logarithms; a loss of 0 has none, up to it the curve stays where it was."""
        return here * (there / here if here > 0 and there > 0 else 1.0) ** share

    def amount(self, rise: float) -> float:
        """Of the lower one."""
        return 100 * math.expm1(min(rise, _MOST))

    def said(self, rise: float) -> str:
        """To a tenth of a per cent; what doubles or more as a factor, which no one has to divide."""
        amount = self.amount(rise)
        return f"{amount:.1f} %" if amount < _AS_A_FACTOR else f"a factor of {_factor(math.exp(min(rise, _MOST)))}"


@dataclass(frozen=True, slots=True)
class Nats(Comparison):
    """Of losses in nats, of which only differences mean something: 2 (a - b).

    log v / 2 is what a variance v costs in nats, so that a tenth of a nat is worth as much as 22 % of the variance.

    Attributes:
        unit: nats of a loss of 1.
    """

    unit: float = 1.0

    amount_unit: ClassVar[str] = "nats"

    def of_errors(self, unit: float) -> Comparison:
        """In multiples of so many nats."""
        return replace(self, unit=unit)

    def level(self, loss: float) -> float:
        """Twice the nats."""
        return 2 * self.unit * loss

    def rise(self, above: float, below: float) -> float:
        """Twice their difference."""
        return self.level(above - below)

    def raised(self, loss: float, factor: float) -> float:
        """log(factor) / 2 nats more."""
        return loss + math.log(factor) / self.level(1.0)

    def between(self, here: float, there: float, share: float) -> float:
        """A line."""
        return here + share * (there - here)

    def amount(self, rise: float) -> float:
        """Half of it."""
        return rise / 2

    def said(self, rise: float) -> str:
        """To two digits."""
        return f"{self.amount(rise):.2g} nats"


def _factor(value: float) -> str:
    """To two digits, hundreds to three."""
    return f"{value:.2g}" if value < 99.5 else f"{value:.3g}"


by_ratio, in_nats = Ratios(), Nats()
