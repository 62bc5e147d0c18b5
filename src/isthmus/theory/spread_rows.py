"""Which rows of many stand for all where a reading is dear: spread evenly from the first to the last; their median.

Rows of a trajectory that become a task: `tasks.exponential_steps`. Random rows: whoever draws them.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

AS_BEFORE = 1_000_000  # rows up to which the numbers are those of float32, by one lower here and there: see below


def spread_rows(count: int, most: int) -> Int[Tensor, " chosen"]:
    """Numbers of at most so many rows, ascending, the first and the last among them (*exact*).

        floor(i (count - 1) / (chosen - 1)),   i = 0 .. chosen - 1,   chosen = min(most, count)

    Args:
        count: of all rows, at least 1.
        most: of them that are chosen, at least 1.

    Accuracy: below `AS_BEFORE` rows the quotient is rounded in float32, as it has always been, so that what was read
    at some rows is read at the same ones; a number may be one lower than the formula. Above, the formula in integers:
    float32 has no odd numbers above 2^24, and called the last of 20,000,000 rows one that there is not.
    """
    chosen = min(most, count)
    if count < AS_BEFORE:
        return torch.linspace(0, count - 1, chosen, dtype=torch.float32).long()
    return torch.arange(chosen) * (count - 1) // max(chosen - 1, 1)


def median_over_rows(readings: Float[Tensor, "rows ..."]) -> Float[Tensor, "..."]:
    """The median over the rows; of an even number of them the mean of the two in the middle (*exact*).

    `torch.median` takes the lower of these two. NaN where a row has NaN.
    """
    return (readings.median(0).values - (-readings).median(0).values) / 2
