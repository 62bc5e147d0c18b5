import pytest
import torch

from isthmus.errors import PlanError
from isthmus.sweeps.engine_choice import MOST_WORKERS, EngineChoice


def test_numbers_out_of_range_are_refused_before_anything_starts() -> None:
    with pytest.raises(PlanError, match=r"--workers 4097: needs a number from 0 to 4096\."):
        EngineChoice(workers=MOST_WORKERS + 1)
    with pytest.raises(PlanError, match=r"--patience nan: needs a number >= 0\."):
        EngineChoice(patience=float("nan"))
    assert EngineChoice(workers=MOST_WORKERS, patience=0.0).workers == MOST_WORKERS


def test_a_gpu_gets_one_process_unless_more_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.sweeps.engine_choice.device_argument", lambda device, _said: torch.device(device))
    monkeypatch.setattr("isthmus.sweeps.engine_choice.num_cores", lambda: 16)
    assert EngineChoice(device="cpu").processes() == 16
    assert EngineChoice(device="cuda").processes() == 1
    assert EngineChoice(workers=3, device="cuda").processes() == 3
    assert EngineChoice(workers=0, device="cpu").processes() == 0
