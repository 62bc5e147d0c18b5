"""Numbers as they stand in verdicts."""

import pytest

from isthmus.reports.words import percent


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.0412, "4.1 %"), (0.98, "98 %"), (0.996, "99.6 %"), (0.9999, "99.99 %"), (2499 / 2500, "99.96 %"),
     (1 - 1e-12, "99.9999999999 %"), (1.0, "100 %"), (2.5, "250 %"), (5.1e-17, "5.1e-15 %")],
)  # fmt: skip
def test_shares_are_written_with_the_digits_that_they_need(share: float, text: str) -> None:
    assert percent(share) == text
