"""Squares of activations are taken in as many threads as torch has, and other libraries keep theirs."""

import pytest
import torch
from threadpoolctl import ThreadpoolController
from torch import nn

import isthmus
from diagnostics.architectures import numbers
from isthmus.diagnostics.samples import Samples
from isthmus.diagnostics.session import open_session
from isthmus.errors import DataError


def blas_threads() -> set[int]:
    """Of all libraries of linear algebra in this process."""
    return {int(found["num_threads"]) for found in ThreadpoolController().info() if found["user_api"] == "blas"}


def test_sums_run_in_the_threads_of_torch_which_others_do_not_keep() -> None:
    heard, before = list[set[int]](), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadpoolController().limit(limits=2, user_api="blas"):
            with open_session(nn.Linear(5, 3), Samples.of(numbers(40, 5))) as session:
                session.sums(20, lambda _output, _start: heard.append(blas_threads()))
            assert blas_threads() == {2}
    finally:
        torch.set_num_threads(before)
    assert heard == [{1}, {1}]


def test_a_program_for_one_number_of_rows_says_how_it_takes_others() -> None:
    x = numbers(8, 5).float()
    fixed = torch.export.export(nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)), (x,)).module()
    assert isthmus.diagnose(fixed, x).layers.sizes["layer"] == 2
    with pytest.raises(DataError, match="exported for one number of rows: export it with dynamic_shapes"):
        isthmus.diagnose(fixed, numbers(60, 5).float())
