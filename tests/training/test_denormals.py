"""Numbers that the processor computes with in microcode are 0 while a network is trained, and only then."""

import pytest
import torch

from isthmus import FullyConnected, fit
from isthmus.training.fitting import without_denormals
from isthmus.training.solvers.solver import Adam

TINY = torch.tensor(1e-39, dtype=torch.float32)


def survives() -> bool:
    return bool(TINY * 1.0 > 0)


def test_tiny_numbers_are_nothing_inside_and_back_afterwards() -> None:
    assert survives()
    with without_denormals():
        assert not survives()
        with without_denormals():
            assert not survives()
        assert not survives(), "an inner block must not end the outer one"
    assert survives()


def test_what_was_set_before_is_put_back_whatever_the_default_type() -> None:
    torch.set_flush_denormal(True)
    torch.set_default_dtype(torch.float64)
    try:
        with without_denormals():
            pass
        assert not survives()
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_flush_denormal(False)


def test_an_error_inside_leaves_nothing_behind() -> None:
    with pytest.raises(RuntimeError, match="on purpose"), without_denormals():
        raise RuntimeError("on purpose")
    assert survives()


def test_no_fit_computes_with_them() -> None:
    x = torch.ones(4, 2)
    seen: list[bool] = []
    fit(FullyConnected(2, 1, width=3, depth=2), x, x[:, :1], ridge=0.1, solver=Adam(3),
        callback=lambda _: seen.append(survives()))  # fmt: skip
    assert seen == [False] * 3
    assert survives()
