"""Matrix files in, the matrix or one line out."""

from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import DataError
from isthmus.tasks import read_matrix

A = np.array([[0.0, 1.0, 2.0], [3.0, -4.5, 1e-30]])


def test_each_format_gives_the_same_matrix(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", A)
    np.savez(tmp_path / "a.npz", weight=A)
    np.savez(tmp_path / "b.npz", x=A, y=A + 1)
    np.savetxt(tmp_path / "a.csv", A, delimiter=",", fmt="%.17g")
    (tmp_path / "a.tsv").write_text("u\tv\tw\n0\t1\t2\n3\t-4.5\t1e-30\n")
    for name in ("a.npy", "a.npz", "b.npz", "a.csv", "a.tsv"):
        np.testing.assert_array_equal(read_matrix(tmp_path / name), A)


def test_a_first_line_of_numbers_is_a_row_even_if_it_counts(tmp_path: Path) -> None:
    # a table of samples takes 0,1,2 for column names; a matrix has none
    (tmp_path / "a.csv").write_text("0,1,2\n3,4,5\n")
    assert read_matrix(tmp_path / "a.csv").shape == (2, 3)


def test_a_vector_is_one_column(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.arange(3))
    assert read_matrix(tmp_path / "v.npy").shape == (3, 1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "1", "unknown extension '.txt'"),
        ("a.csv", None, "no such file"),
        ("a.csv", "", "no row of numbers"),
        ("a.csv", "u,v\n", "no row of numbers"),
        ("a.csv", "1,2\n3\n", "line 2 has 1 numbers, line 1 has 2"),
        ("a.csv", "1,2\n3,x\n", "line 2 holds 'x'"),
        ("a.csv", "1,2\n3,nan\n", "missing value or NaN in row 2"),
        ("a.csv", "1,2\n3,inf\n", "infinity in row 2"),
        ("a.npy", "no array", "cannot be read as .npy"),
        ("a.npz", "no archive", "cannot be read as .npz"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_matrix(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_bad_arrays_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", A.astype(np.complex128))
    np.save(tmp_path / "t.npy", np.zeros((2, 2, 2)))
    np.save(tmp_path / "e.npy", np.zeros((0, 2)))
    np.savez(tmp_path / "two.npz", a=A, b=A)
    for name, message in (("c.npy", "complex"), ("t.npy", r"\(2, 2, 2\)"), ("e.npy", "is empty"), ("two.npz", "a, b")):
        with pytest.raises(DataError, match=message):
            read_matrix(tmp_path / name)
