"""The remedy of a sample that leaves doubts: more of the rows."""

from typing import ClassVar

from isthmus.discovery.choices import MORE_ROWS
from isthmus.discovery.remedies.remedy import Case, Remedy


class MoreRows(Remedy):
    """A search over several times as many rows, where some were left out."""

    name: ClassVar[str] = "more rows"
    settles: ClassVar[float] = 0.4
    most: ClassVar[int] = 3

    def answers(self, case: Case) -> bool:
        """Where there are more."""
        return case.sample.num_unseen > 0

    def cost(self, case: Case) -> int:
        """Of a whole search, each of whose gradients goes over so many times as many rows."""
        return MORE_ROWS * case.search.size.foresight.all

    def apply(self, case: Case) -> str:
        """Search anew; of more rows the answer is believed."""
        before = case.search
        settings = before.size.settings
        sample = case.sample.larger(MORE_ROWS, settings)
        rows = len(sample.held)
        name = f"{before.name}-rows-{rows}" if before.name else f"rows-{rows}"
        case.sample, case.path = sample, None
        case.search = case.anew(sample, settings, name=name)
        return f"searched {rows:,} rows instead of {len(before.problem.x) + len(before.problem.x_held):,}"
