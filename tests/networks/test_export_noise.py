"""What exporters say stays with them, whichever logger says it, and copies touch no logger at all."""

import logging

import pytest
import torch
from torch import fx, nn

from isthmus.networks.copies import copied_module
from isthmus.networks.export_noise import without_export_noise


@pytest.fixture
def levels_set(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the loggers whose level is set, each time: it takes a look at every logger of the process."""
    names, real = list[str](), logging.Logger.setLevel

    def recorded(logger: logging.Logger, level: int | str) -> None:
        names.append(logger.name)
        real(logger, level)

    monkeypatch.setattr(logging.Logger, "setLevel", recorded)
    return names


def test_a_copy_shares_nothing_and_sets_no_level(levels_set: list[str]) -> None:
    network = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    for module in (network, fx.symbolic_trace(network)):
        copy = copied_module(module)
        with torch.no_grad():
            for parameter in copy.parameters():
                parameter.zero_()
        assert all(bool(parameter.any()) for parameter in module.parameters())
    assert levels_set == []


def test_no_logger_of_an_exporter_is_heard_and_few_levels_are_set(levels_set: list[str], logged: list[str]) -> None:
    loud, quiet = logging.getLogger("torch.onnx.loud"), [logging.getLogger(f"torch.onnx.quiet{i}") for i in range(50)]
    loud.setLevel(logging.WARNING)
    levels_set.clear()
    try:
        with without_export_noise():
            for logger in (loud, quiet[-1], logging.getLogger("torch.export.made_meanwhile")):
                logger.warning("which fallback was taken")
            logging.getLogger("of.a.user").warning("heard")
        assert "torch.onnx.loud" in levels_set
        assert not any(name.startswith("torch.onnx.quiet") for name in levels_set)
        loud.warning("heard too")
        quiet[0].warning("and this")
    finally:
        loud.setLevel(logging.NOTSET)
    assert logged == ["heard", "heard too", "and this"]
