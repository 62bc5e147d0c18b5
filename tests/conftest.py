"""No test may leave torch otherwise than it found it: what one leaves behind, the next one stumbles over.

Besides: the browser in which pages are tested.
"""

import shutil
import signal
import warnings
from collections.abc import Iterator

import pytest
import torch
from playwright.sync_api import Browser, sync_playwright

from checked_imports import check_package

check_package("isthmus")

CHROMIUM = shutil.which("chromium")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job: its children would ignore Ctrl-C too
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A name that holds an address differs between the workers, which then refuse to run anything."""
    if unstable := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"give these tests ids of their own: {unstable[:3]}")


@pytest.fixture(autouse=True)
def _torch_stays_as_it_was() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] - pytest calls it
    before = (torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads())
    yield
    after = (torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads())
    torch.set_grad_enabled(before[0])
    assert after == before, f"(gradients enabled, default type, threads) were {before} and are {after}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with warnings.catch_warnings(), sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()
