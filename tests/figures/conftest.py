"""Figures of the tiny preset, computed once for all tests."""

from pathlib import Path

import pytest

from isthmus.figures import FIGURES, Finished, Preset, Workshop, gallery
from isthmus.sweeps.engine_choice import EngineChoice

# all thirteen take more than 75 s of one core; the rest of them are slow tests
SHORT = ("narrowness", "linear-networks")


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("figures")


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> dict[str, Finished]:
    figures = [FIGURES[name] for name in SHORT]
    workshop = Workshop(tiny_folder, EngineChoice(workers=0))
    return {done.figure.name: done for done in gallery(figures, Preset.TINY, workshop, command="isthmus figure all")}
