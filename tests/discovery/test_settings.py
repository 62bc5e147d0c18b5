"""Numbers of a discovery that cannot work are refused; halves and widths follow from the others."""

import dataclasses

import pytest
import torch

from isthmus.discovery.settings import Settings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ridges": ()}, "positive ridges, largest first"),
        ({"ridges": (1e-3, 1e-2)}, "positive ridges, largest first"),
        ({"ridges": (1e-3, 0.0)}, "positive ridges, largest first"),
        ({"starts": ()}, "at least one start"),
        ({"linear_layers": 0}, "at least one linear middle layer"),
        ({"heldout": 1.0}, "held-out share between 0 and 1"),
    ],
    ids=["no-ridge", "order", "zero", "no-start", "no-middle", "all-held-out"],
)
def test_settings_that_cannot_work_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(Settings(), **change)  # pyright: ignore[reportArgumentType]


def test_the_depth_counts_the_layers_of_both_halves_and_of_the_middle() -> None:
    settings = Settings(relu_layers=2, linear_layers=3, width=7)
    assert settings.encoder.widths == settings.decoder.widths == [7, 7]
    assert settings.depth == 2 + 3 + 2 + 1
    assert Settings().depth == 11


@pytest.mark.parametrize("seed", [0, 1, 123, 2**55, 2**63 - 1])
def test_every_seed_that_is_taken_draws_numbers_of_its_own(seed: int) -> None:
    settings = Settings(seed=seed)
    drawn = [settings.seed_of(number) for number in (0, 1, 999)]
    assert all(0 <= one < 2**63 for one in drawn)
    assert len({*drawn}) == 3
    assert settings.seed_of(7) == 1000 * seed + 7 or seed > 2**53
    torch.Generator().manual_seed(drawn[2])
