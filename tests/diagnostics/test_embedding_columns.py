"""Lookup tables have spectra of their own, beside the layers."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from closeness import random
from isthmus import diagnose, report
from isthmus.reports.tables import lookup_table

TOKENS, WIDTH, RANK = 60, 8, 3


class Looking(nn.Module):
    """Tokens and positions, then a map of their sum; a table beside them that nobody uses."""

    def __init__(self, padding: int | None = None) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(TOKENS, WIDTH, padding_idx=padding), nn.Embedding(5, WIDTH)
        self.unused, self.last = nn.Embedding(7, WIDTH), nn.Linear(WIDTH, 2)
        self.double()  # before they are filled: float32 would have a tail of rounding
        with torch.no_grad():
            # all around a mean that is no direction of their own
            self.tokens.weight.copy_(random(TOKENS, RANK, seed=1) @ random(RANK, WIDTH, seed=2) + 5 * random(WIDTH))
            if padding is not None:
                self.tokens.weight[padding] = 100.0

    def forward(self, x: Tensor) -> Tensor:
        """Of (n, 5) tokens."""
        return self.last(self.tokens(x) + self.places.weight[None] + 0 * self.places(x % 5))


def tokens() -> Tensor:
    return torch.randint(0, TOKENS, (40, 5), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("jacobians", [True, False])
@pytest.mark.parametrize("padding", [None, 9])
def test_a_planted_rank_is_the_number_of_directions(padding: int | None, *, jacobians: bool) -> None:
    module = Looking(padding)
    table = diagnose(module, tokens(), jacobians=jacobians).layers
    assert list(table["embedding"].values) == ["tokens", "places"]
    assert list(table["embedding_entries"].values) == [TOKENS, 5]
    weight = module.tokens.weight.detach()
    weight = weight if padding is None else weight[torch.arange(TOKENS) != padding]
    expected = torch.linalg.svdvals(weight - weight.mean(0)) / len(weight) ** 0.5
    found = torch.tensor(table["embedding_singular_values"].sel(embedding="tokens").values)
    assert float((found - expected).abs().max()) <= 1e-12 * float(expected[0])
    assert float(found[RANK]) <= 1e-12 * float(found[0])
    assert int(table["embedding_rank_999"].sel(embedding="tokens")) == RANK
    # five entries span four directions around their mean at most
    assert int(table["embedding_rank_999"].sel(embedding="places")) <= 4


@pytest.mark.slow
def test_the_page_shows_them_and_no_other_network_has_any(tmp_path: Path) -> None:
    found = diagnose(Looking(), tokens())
    table = lookup_table(found)
    assert table is not None
    assert table.headings[:3] == ("where", "entries", "width")
    assert [row[:3] for row in table.rows] == [("tokens", "60", "8"), ("places", "5", "8")]
    report(found, tmp_path / "page.html")
    assert "Directions of every lookup table" in (tmp_path / "page.html").read_text()
    plain = diagnose(nn.Sequential(nn.Linear(3, 2)), random(20, 3).float())
    assert lookup_table(plain) is None
