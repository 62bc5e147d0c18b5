import numpy as np
import pytest
from scipy.linalg import subspace_angles

from isthmus.discovery.groups.lattice_decoding import NOISES, _graphs, candidate_spans, candidates_of  # pyright: ignore[reportPrivateUsage]
from isthmus.discovery.groups.rational_rows import as_row, description_length
from isthmus.discovery.groups.varimax import orthonormal_rows


def test_candidates_know_their_angle_length_and_span() -> None:
    measured = orthonormal_rows(np.array([[1.0, 2, 3, 1], [0, 1, -1, 2]]))
    rows = np.array([[[2, 4, 6, 2], [0, 1, -1, 2]], [[1, 3, 2, 3], [0, 2, -2, 4]], [[1, 0, 0, 0], [0, 1, 0, 0]]])
    first, same, other = candidates_of(rows, measured)
    assert first.exact == (as_row([1, 2, 3, 1]), as_row([0, 1, -1, 2]))
    assert first.length == pytest.approx(sum(map(description_length, first.exact)))
    assert first.key == same.key != other.key
    assert first.angle == pytest.approx(0, abs=1e-12)
    assert other.angle == pytest.approx(subspace_angles(measured.T, np.eye(4)[:, :2]).max())


def test_the_metric_of_a_graph_is_the_angle_of_small_turns() -> None:
    """|rise dF fall^T|_F is the root of the sum of squared principal angles, to first order, also in a lattice."""
    generator = np.random.default_rng(0)
    frame = generator.integers(-2, 3, size=(4, 6)).astype(float)
    C = generator.normal(size=(2, 4))
    for graph in _graphs(C, frame @ frame.T):
        dF = 1e-6 * generator.normal(size=graph.entries.shape)
        R, moved = np.zeros((2, 4)), np.zeros((2, 4))
        for rows, entries in ((R, graph.entries), (moved, graph.entries + dF)):
            rows[:, graph.pivots], rows[:, graph.others] = np.eye(2), entries
        angles = subspace_angles((R @ frame).T, (moved @ frame).T)
        assert np.linalg.norm(graph.rise @ dF @ graph.fall.T) == pytest.approx(np.sqrt((angles**2).sum()), rel=1e-4)
        assert np.linalg.norm(dF) != pytest.approx(np.sqrt((angles**2).sum()), rel=0.01)  # control: no metric


def test_exact_spans_come_first() -> None:
    rows = np.array([[6, 3, -4, 0, 2], [0, 1, 1, -1, 0]])
    basis = orthonormal_rows(rows.astype(float))
    lists = candidate_spans(basis, np.eye(5, dtype=np.int64), basis)
    assert len(lists) == len(NOISES)
    assert lists[0][0].key == candidates_of(rows[None], basis)[0].key
    assert all(found.angle >= -1e-12 for listed in lists for found in listed)


def test_fractions_keep_to_their_denominators() -> None:
    basis = orthonormal_rows(np.array([[1.0, 0.4, 0.2]]))
    lists = candidate_spans(basis, np.eye(3, dtype=np.int64), basis, denominator=2)
    for candidate in (found for listed in lists for found in listed):
        row = candidate.exact[0]
        graphs = [[entry / row[pivot] for entry in row] for pivot in range(3) if row[pivot]]
        assert min(max(e.denominator for e in graph) for graph in graphs) <= 2
    assert as_row([2, 1, 0]) in {found.exact[0] for found in lists[-1]}
