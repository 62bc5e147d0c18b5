"""The library that multiplies: the same numbers by each, a choice that a fit keeps, none where a rule is known."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from isthmus import FullyConnected, LeakyResNet, fit
from isthmus.training.checkpoint import load_state, save_state, save_twice
from isthmus.training.fit_checkpoint import CheckpointFile
from isthmus.training.fitting import Fitting
from isthmus.training.limits import Limits
from isthmus.training.losses import SQUARED, DataLoss
from isthmus.training.sharded.row_step import ShardedStep
from isthmus.training.sharded.team import Team
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.steps import products
from isthmus.training.steps.products import (
    FEWEST,
    MOST,
    ProductChoice,
    Products,
    Shape,
    activated,
    added,
    kept_choices,
    machine_file,
    measured_shape,
    onednn_is_faster,
    product,
)
from isthmus.training.steps.step import Step, step_of
from tolerances import rounding

SIZE, ROWS = 64, 700  # just above the least that is measured; sums of 64 terms have the same bits in both libraries
SHORT = (Adam(12), LBFGS(12, plateau=0.0))

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")


@pytest.fixture(autouse=True)
def _without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def matrices() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(60, 40, generator=generator), torch.randn(30, 41, generator=generator)


def test_products_by_either_library_agree_however_the_factors_lie() -> None:
    x, whole = matrices()
    w = whole[:, :40]  # a part of rows that are longer, as the weights of a leaky layer without its bias
    factors = {"N T": (x, w.t()), "T N": (torch.ones(60, 30).t(), x), "N N": (torch.ones(60, 30), w)}
    for name, (left, right) in factors.items():
        outs = [product(left, right, torch.empty(len(left), right.shape[1]), ProductChoice(c)) for c in (True, False)]
        torch.testing.assert_close(outs[0], outs[1], rtol=0, atol=rounding(size=60, dtype=torch.float32), msg=name)
        starts = [torch.ones_like(outs[0]) for _ in outs]
        for start, by_onednn in zip(starts, (True, False), strict=True):
            result = added(start, left, right, beta=0.5, alpha=-2.0, out=start, choice=ProductChoice(by_onednn))
            assert result is start
        torch.testing.assert_close(starts[0], 0.5 - 2 * outs[1], rtol=0, atol=rounding(size=120, dtype=torch.float32))
        torch.testing.assert_close(starts[1], starts[0], rtol=0, atol=rounding(size=120, dtype=torch.float32))


@pytest.mark.parametrize("slope", [None, 0.0, 0.3, -0.4])
@pytest.mark.parametrize("biased", [True, False])
def test_activated_products_follow_their_formula(slope: float | None, biased: bool) -> None:
    x, whole = matrices()
    w, offset = whole[:, :40].contiguous(), whole[:, 40].clone()
    bias, z = (offset, x @ w.t() + offset) if biased else (None, x @ w.t())
    expected = z if slope is None else torch.where(z > 0, z, slope * z)
    for by_onednn in (True, False):
        out = torch.empty(60, 30)
        activated(x, w.t(), bias, slope=slope, out=out, choice=ProductChoice(by_onednn))
        torch.testing.assert_close(out, expected, rtol=0, atol=rounding(size=60, dtype=torch.float32))


def test_what_is_measured_stands_for_larger_products() -> None:
    small, large = (measured_shape(torch.empty(n, 100), torch.empty(100, 80)) for n in (1000, 10**6))
    assert (small.rows, small.inner, small.columns) == (1000, 100, 80)
    assert large.rows < 10**6
    assert MOST / 2 < large.rows * large.inner * large.columns <= MOST
    assert measured_shape(torch.empty(2 * 10**6, 100), torch.empty(100, 80)) == large
    turned = measured_shape(torch.empty(10**6, 100).t(), torch.empty(10**6, 80))
    assert (turned.rows, turned.inner, turned.columns) == (100, large.rows, 80)
    assert turned.left_turned
    assert not turned.right_turned


def test_nothing_is_measured_where_a_rule_is_known() -> None:
    products, side = Products(), round(FEWEST ** (1 / 3))
    for left in (torch.empty(side - 2, side), torch.empty(4 * side, side, dtype=torch.float64)):
        assert not products.choice(left, left.new_empty(side, side)).by_onednn
    assert products.chosen() == {}
    left, right = torch.empty(side + 2, side + 2), torch.empty(side + 2, side + 2)
    choice = products.choice(left, right)
    assert list(products.chosen().values()) == [choice.by_onednn]
    assert onednn_is_faster(measured_shape(left, right)) is choice.by_onednn  # remembered in the process
    assert products.choice(left, right) is choice


def libraries_round_alike() -> bool:
    """Whether both give the same bits of a product as those of these steps: on some processors they share kernels."""
    left, right = data()[0], torch.randn(SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    pairs = [(left, right.t()), (left.t(), left), (left, right)]
    outs = [[product(a, b, torch.empty(len(a), b.shape[1]), ProductChoice(c)) for c in (True, False)] for a, b in pairs]
    return all(torch.equal(one, other) for one, other in outs)


@pytest.mark.parametrize("kind", ["fully connected", "leaky"])
def test_a_step_goes_over_to_what_it_is_told(kind: str) -> None:
    step, other = step_like(kind), step_like(kind)
    value, gradient = step(), step.gradient.clone()
    step.products.adopt(opposite(step))
    assert step() == pytest.approx(value, rel=rounding(size=ROWS, dtype=torch.float32))
    allowed = rounding(size=ROWS, dtype=torch.float32)
    torch.testing.assert_close(step.gradient, gradient, rtol=allowed, atol=allowed)
    assert libraries_round_alike() or not torch.equal(step.gradient, gradient)  # by another library: other last bits
    other()
    assert torch.equal(other.gradient, gradient)


def test_a_resumed_fit_keeps_the_choices_that_it_began_with(tmp_path: Path) -> None:
    whole, begun = fitting(None, None), fitting(tmp_path / "fit.pt", 15)
    whole.run()
    begun.run()
    x, y = data()
    found = fit(network(), x, y, ridge=0.01, solver=SHORT, checkpoint=tmp_path / "fit.pt")  # it would choose otherwise
    assert torch.equal(parameters(found.network), parameters(whole.step.network))
    afresh = fit(network(), x, y, ridge=0.01, solver=SHORT)
    assert libraries_round_alike() or not torch.equal(parameters(afresh.network), parameters(whole.step.network))


def test_a_checkpoint_without_choices_is_gone_on_from(tmp_path: Path) -> None:
    path = tmp_path / "fit.pt"
    fitting(path, 15).run()
    state = load_state(path)
    assert state is not None
    assert state.pop("products")
    save_state(path, state)
    found = fit(network(), *data(), ridge=0.01, solver=SHORT, checkpoint=path)
    assert found.gradient_evaluations >= 24
    assert found.history.objective[-1] < found.history.objective[0]


def test_where_processes_share_the_rows_nothing_is_measured() -> None:
    x, y = data()
    step = ShardedStep(network(), x, DataLoss(SQUARED, y), 0.01, total=len(x), team=Team())
    step()
    assert not step.products.choice(x, torch.empty(SIZE, SIZE)).by_onednn
    assert step.products.chosen() == {}


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(ROWS, SIZE, generator=generator), torch.randn(ROWS, SIZE, generator=generator)


def network() -> FullyConnected:
    return FullyConnected(SIZE, SIZE, width=SIZE, depth=3, seed=2)


def step_like(kind: str) -> Step:
    leaky = LeakyResNet(SIZE, SIZE, width=SIZE, depth=3, effective_depth=2.0, seed=2)
    x, y = data()
    return step_of(leaky if kind == "leaky" else network(), x, DataLoss(SQUARED, y), 0.01)


def opposite(step: Step) -> dict[str, bool]:
    """What a measurement here would not choose, for all products of a step."""
    return {shape: not by_onednn for shape, by_onednn in step.products.chosen().items()}


def fitting(path: Path | None, stop: int | None) -> Fitting:
    """A fit with choices opposite to those measured, ended after so many iterations."""
    step = step_like("fully connected")
    step.products.adopt(opposite(step))
    kept = CheckpointFile(path, Team()) if path else None
    return Fitting(step, SHORT, Limits(), kept, lambda event: stop is not None and event.evaluations >= stop)


def parameters(network: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1) for p in network.parameters()])


@pytest.mark.slow
def test_the_choices_of_many_fits_are_kept_in_a_file_that_another_process_takes_over(tmp_path: Path) -> None:
    """Written before anything is computed with them: the other process would measure again, perhaps otherwise."""
    kept, network = tmp_path / "products.pt", FullyConnected(SIZE, SIZE, width=SIZE, depth=2, seed=0)
    x = torch.ones(ROWS, SIZE)
    code = (
        f"import torch; from pathlib import Path; torch.set_num_threads({torch.get_num_threads()});"
        "from isthmus.training.steps.products import Products, kept_choices\n"
        f"with kept_choices(Path({str(kept)!r})):\n"
        f"    choice = Products().choice(torch.ones({ROWS}, {SIZE}), torch.ones({SIZE}, {SIZE}))\n"
        "    print(choice.by_onednn)"
    )
    with kept_choices(kept):
        step_of(network, x, DataLoss(SQUARED, x), 1e-3)
        known = load_state(kept)
    assert known is not None
    shape = str(measured_shape(x, torch.ones(SIZE, SIZE)))
    assert shape in known["products"]
    other = {name: not by_onednn for name, by_onednn in known["products"].items()}
    save_state(kept, {"products": other})
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == [str(other[shape])]


def test_the_first_process_decides_for_all_on_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs of one command beside other work gave different numbers: each had measured for itself."""
    asked, other = Shape(200, 100, 100, False, False, 1), Shape(300, 100, 100, False, False, 1)

    def says(measured: bool, *, known: dict[str, bool] | None = None) -> bool:  # noqa: FBT001
        monkeypatch.setattr(products, "_KNOWN", {} if known is None else known)
        monkeypatch.setattr(products, "_measured", lambda _shape: measured)
        return onednn_is_faster(asked)

    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "cache"))
    assert [says(measured) for measured in (True, False)] == [True, True]
    known = {str(other): False}
    path = machine_file()
    assert path is not None
    save_twice(path, {"products": {str(asked): True, str(other): True}})
    assert says(False, known=known)
    assert known == {str(asked): True, str(other): False}, "what a run folder has said stays"
    for none in ("", str(path)):  # nothing is kept, and where nothing can be
        monkeypatch.setenv("ISTHMUS_CACHE", none)
        assert machine_file() is None
        assert [says(measured) for measured in (True, False)] == [True, False]
