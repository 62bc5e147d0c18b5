"""Teachers have the rank they claim: the maps that make them are differentiated, with one rank too many as control."""

from typing import Any

import numpy as np
import pytest
import torch

from isthmus import tasks
from isthmus.tasks.teachers import Activation, Map, TeacherMaps, composed_maps, teacher_maps
from tolerances import rounding

RANKS = (1, 2, 5, 8)


def jacobian_ranks(maps: TeacherMaps, z: torch.Tensor) -> tuple[int, int]:
    """Largest rank of dy/dz and least rank of dx/dz over the latent points z."""
    dy = torch.stack([torch.autograd.functional.jacobian(maps.target, p) for p in z])  # type: ignore[no-untyped-call]
    dx = torch.stack([torch.autograd.functional.jacobian(maps.observe, p) for p in z])  # type: ignore[no-untyped-call]
    rtol = rounding(size=100)
    return int(torch.linalg.matrix_rank(dy, rtol=rtol).max()), int(torch.linalg.matrix_rank(dx, rtol=rtol).min())


@pytest.mark.theorem("FC-47")
@pytest.mark.parametrize("rank", RANKS)
def test_the_target_has_the_claimed_rank_and_the_inputs_keep_every_latent_coordinate(rank: int) -> None:
    task = tasks.teacher(rank, d_in=30, d_out=20, num_samples=20, latent_dim=12, seed=rank)
    assert task.latent is not None
    maps = teacher_maps(rank, d_in=30, d_out=20, latent_dim=12, seed=rank)
    assert jacobian_ranks(maps, torch.from_numpy(task.latent)) == (rank, 12)
    assert task.true_rank == task.jacobian_rank == rank


@pytest.mark.parametrize("rank", RANKS)
def test_the_rank_check_sees_a_target_with_one_more_coordinate(rank: int) -> None:
    maps = teacher_maps(rank, d_in=30, d_out=20, latent_dim=12)
    more = TeacherMaps(maps.observe, teacher_maps(rank + 1, d_in=30, d_out=20, latent_dim=12).respond, rank + 1)
    assert jacobian_ranks(more, torch.randn(8, 12, dtype=torch.float64))[0] == rank + 1


@pytest.mark.parametrize("activation", [Activation.LEAKY, Activation.TANH])
def test_other_activations_bend_the_same_weights_and_keep_the_rank(activation: Activation) -> None:
    settings: dict[str, Any] = {"d_in": 30, "d_out": 20, "latent_dim": 12, "seed": 3}
    task = tasks.teacher(3, num_samples=8, activation=activation, **settings)
    assert task.latent is not None
    maps, relu = teacher_maps(3, activation=activation, **settings), teacher_maps(3, **settings)
    z = torch.from_numpy(task.latent)
    assert jacobian_ranks(maps, z) == (3, 12)
    inner = z @ maps.observe.inner.T + maps.observe.bias
    bent = torch.tanh(inner) if activation is Activation.TANH else torch.maximum(inner, 0.3 * inner)
    np.testing.assert_allclose(task.x, (bent @ relu.observe.outer.T).numpy(), rtol=rounding(size=100))
    assert not np.allclose(task.x, relu.observe(z).numpy(), rtol=0.1)


def test_the_task_is_what_its_maps_say() -> None:
    task = tasks.teacher(3, d_in=21, d_out=6, num_samples=50, seed=4)
    maps = teacher_maps(3, d_in=21, d_out=6, seed=4)
    z = torch.from_numpy(task.latent)
    assert task.y is not None
    np.testing.assert_array_equal(task.x, maps.observe(z).numpy())
    np.testing.assert_array_equal(task.y, (maps.target(z) - maps.target(z).mean(0)).numpy())


def test_noise_is_relative_to_each_column() -> None:
    clean, noisy = (tasks.teacher(2, d_in=20, d_out=5, num_samples=4000, noise=n, seed=1).y for n in (0.0, 0.2))
    assert clean is not None
    assert noisy is not None
    ratio = (noisy - clean).std(0) / clean.std(0)
    # the standard deviation of 4000 normal draws scatters by 1/sqrt(8000): five of these
    assert np.abs(ratio / 0.2 - 1).max() < 5 / np.sqrt(8000)


def test_same_seed_same_bits_other_seed_other_data() -> None:
    first, again, other = (tasks.teacher(2, d_in=17, d_out=3, num_samples=30, noise=0.1, seed=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(first.target, again.target)
    np.testing.assert_array_equal(first.x, again.x)
    assert not np.array_equal(first.x, other.x)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"rank": 3, "d_in": 20, "latent_dim": 10}, r"d_in >= 2 latent_dim \+ 1 = 21.*pass latent_dim <= 9"),
        ({"rank": 3, "d_in": 6}, "d_in >= 2 latent_dim"),
        ({"rank": 5, "d_in": 30, "latent_dim": 4}, "latent_dim >= rank"),
        ({"rank": 0, "d_in": 30}, "1 <= rank <= d_out"),
        ({"rank": 9, "d_in": 30}, "1 <= rank <= d_out"),
        ({"rank": 2, "d_in": 30, "noise": -1.0}, "noise >= 0"),
        ({"rank": 2, "d_in": 30, "noise": float("nan")}, "noise >= 0"),
    ],
)
def test_impossible_teachers_are_refused(arguments: dict[str, float], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        tasks.teacher(d_out=8, num_samples=10, **arguments)  # type: ignore[arg-type]


def test_the_reference_problem_has_its_stated_scales() -> None:
    task = tasks.teacher_reference()
    eps32 = rounding(size=256, dtype=torch.float32)
    assert task.x.shape == task.target.shape == (256, 50)
    assert (task.target**2).sum(1).mean() == pytest.approx(1, abs=eps32)
    assert (task.x**2).sum(1).mean() == pytest.approx(50, abs=50 * eps32)
    # a fingerprint of the problem that benchmarks quote (torch 2.13, CPU generator, seed 0)
    assert task.target[0, :3] == pytest.approx(FINGERPRINT, rel=0, abs=eps32)
    assert tasks.teacher_reference(seed=1).target[0, 0] != pytest.approx(FINGERPRINT[0], rel=1e-3)


FINGERPRINT = (-0.11026488010214054, 0.038440758110155286, 0.026599523049349864)


@pytest.mark.parametrize(("dimensions", "residual"), [((20, 5, 20), False), ((30, 6, 3, 30), True), ((4, 2, 3), False)])
def test_a_composed_teacher_has_its_least_dimension_and_inputs_that_fill_their_space(
    dimensions: tuple[int, ...], *, residual: bool
) -> None:
    task = tasks.composed_teacher(dimensions, num_samples=400, residual=residual, seed=1)
    assert task.true_rank == task.jacobian_rank == min(dimensions)
    assert task.x.shape == (400, dimensions[0])
    assert task.target.shape == (400, dimensions[-1])
    for columns in (task.x, task.target):
        np.testing.assert_allclose(columns.mean(0), 0, atol=1e-12)
        np.testing.assert_allclose(columns.std(0), 1, rtol=1e-12)
    assert np.linalg.svd(task.x)[1].min() > 0.5 * 400**0.5
    # a teacher of latent dimension k bends its inputs out of few directions; these have none that is empty
    narrow = tasks.teacher(min(dimensions), d_in=2 * min(dimensions) + 1, d_out=9, num_samples=400, seed=1)
    assert np.linalg.svd(narrow.x - narrow.x.mean(0))[1].min() < 0.5 * 400**0.5


@pytest.mark.parametrize("residual", [False, True])
def test_a_composed_teacher_factors_through_its_least_dimension_only(residual: bool) -> None:  # noqa: FBT001
    """Differences of neighbours: their outputs span as many directions as the least dimension, not one more."""
    x = torch.randn(1, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for inner, seed in ((3, 4), (2, 5)):
        maps = composed_maps((12, 6, inner, 9), residual=residual, seed=seed)

        def through(row: torch.Tensor, maps: list[Map] = maps) -> torch.Tensor:
            for g in maps:
                row = g(row)
            return row

        J: torch.Tensor = torch.autograd.functional.jacobian(through, x)[0, :, 0]  # type: ignore[no-untyped-call]
        assert int(torch.linalg.matrix_rank(J, rtol=rounding(size=100))) == inner


def test_bad_dimensions_of_a_composed_teacher_are_refused() -> None:
    for dimensions in ((3, 3), (3, 0, 3)):
        with pytest.raises(ValueError, match="needs three dimensions or more"):
            tasks.composed_teacher(dimensions, num_samples=9)
