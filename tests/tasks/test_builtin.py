"""Every name gives a usable task; a wrong name is answered with the nearest and the list."""

import numpy as np
import pytest

from isthmus.errors import DataError
from isthmus.tasks import BUILTIN, Kind, as_samples, builtin

SHAPES = {
    "digits": (1797, 64, 64),
    "digits_classes": (1797, 64, 10),
    "diabetes": (442, 10, 1),
    "linnerud": (20, 3, 3),
    "wine": (178, 13, 3),
    "breast_cancer": (569, 30, 2),
    "iris": (150, 4, 3),
}
DRAWN = sorted(set(BUILTIN) - set(SHAPES) - {"kuramoto_sivashinsky"})  # the trajectory has its own tests and takes 4 s


@pytest.mark.parametrize("name", SHAPES)
def test_measured_tables_have_their_shape(name: str) -> None:
    task = builtin(name)
    assert (*task.x.shape, task.target.shape[1]) == SHAPES[name]
    assert np.shares_memory(as_samples(task.x), task.x)
    assert task.true_rank is None
    if task.kind is Kind.CLASSIFICATION:
        np.testing.assert_array_equal(task.target.sum(1), 1)


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_tasks_know_their_rank_and_follow_the_seed(name: str) -> None:
    first, again, other = builtin(name, seed=1), builtin(name, seed=1), builtin(name, seed=2)
    assert first.true_rank is not None
    assert np.shares_memory(as_samples(first.x), first.x)
    np.testing.assert_array_equal(first.x, again.x)
    np.testing.assert_array_equal(first.target, again.target)
    assert not np.array_equal(first.x, other.x)


def test_an_unknown_name_is_answered_with_the_nearest_and_all() -> None:
    with pytest.raises(
        DataError, match="builtin:digit: unknown. Did you mean 'digits'.*Known are kuramoto_siv.*sphere"
    ):
        builtin("digit")


def test_a_name_like_no_other_gets_the_list_alone() -> None:
    with pytest.raises(DataError, match="builtin:qqq: unknown. Known are"):
        builtin("qqq")
