"""Numbers of a discovery that cannot work are refused; halves and widths follow from the others."""

import dataclasses

import pytest

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
