"""Where a command trains: what is refused, and a running scheduler as an executor."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from isthmus.cli.main import run
from isthmus.cli.workplace import Workplace, certificates_of
from isthmus.errors import DataError, ExposureWarning, SweepError


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"executor": "fibres"}, "--executor fibres: needs threads or processes"),
        ({"executor": "threads", "scheduler": "tls://a:1"}, "leave out one of the two"),
        ({"tls_key": Path("key.pem")}, "belongs to --scheduler"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: Mapping[str, object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        Workplace(**options)  # pyright: ignore[reportArgumentType] - options as they were typed


def test_certificates_are_all_there_or_none() -> None:
    assert certificates_of(None, None, None) is None
    with pytest.raises(DataError, match="needs all of"):
        certificates_of(Path("a"), None, Path("b"))


def test_without_a_scheduler_the_options_are_handed_on() -> None:
    with Workplace(3, "processes").opened() as place:
        assert place == (3, "processes")


@pytest.mark.slow
def test_workers_of_a_scheduler_are_an_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is an extra")
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            processes=False,
            protocol="tcp://",
        ) as owned,
        ExitStack() as stack,
    ):
        with pytest.warns(ExposureWarning, match="asks nobody"):
            workers, executor = stack.enter_context(Workplace(scheduler=owned.scheduler_address).opened())
        assert workers == 1
        assert executor is not None
        assert not isinstance(executor, str)
        assert executor.submit(abs, -2).result() == 2
    monkeypatch.setattr("isthmus.sweeps.schedulers.CONNECT_SECONDS", 0.5)
    with pytest.raises(SweepError, match="cannot be reached"), Workplace(scheduler="tcp://127.0.0.1:9").opened():
        pass


@pytest.mark.skipif(torch.cuda.is_available(), reason="of a machine without a GPU")
@pytest.mark.parametrize(
    "words",
    [
        ("discover", "builtin:digits"), ("discover", "builtin:digits", "--dry-run"), ("sweep", "plan.toml"),
        ("figure", "boundedness"),
    ],
)  # fmt: skip
def test_a_device_that_is_not_there_is_refused_before_anything_is_written(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text("grid.ridge = [0.1]\n")
    for device, reason in (("cuda", "sees no CUDA device"), ("gpu", "needs cpu, cuda")):
        assert run([*words, "--device", device]) == 2
        assert f"--device {device}: " in (said := capsys.readouterr().err)
        assert reason in said
    assert not list(tmp_path.rglob("*.json"))
    Workplace(device="auto").check_device()
