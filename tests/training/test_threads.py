"""Whoever trains side by side leaves each thread of Python as many threads inside torch as it had."""

import threading
from collections.abc import Generator

import pytest
import torch

from isthmus.training.threads import one_thread_each, one_thread_here


@pytest.fixture
def three() -> Generator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def of_a_new_thread() -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("first_out", ["here", "there"])
def test_blocks_that_overlap_leave_every_thread_as_it_was(first_out: str) -> None:
    """The first who came used to keep one thread if it left before the last: it alone knew that it had more."""
    entered, left, leave, found = threading.Event(), threading.Event(), threading.Event(), list[int]()

    def other() -> None:
        with one_thread_each():
            found.append(torch.get_num_threads())
            entered.set()
            assert leave.wait(30)
        found.append(torch.get_num_threads())
        left.set()

    thread = threading.Thread(target=other)
    with one_thread_each():
        thread.start()
        assert entered.wait(30)
        if first_out == "there":
            leave.set()
            assert left.wait(30)
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3
    leave.set()
    thread.join()
    assert (found, torch.get_num_threads(), of_a_new_thread()) == ([1, 3], 3, 3)


@pytest.mark.usefixtures("three")
def test_a_block_in_a_block_changes_nothing() -> None:
    with one_thread_each():
        with one_thread_each():
            assert torch.get_num_threads() == 1
        assert (torch.get_num_threads(), of_a_new_thread()) == (1, 1)
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three")
def test_threads_of_a_pool_keep_one_whoever_leaves_meanwhile() -> None:
    found: list[int] = []

    def work() -> None:
        one_thread_here()
        with one_thread_each():
            pass
        found.append(torch.get_num_threads())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [1]
