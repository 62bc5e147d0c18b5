"""Figures with networks trained on a device beside the CPU: what is read off them lies on the CPU again.

On a machine without a GPU a pretended device stands for one.
"""

import importlib
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import torch

from isthmus.figures import FIGURES, Preset, Workshop, gallery
from isthmus.sweeps import engine
from isthmus.sweeps.engine_choice import EngineChoice
from pretended_device import AWAY, PretendedDevice

GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")]


@pytest.fixture(params=["pretended", pytest.param("cuda", marks=GPU)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a device beside the CPU."""
    if request.param == "cuda":
        yield "cuda"
        return
    for place in ("training.fit", "figures.parts", "sweeps.worker", "sweeps.engine_choice"):
        module = sys.modules.get(f"isthmus.{place}") or importlib.import_module(f"isthmus.{place}")
        asked = module.device_argument
        monkeypatch.setattr(
            module, "device_argument", lambda d, said, asked=asked: AWAY if d == AWAY.type else asked(d, said)
        )
    # a mode of torch belongs to its thread, and runs of a sweep have one of their own
    monkeypatch.setattr(
        engine, "ThreadPoolExecutor", partial(ThreadPoolExecutor, initializer=lambda: PretendedDevice().__enter__())
    )
    with PretendedDevice():
        yield AWAY.type


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_computed_with_its_networks_on_a_device(name: str, device: str, tmp_path: Path) -> None:
    workshop = Workshop(tmp_path, EngineChoice(workers=0, device=device))
    [done] = gallery([FIGURES[name]], Preset.TINY, workshop, command="isthmus figure")
    assert done.claims
    assert done.pictures
