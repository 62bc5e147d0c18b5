import pytest
import torch

from isthmus.theory import ResnetFactors
from theorem_checks import assert_close, normal

pytestmark = [pytest.mark.theorem("RES-01"), pytest.mark.theorem("RES-02")]


@pytest.mark.parametrize("block_depth", [1, 2])
def test_the_product_is_taken_layer_one_first_and_the_norm_has_its_factors(block_depth: int) -> None:
    embedding, unembedding = normal(0, 4, 3), normal(1, 2, 4)
    inner = [4, 4] if block_depth == 1 else [4, 6, 4]
    blocks = tuple(tuple(normal(10 * i + j, inner[j + 1], inner[j]) for j in range(block_depth)) for i in range(3))
    factors = ResnetFactors(embedding, blocks, unembedding)
    eye = torch.eye(4, dtype=torch.float64)
    branches = [b[0] if block_depth == 1 else b[1] @ b[0] for b in blocks]
    expected = unembedding @ (eye + branches[2]) @ (eye + branches[1]) @ (eye + branches[0]) @ embedding
    assert_close(factors.product(), expected)
    squares = sum(w.square().sum() for b in blocks for w in b)
    ends = (embedding.square().sum() + unembedding.square().sum()) / 2
    weight = 0.3 * 3 if block_depth == 1 else 0.3 / 2
    assert_close(factors.cost(residual_weight=0.3), ends + weight * squares)
    with pytest.raises(AssertionError):  # the printed order, layer 1 leftmost
        assert_close(factors.product(), unembedding @ (eye + branches[0]) @ (eye + branches[1]) @ embedding)


def test_no_blocks_leave_the_ends() -> None:
    factors = ResnetFactors(torch.eye(2), (), torch.eye(2))
    assert_close(factors.product(), torch.eye(2))
    assert_close(factors.cost(residual_weight=1.0), 2.0)
