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
from isthmus.recheck import along, check, layers_of
from isthmus.theory import jacobian_rank_lower_bound
from isthmus.training.losses import CROSS_ENTROPY, SQUARED

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


@pytest.mark.slow
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


@pytest.mark.dear(1)
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


def meeting_classes(centre: tuple[float, float], depth: int) -> Halves:
    """Scores whose classes meet at `centre`, each Jacobian of rank 1; before them `depth` layers that change nothing.

    Each of these is written as (z, -z), which doubles the product of norms.
    """
    weights, biases = triod().written_layers()
    assert biases is not None
    angle = torch.tensor([0.0, 120.0, 240.0], dtype=torch.float64).deg2rad()
    arms = torch.stack([angle.cos(), angle.sin()], 1)
    scores = FullyConnected.from_layers([*weights[:-1], arms @ weights[-1]], [*biases[:-1], arms @ biases[-1]])
    eye, nothing = torch.eye(2, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    split, join = torch.cat([eye, -eye]), torch.cat([eye, -eye], 1)
    first = -split @ torch.tensor(centre, dtype=torch.float64)
    still = FullyConnected.from_layers(
        [split, *[split @ join] * (depth - 1), join], [first, *[nothing] * (depth - 1), nothing[:2]]
    )
    return still, scores


@pytest.mark.slow
@pytest.mark.theorem("FC-45")
def test_classes_that_meet_are_certified_where_the_norms_of_the_weights_prove_nothing() -> None:
    halves, x = meeting_classes((1.4, 1.1), depth=30), rows(80, 2)
    with torch.no_grad():
        labels = halves[1](halves[0](torch.from_numpy(x))).argmax(1).double().numpy()
    problem = pose(x, labels, np.arange(80) >= 60, loss=CROSS_ENTROPY, inputs=Standardiser.of(x), targets=None)
    found = certified_interval(halves, problem, 2)
    assert (found.lower, found.upper) == (2, 2)
    assert "(tripoint)" in found.lower_reason
    without = topological_certificates(halves, x, range(80), rank=2, above=1)
    networks = {"encoder": written(halves[0]), "decoder": written(halves[1])}
    assert all(check({**c, **networks}).refusal is not None for c, _ in without)


def test_a_tripoint_far_from_all_rows_is_found_on_their_plane() -> None:
    """Rows on three rays through one point, two of them in the same third: their ways cross the third class."""
    halves = meeting_classes((0.0, 0.0), depth=1)
    angle = np.deg2rad([20.0, 140.0, 260.0, 30.0])[:, None]
    x = np.hstack([np.cos(angle), np.sin(angle)]) * np.array([[1.0], [0.9], [1.1], [0.5]])
    found = [c for c, _ in topological_certificates(halves, x, range(4), rank=2, above=1, classes=True)]
    around = [c for c in found if c["kind"] == "tripoint_network" and np.abs(np.array(c["x"])).max() < 0.3]
    networks = {"encoder": written(halves[0]), "decoder": written(halves[1])}
    assert around
    assert all(check({**c, **networks}).refusal is None for c in around)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_classes_of_a_map_through_one_dimension_are_never_certified(seed: int) -> None:
    encoder = FullyConnected(2, 1, width=12, depth=3, seed=seed, dtype=torch.float64)
    decoder = FullyConnected(1, 4, width=24, depth=2, seed=seed + 50, dtype=torch.float64)
    with torch.no_grad():  # scores that cross often
        decoder.weights[0].mul_(4)
        decoder.biases[0].copy_(torch.linspace(-2, 2, 24))
    networks = {"encoder": written(encoder), "decoder": written(decoder)}
    x = rows(60, 2, seed)
    certificates = topological_certificates((encoder, decoder), x, range(60), rank=2, above=0, classes=True)
    assert all(check({**c, **networks}).refusal is not None for c, _ in certificates)
    with torch.no_grad():
        labels = decoder(encoder(torch.from_numpy(x))).argmax(1).tolist()
    for i, j, k in ((0, 1, 2), (3, 4, 5), (6, 7, 8)):  # and not by triples that the search would not hand on either
        shares = [np.linspace(0, 1, 2**9).tolist()] * 3
        forged = {"x": x[[i, j, k]].tolist(), "classes": [labels[i], labels[j], labels[k]], "shares": shares}
        assert check({"kind": "tripoint_network", "claim": 2, **forged, **networks}).refusal is not None


def test_forged_tripoints_are_refused() -> None:
    halves = meeting_classes((0.0, 0.0), depth=2)
    networks = {"encoder": written(halves[0]), "decoder": written(halves[1])}
    found = topological_certificates(halves, rows(80, 2), range(80), rank=2, above=1, classes=True)
    good = next(c for c, _ in found if c["kind"] == "tripoint_network")
    assert check({**json.loads(json.dumps(good)), **networks}).refusal is None
    corners, ways = np.array(good["x"]), json.loads(json.dumps(good["shares"]))
    forged = {
        "three classes prove rank 2": {"claim": 3},
        "needs three points and classes": {"classes": [0, 0, 1]},
        "there is no such class": {"classes": [0, 1, 7]},
        "is not surely of class": {"x": corners[[1, 2, 0]].tolist()},
        "shares do not rise from 0 to 1": {"shares": [ways[0][:-1], *ways[1:]]},
        "its class may lead by": {"shares": [[0.0, 1.0]] * 3},
    }
    for why, change in forged.items():
        assert why in str(check({**good, **change, **networks}).refusal)


@pytest.mark.parametrize("slope", [0.0, 0.3, -0.5])
def test_values_along_a_way_lie_where_they_are_enclosed(slope: float) -> None:
    """Against numbers of twice the digits, with inputs far from zero as well."""
    network = FullyConnected(3, 2, width=7, depth=4, seed=3, negative_slope=slope, dtype=torch.float64)
    layers = layers_of(written(network))
    for size in (1.0, 1e6):
        centre, half = size + rows(200, 3), 10.0 ** np.linspace(-12, 0, 200)[:, None] * rows(200, 3, 1)
        c, h, e = along(layers, centre, half, np.zeros_like(half))
        for t in np.linspace(-1, 1, 9):
            point = centre.astype(np.longdouble) + t * half.astype(np.longdouble)
            for layer in layers:
                point = point @ layer.weight.T.astype(np.longdouble) + layer.bias
                point = np.where(point >= 0, point, layer.slope * point)
            assert np.all(np.abs(point - (c + t * h)) <= e)
        assert np.median(e / np.abs(c).max()) < 1e-6  # no wider than it has to be
