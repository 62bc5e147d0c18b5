"""Which of several starts are given up early, by counts of gradients and never by a clock: the same bits every time.

The fits themselves, side by side: `several`.
"""

import threading
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Culling:
    """A start is given up at a mark when it would stay behind the best even if it went on falling as fast as before.

        f_j - (fall of f_j since the last mark) * (marks that are left)  >  (1 + margin) * min_i f_i

    Objectives of a descent fall ever more slowly, as a rule (*heuristic*): the left side is then below where start j
    will end. The margin is for what breaks the rule: a rank that is dropped late lowers the objective by some per cent.

    Attributes:
        every: gradients between two marks.
        first: gradients before which none is given up.
        margin: see above.
    """

    every: int = 100
    first: int = 1200
    margin: float = 0.05

    def __post_init__(self) -> None:
        if not (self.every > 0 and self.first >= 0 and self.margin >= 0):
            raise ValueError(f"{self}: needs every > 0, first >= 0 and margin >= 0.")

    def is_dominated(self, value: float, before: float, *, left: int, best: float) -> bool:
        """Whether a start at `value`, at `before` one mark earlier, is given up.

        Args:
            value: its objective.
            before: that of the mark before.
            left: gradients until its schedule is over; with none left there is nothing to be saved.
            best: least objective of all starts, a positive number.
        """
        fall = max(before - value, 0.0)
        return left > 0 and value - fall * left / self.every > (1 + self.margin) * best


@dataclass(slots=True)
class Race:
    """Starts in threads that wait for each other at every mark, so that all of them know the same objectives.

    Attributes:
        rule: which starts are given up.
        count: number of starts.
        culled: mark, in gradients, at which a start was given up.
    """

    rule: Culling
    count: int
    culled: dict[int, int] = field(default_factory=dict[int, int])
    _values: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    _ended: dict[int, float] = field(default_factory=dict[int, float])
    _turn: threading.Condition = field(default_factory=threading.Condition)

    def passes(self, start: int, *, mark: int, value: float, left: int) -> bool:
        """Wait until all starts that still run are at this mark; False where this one is given up there."""
        with self._turn:
            self._values.setdefault(start, []).append(value)
            self._turn.notify_all()
            self._turn.wait_for(lambda: all(self._is_at(other, mark) for other in range(self.count)))
            mine = self._values[start]
            best = min(self._best(other, mark) for other in range(self.count))
            if mark * self.rule.every < self.rule.first or mark < 2:
                return True
            if not self.rule.is_dominated(mine[mark - 1], mine[mark - 2], left=left, best=best):
                return True
            self.culled[start] = mark * self.rule.every
            return False

    def ended(self, start: int, value: float) -> None:
        """A start is over, for whatever reason, at this objective."""
        with self._turn:
            self._ended[start] = value
            self._turn.notify_all()

    def _is_at(self, start: int, mark: int) -> bool:
        return start in self._ended or len(self._values.get(start, ())) >= mark

    def _best(self, start: int, mark: int) -> float:
        """The least that a start is known to have reached by this mark."""
        values = self._values.get(start, [])[:mark]
        over = [self._ended[start]] if len(values) < mark else []
        return min(values + over, default=float("inf"))
