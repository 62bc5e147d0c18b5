import torch

from isthmus.constructions import rank_one_interpolator
from isthmus.figures.large_depth import NOISE, between, square
from isthmus.networks.layer_widths import widened


def test_added_neurons_change_an_interpolator_little() -> None:
    points = square(6)
    start = rank_one_interpolator(points, points, depth=8).network
    network = widened(start, 7, noise=NOISE)
    assert network.dimensions[1:-1] == tuple(max(7, d) for d in start.dimensions[1:-1])
    with torch.no_grad():
        moved = (network(points) - points).norm() / points.norm()
    assert 0 < moved < 0.5


def test_points_between_neighbours_along_the_direction() -> None:
    points = square(20)
    found = rank_one_interpolator(points, points, depth=3)
    places, middles = (points @ found.direction).sort().values, between(found, points) @ found.direction
    assert bool(((middles > places[:-1]) & (middles < places[1:])).all())
