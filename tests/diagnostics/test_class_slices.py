"""Regions of classifiers on planes: known sectors, the same answer as the module, the picture in two lines."""

import math
from collections.abc import Callable

import matplotlib
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from foreign_modules import samples, seeded
from isthmus import plots
from isthmus.diagnostics import class_slice
from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected
from tolerances import rounding

matplotlib.use("Agg")
DOUBLE = torch.float64
ANGLES = torch.tensor([0.0, 2.0, 4.0], dtype=DOUBLE) * math.pi / 3
DIRECTIONS = torch.stack([ANGLES.cos(), ANGLES.sin()], 1)


def area(corners: np.ndarray) -> float:
    u, v = corners[np.isfinite(corners).all(1)].T
    return 0.5 * abs(float(u @ np.roll(v, -1) - v @ np.roll(u, -1)))


def three_sectors() -> nn.Sequential:
    """Outputs <d_c, x - (1, 2)> by relu(z) - relu(-z): the three classes meet at (1, 2)."""
    first, last = nn.Linear(2, 6, dtype=DOUBLE), nn.Linear(6, 3, bias=False, dtype=DOUBLE)
    with torch.no_grad():
        first.weight.copy_(torch.cat([DIRECTIONS, -DIRECTIONS]))
        first.bias.copy_(-(first.weight @ torch.tensor([1.0, 2.0], dtype=DOUBLE)))
        last.weight.copy_(torch.cat([torch.eye(3), -torch.eye(3)], 1).double())
    return nn.Sequential(first, nn.ReLU(), nn.Dropout(), last)


def test_three_sectors_meet_where_they_were_made_to_meet() -> None:
    module = three_sectors()
    x = torch.tensor([[0.0, 1.0], [2.0, 3.0], [1.0, 2.0]], dtype=DOUBLE)
    table = class_slice(module, x, class_names=["east", "north west", "south west"])
    np.testing.assert_allclose(table["tripoints"].values, [[1.0, 2.0]], atol=1e-6)
    assert set(table["label"].values.tolist()) == {0, 1, 2}
    np.testing.assert_array_equal(table["points"].values, x.numpy())
    covered = sum(map(area, table["vertices"].values))
    assert abs(covered - 9.0) <= rounding(size=100), "the box is 1.5 times as wide as the samples"
    # the first class wins within 60 degrees of its direction: of a square of half side 1.5 that is less than a third
    own = sum(area(v) for v, label in zip(table["vertices"].values, table["label"].values, strict=True) if label == 0)
    assert abs(own - (4.5 - 1.5**2 * math.tan(math.pi / 6))) <= 1e-6
    legend = plots.decision_regions(table).get_legend()
    assert legend is not None
    assert [t.get_text() for t in legend.get_texts()] == ["east", "north west", "south west", "samples", "tripoints"]


def mlp(activation: Callable[[], nn.Module]) -> nn.Module:
    return nn.Sequential(
        nn.Linear(5, 8), activation(), nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 6)), activation(),
        nn.Linear(6, 4),
    )  # fmt: skip


MODULES: dict[str, Callable[[], nn.Module]] = {
    "relu": lambda: seeded(lambda: mlp(nn.ReLU)).double(),
    "leaky relu": lambda: seeded(lambda: mlp(lambda: nn.LeakyReLU(0.3))).double(),
    "ours": lambda: FullyConnected(5, 4, width=8, depth=4, linear=(2,), seed=0, dtype=DOUBLE),
}


@pytest.mark.parametrize("name", MODULES)
def test_every_piece_has_the_label_that_the_module_answers_inside_it(name: str) -> None:
    module, x = MODULES[name](), samples(40, 5, dtype=DOUBLE)
    with torch.no_grad():
        list(module.parameters())[-1].sub_(module(x).mean(0))  # so that no class wins everywhere
    origin, basis = x[0], x[1:3] - x[0]
    table = class_slice(module, x, plane=(origin, basis))
    inside = torch.from_numpy(np.nanmean(table["vertices"].values, axis=1))
    with torch.no_grad():
        outputs = module(origin + inside @ basis)
    labels = torch.from_numpy(table["label"].values)
    behind = outputs.amax(1) - outputs.gather(1, labels[:, None])[:, 0]
    assert float(behind.max()) <= rounding(size=100)
    assert len(set(labels.tolist())) >= 2
    np.testing.assert_allclose(table["points"].values, [[0, 0], [1, 0], [0, 1]], atol=1e-12)


def test_by_default_the_plane_is_that_of_the_principal_components() -> None:
    x = samples(30, 5, dtype=DOUBLE)
    x[:, 2:] = 0.0
    table = class_slice(MODULES["relu"](), x)
    assert len(table["points"]) == 30
    assert len(class_slice(MODULES["relu"](), samples(30, 5, dtype=DOUBLE))["points"]) == 0


X = samples(9, 5, dtype=DOUBLE)
BAD: dict[str, tuple[Callable[[], nn.Module], Tensor, dict[str, object], type[Exception], str]] = {
    "a curve": (lambda: mlp(nn.GELU).double(), X, {}, ValueError, "of Sequential '1' is something else"),
    "relu at the end": (lambda: nn.Sequential(nn.Linear(5, 3), nn.ReLU()).double(), X, {}, ValueError, "1 layers"),
    "two slopes": (
        lambda: nn.Sequential(nn.Linear(5, 3), nn.ReLU(), nn.Linear(3, 3), nn.LeakyReLU(), nn.Linear(3, 2)).double(),
        X, {}, ValueError, r"slopes \[0.0, 0.01\]",
    ),
    "one column": (MODULES["ours"], X[:, :1], {}, ShapeError, "3 rows and 2 columns"),
    "names": (MODULES["ours"], X, {"class_names": ["a"]}, ShapeError, "each of the 4 outputs; got 1"),
    "no plane": (MODULES["ours"], X, {"plane": (X[0], X[1:3] * 0)}, ValueError, "two independent directions"),
    "one line": (MODULES["ours"], X[:, :1] * torch.ones(1, 5).double(), {}, ValueError, "two independent directions"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_one_line(case: str) -> None:
    make, x, given, error, message = BAD[case]
    with pytest.raises(error, match=message):
        class_slice(make(), x, **given)  # pyright: ignore[reportArgumentType]
