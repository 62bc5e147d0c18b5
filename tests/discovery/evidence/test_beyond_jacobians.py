"""Certificates beyond Jacobians raise the interval where Jacobians stay below the rank, and prove nothing false."""

import json

import numpy as np
import pytest
import torch

from isthmus.constructions import lattice_network, parallel_sum, x_cross_example
from isthmus.discovery.data.problem import Problem, pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.evidence.beyond_jacobians import topological_certificates
from isthmus.discovery.evidence.certificates import certified_interval
from isthmus.networks import FullyConnected, jacobians
from isthmus.recheck import check
from isthmus.theory import jacobian_rank_lower_bound
from isthmus.training.losses import SQUARED

Halves = tuple[FullyConnected, FullyConnected]


def written(network: FullyConnected) -> dict[str, object]:
    weights, biases = network.written_layers()
    return {
        "weights": [w.numpy() for w in weights],
        "biases": [b.numpy() for b in biases or [w.new_zeros(len(w)) for w in weights]],
        "negative_slope": network.negative_slope,
        "linear": sorted(network.linear),
    }


def followed_by_the_identity(network: FullyConnected) -> Halves:
    return network, FullyConnected.from_layers([torch.eye(network.d_out)])


def posed(halves: Halves, x: np.ndarray) -> Problem:
    with torch.no_grad():
        y = halves[1](halves[0](torch.from_numpy(x))).numpy()
    heldout = np.arange(len(x)) >= len(x) * 3 // 4
    return pose(x, y, heldout, loss=SQUARED, inputs=Standardiser.of(x), targets=Standardiser.of(y))


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def triod() -> FullyConnected:
    """The plane on three arms: each third of the circle's way passes through 0, and antipodes are on different arms.

    Arm a has min(l_1, l_2, l_3) where that is positive, 120 degrees wide: rank 1 in every Jacobian.
    """

    def linear(zero: float, one: float) -> list[float]:
        """That is 0 at one angle and 1 at the other, in degrees."""
        at = np.deg2rad([[zero], [one]])
        return np.linalg.solve(np.hstack([np.cos(at), np.sin(at)]), [0.0, 1.0]).tolist()

    network: FullyConnected | None = None
    for arm in (0.0, 120.0, 240.0):
        flat = np.deg2rad([[arm], [arm + 60.0]])
        middle = np.linalg.solve(np.hstack([np.cos(flat), np.sin(flat)]), [1.0, 1.0]).tolist()
        slopes = [linear(arm - 30, arm), middle, linear(arm + 90, arm + 60), [0.0, 0.0]]
        height = lattice_network(torch.tensor(slopes, dtype=torch.float64), torch.zeros(4).double(), [[0, 1, 2], [3]])
        weights, biases = height.written_layers()
        assert biases is not None
        way = torch.tensor([[np.cos(np.deg2rad(arm))], [np.sin(np.deg2rad(arm))]], dtype=torch.float64)
        one = FullyConnected.from_layers([*weights[:-1], way @ weights[-1]], [*biases[:-1], torch.zeros(2)])
        network = one if network is None else parallel_sum(network, one).network
    assert network is not None
    return network


def test_the_x_cross_is_certified_by_three_rows() -> None:
    halves = followed_by_the_identity(x_cross_example().network)
    found = certified_interval(halves, posed(halves, rows(80, 2)), 2)
    assert (found.lower, found.upper) == (2, 2)
    assert "the value of the third is never met" in found.lower_reason
    assert jacobian_rank_lower_bound(jacobians(halves[0], torch.from_numpy(rows(500, 2, 1))), tolerance=1e-9).rank == 1


def test_a_circle_is_certified_by_its_antipodes() -> None:
    halves = followed_by_the_identity(triod())
    angles = np.linspace(0, 2 * np.pi, 80, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)], 1)
    found = certified_interval(halves, posed(halves, circle), 2)
    assert (found.lower, found.upper) == (2, 2), found.lower_reason
    networks = {"encoder": written(halves[0]), "decoder": written(halves[1])}
    certificates = [c for c, _ in topological_certificates(halves, circle, range(80), rank=2, above=1)]
    antipodal = [c for c in certificates if c["kind"] == "antipodal_sphere"]
    assert any(check({**c, **networks}).refusal is None for c in antipodal)
    assert jacobian_rank_lower_bound(jacobians(halves[0], torch.from_numpy(rows(500, 2))), tolerance=1e-9).rank == 1


def test_the_identity_of_a_sphere_needs_its_space() -> None:
    """S^2 has tangent spaces of two dimensions; no two numbers tell its antipodes apart."""
    halves = followed_by_the_identity(FullyConnected.from_layers([torch.eye(3)]))
    certificates = topological_certificates(halves, rows(60, 3), range(60), rank=3, above=2)
    networks = {"encoder": written(halves[0]), "decoder": written(halves[1])}
    proved = [c for c, _ in certificates if check({**c, **networks}).refusal is None]
    assert {c["claim"] for c in proved} == {3}
    flat = {**networks, "encoder": written(FullyConnected.from_layers([torch.diag(torch.tensor([1.0, 1.0, 0.0]))]))}
    for certificate in proved:
        assert "antipodes come within" in str(check({**certificate, **flat}).refusal)


@pytest.mark.parametrize("seed", range(12))
def test_a_map_through_fewer_dimensions_is_never_certified(seed: int) -> None:
    rank = 1 + seed % 2
    encoder = FullyConnected(3, rank, width=12, depth=2, seed=seed, dtype=torch.float64)
    decoder = FullyConnected(rank, 4, width=12, depth=2, seed=seed + 50, dtype=torch.float64)
    x = rows(60, 3, seed)
    networks = {"encoder": written(encoder), "decoder": written(decoder)}
    for certificate, _ in topological_certificates((encoder, decoder), x, range(60), rank=3, above=0):
        if int(str(certificate["claim"])) > rank:
            assert check({**certificate, **networks}).refusal is not None


def test_forged_numbers_are_refused() -> None:
    halves = followed_by_the_identity(x_cross_example().network)
    networks = {"encoder": written(halves[0]), "decoder": written(halves[1])}
    certificates = topological_certificates(halves, rows(80, 2), range(80), rank=2, above=1)
    [good, *_] = [c for c, _ in certificates if check({**c, **networks}).refusal is None]
    assert good["kind"] == "betweenness_network"
    good = json.loads(json.dumps(good))  # as a run folder keeps it
    assert check({**good, **networks}).refusal is None
    forged = {
        "proves rank 2": {**good, "claim": 3},
        "comes within": {**good, "cells": 1},
        "number of cells": {**good, "cells": 10**9},
        "a scale is not positive": {**good, "scales": [-1.0, 1.0]},
        "three points": {**good, "x": [[1.0, 1.0]]},
        "comes within .* of its value": {**good, "x": [[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]]},
    }
    for why, witness in forged.items():
        refusal = check({**witness, **networks}).refusal
        assert refusal is not None
        assert why.split(" .* ")[0] in refusal
    sphere = {"kind": "antipodal_sphere", "claim": 2, "centre": [0.0, 0.0], "axes": [[1.0, 0.0]], "cells": 4}
    assert "k + 1 axes" in str(check({**sphere, "scales": [1.0, 1.0], **networks}).refusal)
    tilted = {**sphere, "axes": np.eye(2).tolist(), "scales": [1.0, 1.0], "cells": 4096}
    assert "antipodes come within" in str(check({**tilted, **networks}).refusal)  # it vanishes on the axes


def test_rows_of_a_flat_map_that_fills_the_plane_certify_it_by_their_tree() -> None:
    x = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), -1).reshape(-1, 2)
    halves = followed_by_the_identity(FullyConnected.from_layers([torch.eye(2)]))
    networks = {"encoder": written(halves[0]), "decoder": written(halves[1])}
    [tree] = [c for c, _ in topological_certificates(halves, x, range(36), rank=2, above=1) if "tree" in str(c["kind"])]
    assert check({**tree, **networks}).refusal is None
    line = {**networks, "encoder": written(FullyConnected.from_layers([torch.diag(torch.tensor([1.0, 0.0]))]))}
    assert "the tree is" in str(check({**tree, **line}).refusal)
    assert "the tree is" in str(check({**tree, "x": x[:5].tolist(), **networks}).refusal)
    assert "positive units" in str(check({**tree, "units": [0.0, 1.0], **networks}).refusal)


def test_rounding_is_counted_where_values_are_large() -> None:
    """A line moved to 1e12: what its values differ by is rounding, and proves nothing."""
    line = FullyConnected.from_layers([torch.full((2, 2), 1e-6)], [torch.tensor([1e12, -1e12])])
    networks = {"encoder": written(line), "decoder": written(FullyConnected.from_layers([torch.eye(2)]))}
    x = [[0.0, 1.0], [1.0, 0.3], [2.0, -7.0]]
    witness = {"kind": "betweenness_network", "claim": 2, "x": x, "cells": 4096, "scales": [1e-6, 1e-6]}
    assert "comes within" in str(check({**witness, **networks}).refusal)
