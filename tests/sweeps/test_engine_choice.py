import pytest

from isthmus.errors import PlanError
from isthmus.sweeps.engine_choice import MOST_WORKERS, EngineChoice


def test_numbers_out_of_range_are_refused_before_anything_starts() -> None:
    with pytest.raises(PlanError, match=r"--workers 4097: needs a number from 0 to 4096\."):
        EngineChoice(workers=MOST_WORKERS + 1)
    with pytest.raises(PlanError, match=r"--patience nan: needs a number >= 0\."):
        EngineChoice(patience=float("nan"))
    assert EngineChoice(workers=MOST_WORKERS, patience=0.0).workers == MOST_WORKERS
