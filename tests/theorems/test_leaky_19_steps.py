import pytest
import torch

from isthmus.networks import LeakyResNet
from isthmus.networks.leaky_steps import step_sizes
from theorem_checks import assert_close, normal

pytestmark = [pytest.mark.theorem("LEAKY-01"), pytest.mark.theorem("LEAKY-19")]


def as_printed(depth: int) -> torch.Tensor:
    l = torch.arange(1, depth + 1, dtype=torch.float64)
    return 1 / depth + (0.25 - (l / depth - 0.5).abs()) / depth


@pytest.mark.parametrize("steps", ["equidistant", "irregular"])
@pytest.mark.parametrize("depth", [1, 4, 7])
def test_steps_sum_to_one_and_are_their_own_mirror_image(steps: str, depth: int) -> None:
    rho = step_sizes(steps, depth)
    assert_close(rho.sum(), 1.0)
    assert_close(rho.flip(0), rho)
    with pytest.raises(AssertionError):  # as printed: 1 - 1/(4 L^2) for odd L, and no mirror image for even L
        assert_close(torch.stack([as_printed(depth).sum(), *as_printed(depth).flip(0)]),
                     torch.stack([torch.ones(()).double(), *as_printed(depth)]))  # fmt: skip


def test_irregular_steps_are_longest_in_the_middle_by_these_shares() -> None:
    """1.25 - |t - 1/2| at the mid-points: 7/8, 9/8, 9/8, 7/8 of sum 4, and 11/12, 15/12, 11/12 of sum 37/12."""
    assert_close(step_sizes("irregular", 4), torch.tensor([7.0, 9, 9, 7], dtype=torch.float64) / 32)
    assert_close(step_sizes("irregular", 3), torch.tensor([11.0, 15, 11], dtype=torch.float64) / 37)
    assert_close(step_sizes("equidistant", 3), torch.full((3,), 1 / 3, dtype=torch.float64))
    with pytest.raises(AssertionError):  # turned inside out
        assert_close(step_sizes("irregular", 4), torch.tensor([9.0, 7, 7, 9], dtype=torch.float64) / 32)


@pytest.mark.parametrize("a", [0.0, 0.5, 0.99])
def test_irregularity_takes_the_mesh_from_equal_steps_to_the_irregular_ones(a: float) -> None:
    """The paper's 1/L + (a/L) (1/4 - |..|) at mid-points; at L = 4 its sum is 1 for every a."""
    expected = torch.tensor([1 - a / 8, 1 + a / 8, 1 + a / 8, 1 - a / 8], dtype=torch.float64) / 4
    network = LeakyResNet(3, 3, width=3, depth=4, effective_depth=1.0, steps="irregular", irregularity=a, seed=0)
    assert_close(network.steps, expected, relative=1e-6)
    assert_close(step_sizes("irregular", 4, irregularity=a), expected)
    assert_close(step_sizes("equidistant", 4, irregularity=a), torch.full((4,), 0.25, dtype=torch.float64))


@pytest.mark.parametrize("a", [-0.1, 1.1, float("nan")])
def test_an_irregularity_beyond_the_papers_range_is_refused(a: float) -> None:
    with pytest.raises(ValueError, match=r"irregularity=.*needs a number in \[0, 1\]"):
        step_sizes("irregular", 4, irregularity=a)


def flow_error(scheme: str, depth: int) -> float:
    """Distance from the flow of dA/dp = -Lt A + b, which is known: A = e^{-Lt p} A_0 + (1 - e^{-Lt p}) b / Lt."""
    Lt, b = 4.0, normal(1, 3)
    network = LeakyResNet(3, 3, width=3, depth=depth, effective_depth=Lt, scheme=scheme, seed=0, dtype=torch.float64)
    with torch.no_grad():
        network.weights.zero_()
        network.weights[:, :, -1] = b
        network.embedding.copy_(torch.eye(3))  # a drawn one differs between depths, and so does what is left
        network.unembedding.copy_(torch.eye(3))
        x = normal(2, 5, 3)
        A = x @ network.embedding.mT
        decay = torch.exp(torch.tensor(-Lt).double())
        exact = (decay * A + (1 - decay) / Lt * b) @ network.unembedding.mT
        return float((network(x) - exact).abs().max())


def test_exponential_euler_leaks_exactly_and_explicit_euler_to_first_order() -> None:
    assert flow_error("exponential", 9) <= 1e-13
    ratio = flow_error("euler", 400) / flow_error("euler", 800)
    assert 1.9 < ratio < 2.1
    with pytest.raises(AssertionError):
        assert flow_error("euler", 9) <= 1e-13


@pytest.mark.theorem("LEAKY-02")
def test_leak_on_a_unit_range_is_unit_leak_on_a_long_range() -> None:
    Lt, depth = 3.0, 8
    network = LeakyResNet(2, 2, width=4, depth=depth, effective_depth=Lt, seed=0, dtype=torch.float64)
    x = normal(0, 5, 2)
    with torch.no_grad():
        M, ds = network.weights / Lt, Lt / depth  # weights and step of the natural form
        a = x @ network.embedding.mT
        for l in range(depth):
            S = torch.cat([a.relu(), torch.ones(5, 1, dtype=torch.float64)], 1)
            a = a + ds * (S @ M[l].mT - a)
        assert_close(network(x), a @ network.unembedding.mT)
        natural = ds * M.square().sum() / 2
        assert_close(network.penalty(), natural)
        with pytest.raises(AssertionError):  # without the factor 1 / Lt of the penalty
            assert_close(network.penalty() * Lt, natural)
