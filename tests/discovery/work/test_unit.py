import pytest

from isthmus.discovery.work.unit import Progress, ProgressListener, silent


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_a_share_outside_0_to_1_is_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        Progress("training", fraction)


def test_the_default_listener_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    listener: ProgressListener = silent
    listener(Progress("training", 1.0, ridge=1e-3, start=0, step=3, objective=0.1, rank=2))
    assert capsys.readouterr() == ("", "")
