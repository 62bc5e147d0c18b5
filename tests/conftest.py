"""No test may leave torch otherwise than it found it: what one leaves behind, the next one stumbles over.

Besides: when garbage is looked for, the browser in which pages are tested, pictures for tests that look at none, and
`--seed-shift`, other initial weights for all that is trained.
"""

import functools
import gc
import importlib
import logging
import math
import os
import shutil
import signal
import warnings
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser, sync_playwright

from checked_imports import check_package
from shape_checks import own_shape_checks

check_package("isthmus", types=bool(os.environ.get("CHECK_TYPES")))

os.environ["ISTHMUS_CACHE"] = ""  # what tests measure is for no one else, nor the reverse

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# in the background, or under nohup, signals are ignored by all that is started: by the programs under test too
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "add N to the seed of every network that is made, so that all that is trained starts elsewhere"
    parser.addoption("--seed-shift", type=int, default=0, metavar="N", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Networks draw their weights in one place each; data, and processes that tests start anew, stay as they are."""
    if shift := config.getoption("--seed-shift"):
        for kind in importlib.import_module("isthmus.networks.kinds").kinds():
            kind.network.__init__ = with_other_seeds(kind.network.__init__, shift)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """What gives other types than annotations say is as a user's, who has no checker."""
    with own_shape_checks() if item.get_closest_marker("other_types") else nullcontext():
        return (yield)


def with_other_seeds(init: Any, shift: int) -> Any:
    @functools.wraps(init)
    def call(*args: Any, seed: int | None = None, **kwargs: Any) -> None:
        init(*args, seed=seed + shift if isinstance(seed, int) and seed >= 0 else seed, **kwargs)

    return call


@pytest.fixture(autouse=True, scope="session")
def _discoveries_stay_in_threads() -> None:  # pyright: ignore[reportUnusedFunction]
    """Tests replace what units compute, which other processes would not see; they ask for these by name."""
    taken: Any = importlib.import_module("isthmus.discovery.work.search_memory")
    taken.WORTH_PROCESSES = math.inf


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Until all is collected there is no garbage, and looking for it takes a third of that time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before marks decide what is run
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Cases of a dear test beyond its first ones are slow; a name that holds an address is refused.

    It differs between the workers, which then refuse to run anything.
    """
    seen = Counter[str]()
    for item in items:
        for mark in item.iter_markers("dear"):
            test = item.nodeid.partition("[")[0]
            seen[test] += 1
            if seen[test] > mark.args[0]:
                item.add_marker(pytest.mark.slow)
    if unstable := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"give these tests ids of their own: {unstable[:3]}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Modules of torch are made without a seed: what they hold must not hang on which tests came before."""
    seed: Any = item.config.getoption("--seed-shift")
    # for GPUs that are not there yet torch keeps a stack trace each time: half a millisecond
    seeded: Any = torch if torch.cuda.is_available() else torch.default_generator
    seeded.manual_seed(seed)


@pytest.fixture(autouse=True)
def _torch_stays_as_it_was() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] - pytest calls it
    before = (torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads())
    yield
    after = (torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads())
    torch.set_grad_enabled(before[0])
    assert after == before, f"(gradients enabled, default type, threads) were {before} and are {after}"


@pytest.fixture
def unshifted(pytestconfig: pytest.Config) -> None:
    """For tests that compare networks made here with those of a process of its own."""
    if pytestconfig.getoption("--seed-shift"):
        pytest.skip("the other process starts its networks where it always does")


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """What all loggers say while a test runs, ours from the level INFO on."""
    said: list[str] = []
    handler, ours = logging.Handler(), logging.getLogger("isthmus")
    handler.emit = lambda record: said.append(record.getMessage())
    known = [logger for logger in logging.Logger.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    ends = [logging.getLogger(), *(logger for logger in known if not logger.propagate)]  # torch prints by itself
    for logger in ends:
        logger.addHandler(handler)
    level = ours.level
    ours.setLevel(logging.INFO)
    yield said
    ours.setLevel(level)
    for logger in ends:
        logger.removeHandler(handler)


@pytest.fixture
def blank_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty pictures, where a test runs commands but looks at none: drawing those of one page takes a second or two."""
    figure = importlib.import_module("matplotlib.figure").Figure((1, 1))
    for room in ("picture", "pictures"):
        monkeypatch.setattr(f"isthmus.reports.{room}.drawn", lambda _picture: figure)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with warnings.catch_warnings(), sync_playwright() as playwright:
        if CHROMIUM is None:
            pytest.skip("no Chromium on this machine: install it")
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()
