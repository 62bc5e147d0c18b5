"""Entries of the ledger on networks of one neuron, against numbers worked out by hand. All networks: `test_ledger`."""

import math

import pandas as pd
import torch
from torch import Tensor

from isthmus.networks import FullyConnected
from isthmus.theory import certificates
from theorem_checks import assert_close


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)[:, None]


def scalar_network(*weights: float) -> FullyConnected:
    """A chain of single neurons with biases of zero."""
    return FullyConnected.from_layers([column(w) for w in weights], [column(0.0)[0] for _ in weights])


def value(table: pd.DataFrame, name: str) -> float:
    row = table[table["name"] == name].iloc[0]
    assert row["applies"], row["reason"]
    return float(row["value"])


def test_two_points_on_the_two_sides_of_a_kink() -> None:
    """relu(3 x), Jacobians 3 at x and 0 at y: C1 = |J a_0(y)| = 1, since J a_1(y) = 0; (2 / 2) (3 + 0) + 3 / 1.

    C1 of the other point would be |J a_1(x)| = 3, and the bound 4.
    """
    table = certificates(scalar_network(3.0, 1.0), column(1.0, -1.0))
    assert_close(value(table, "two_point_bound"), 6.0, relative=1e-9)


def test_two_points_seen_through_a_steep_end() -> None:
    """3 relu(x): C1 = 1, C2 = |J(z_1 -> f)(x)| = 3, at y it would be 1: (2 / 2) (3 + 0) + 3 / 3."""
    table = certificates(scalar_network(1.0, 3.0), column(1.0, -1.0))
    assert_close(value(table, "two_point_bound"), 4.0, relative=1e-9)


def test_the_tangent_scale_is_that_of_the_worst_sample() -> None:
    """2 x at 1 and 3: Tr Theta = x^2 + 1 is 2 and 10, c1 = 4 - 1, B = 10 e^3 / 2^2."""
    table = certificates(scalar_network(2.0), column(1.0, 3.0))
    assert_close(value(table, "activation_norm_bound"), 10 * math.exp(3) / 4, relative=1e-12)
