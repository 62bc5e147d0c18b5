"""Blocks of several threads that overlap: warnings are those of one thread, and what is for all is put back once."""

import os
import sys
import threading
import warnings
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from sklearn.utils.parallel import Parallel, delayed

from isthmus.networks.export_noise import without_export_noise
from isthmus.processes.children import safe_path
from isthmus.processes.shared_state import heard, held_in_common, raised, silenced
from isthmus.tasks.picture_files import read_picture
from isthmus.theory.undisturbed import chance_kept


def overlapping(block: Callable[[], AbstractContextManager[Any]], inside: Callable[[], object] = lambda: None) -> None:
    """The first of two threads to enter a block leaves first, while the second is in it."""
    first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        with block():
            first_in.set()
            second_in.wait(10)
            inside()
        first_out.set()

    def second() -> None:
        first_in.wait(10)
        with block():
            second_in.set()
            first_out.wait(10)
            inside()

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)


def filters() -> tuple[object, ...]:
    return list(warnings.filters), warnings.showwarning, vars(warnings)["_showwarnmsg_impl"]


@pytest.mark.parametrize("block", [silenced, lambda: raised(UserWarning), heard, lambda: heard(unless_filtered=True)])
def test_filters_are_as_before_once_all_blocks_are_over(block: Callable[[], AbstractContextManager[Any]]) -> None:
    before = filters()
    overlapping(block)
    assert filters() == before


def test_what_python_offers_leaves_its_filters_behind() -> None:
    @contextmanager
    def usual() -> Generator[None]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield

    with warnings.catch_warnings():  # puts back what the control leaves
        before = filters()
        overlapping(usual)
        assert filters() != before


def test_other_threads_are_left_alone() -> None:
    """A block of this thread silences none of theirs, and hears none."""
    thrown: list[Warning] = []

    def warn() -> None:
        try:
            warnings.warn("theirs", UserWarning, stacklevel=1)
        except UserWarning as error:  # the filter of these tests
            thrown.append(error)

    for block in (silenced(), heard()):
        with block as told:
            thread = threading.Thread(target=warn)
            thread.start()
            thread.join()
            warnings.warn("ours", UserWarning, stacklevel=1)
        assert told in (None, [(UserWarning, "ours")])
    assert list(map(str, thrown)) == ["theirs", "theirs"]


def test_categories_and_texts_tell_warnings_apart() -> None:
    with silenced(DeprecationWarning), silenced(UserWarning, "old .*"):
        warnings.warn("gone", DeprecationWarning, stacklevel=1)
        warnings.warn("Old name", UserWarning, stacklevel=1)
        with pytest.raises(UserWarning, match="new name"):
            warnings.warn("new name", UserWarning, stacklevel=1)
    with silenced(), raised(UserWarning):
        warnings.warn("gone", DeprecationWarning, stacklevel=1)
        with pytest.raises(UserWarning, match="new"):
            warnings.warn("new", UserWarning, stacklevel=1)


def test_what_was_told_before_is_heard_again_and_filters_of_the_caller_come_first_where_asked() -> None:
    def warn() -> None:
        warnings.warn("again", UserWarning, stacklevel=1)

    for _ in range(2):
        with warnings.catch_warnings(record=True), heard() as told:
            warnings.simplefilter("default", append=True)
            warn()
        assert told == [(UserWarning, "again")]
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("ignore", DeprecationWarning)
        with heard(unless_filtered=True) as told:
            warn()
            warnings.warn("gone", DeprecationWarning, stacklevel=1)
    assert told == [(UserWarning, "again")]


def test_what_is_held_in_common_is_entered_once_and_left_once() -> None:
    told: list[str] = []

    @held_in_common
    @contextmanager
    def block() -> Generator[None]:
        told.append("entered")
        yield
        told.append("left")

    overlapping(block, lambda: told.append("inside"))
    assert told == ["entered", "inside", "inside", "left"]


def test_streams_levels_paths_and_chance_are_as_before() -> None:
    def state() -> tuple[object, ...]:
        return sys.stdout, sys.stderr, os.environ.get("PYTHONSAFEPATH"), torch.get_rng_state().tolist()

    before = state()
    for block in (without_export_noise, safe_path, chance_kept):
        overlapping(block, lambda: torch.rand(3))
        if block is not chance_kept:
            torch.set_rng_state(torch.tensor(before[3], dtype=torch.uint8))
        assert state() == before, block


def test_pictures_read_in_several_threads_leave_the_stream_of_errors_open(tmp_path: Path) -> None:
    Image.new("L", (40, 40), 7).save(tmp_path / "one.png")
    before = os.fstat(2)

    def read() -> None:
        for _ in range(60):
            read_picture(tmp_path / "one.png")

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert os.path.samestat(os.fstat(2), before)


def test_others_may_copy_the_filters_of_their_caller() -> None:
    """scikit-learn hands them on to its workers, as texts and classes."""
    jobs = [delayed(warnings.warn)("from within", UserWarning) for _ in range(3)]
    with silenced():
        Parallel(n_jobs=1)(jobs)
    with raised(UserWarning), pytest.raises(UserWarning, match="from within"):
        Parallel(n_jobs=1)(jobs)
    with heard() as told, pytest.warns(UserWarning, match="from within"):
        Parallel(n_jobs=1)(jobs)
    assert told == [], "a copy is asked without the text"
    before = list(warnings.filters)
    with silenced(RuntimeWarning, "no such"), pytest.warns(UserWarning, match="from within"):
        Parallel(n_jobs=1)(jobs)
    assert list(warnings.filters) == before
