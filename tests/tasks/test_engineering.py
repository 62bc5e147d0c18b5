"""Functions of engineering against values worked out by hand, and their gradients against the directions stated."""

import math

import numpy as np
import pytest
import torch

from isthmus.tasks import ENGINEERING, engineering, gradient_covariance, gradients
from isthmus.tasks.engineering import robot_arm
from tolerances import closed_form, rounding


@pytest.mark.parametrize("name", list(ENGINEERING))
def test_gradients_lie_in_the_directions_and_span_them(name: str) -> None:
    f = ENGINEERING[name]
    x = f.draw(2000, torch.Generator().manual_seed(0))
    scales = torch.tensor([high - low for low, high in f.ranges.values()], dtype=torch.float64)
    # in columns of equal range: otherwise the large ones hide what the others do
    jacobians = gradients(f, x)[:, 0] * scales
    basis = torch.linalg.qr((torch.from_numpy(f.directions) * scales).T)[0]
    size = float(jacobians.abs().max())
    assert float((jacobians - jacobians @ basis @ basis.T).abs().max()) <= rounding(size=1000) * size
    eigenvalues = torch.linalg.eigvalsh(jacobians.T @ jacobians / 2000)
    assert int((eigenvalues > rounding() * float(eigenvalues[-1])).sum()) == len(f.directions)
    fewer = basis[:, 1:]
    assert float((jacobians - jacobians @ fewer @ fewer.T).abs().max()) > 1e-7 * size


def test_an_arm_that_is_straight_reaches_its_length_wherever_it_points() -> None:
    columns = torch.tensor([1.3, 0, 0, 0, 0.2, 0.4, 0.6, 0.8], dtype=torch.float64)
    assert robot_arm(*columns).item() == pytest.approx(2.0, abs=closed_form())
    columns[1] = math.pi
    assert robot_arm(*columns).item() == pytest.approx(1.6, abs=closed_form())


def test_functions_have_their_textbook_values_at_the_middle_of_their_ranges() -> None:
    middle = {
        name: torch.tensor([(low + high) / 2 for low, high in f.ranges.values()], dtype=torch.float64)
        for name, f in ENGINEERING.items()
    }
    assert ENGINEERING["friedman"](middle["friedman"]).item() == pytest.approx(
        10 * math.sin(math.pi / 4) + 7.5, abs=closed_form(20)
    )
    # worked out by hand, step by step
    ratio = math.log(25_050 / 0.1)
    leak = 1 + 2 * 1400 * 89_335 / (ratio * 0.01 * 10_950) + 89_335 / 89.55
    flow = 2 * math.pi * 89_335 * 290 / (ratio * leak)
    assert ENGINEERING["borehole"](middle["borehole"]).item() == pytest.approx(flow, rel=closed_form())
    load = 175 * 9.725
    voltage = (12 * 47.5 / 147.5 + 0.74) * load / (load + 1.75) + 11.35 * 1.75 / (load + 1.75)
    voltage += 0.74 * 1.75 * load / ((load + 1.75) * 1.85)
    assert ENGINEERING["otl_circuit"](middle["otl_circuit"]).item() == pytest.approx(voltage, rel=closed_form())
    weight = 0.036 * 175**0.758 * 260**0.0035 * 8**0.6 * 30.5**0.006 * 0.75**0.04 * 13**-0.3 * (4.25 * 2100) ** 0.49
    assert ENGINEERING["wing_weight"](middle["wing_weight"]).item() == pytest.approx(
        weight + 175 * 0.0525, rel=closed_form()
    )


def test_a_piston_without_gas_pressure_swings_like_its_spring() -> None:
    columns = torch.tensor([45, 0.0125, 0.006, 3000, 1e-6, 293, 350], dtype=torch.float64)
    # as the pressure falls, V tends to that of the weight on the spring alone and the gas term vanishes
    x = columns.clone()
    x[0], x[2] = 45.0, 0.006
    assert ENGINEERING["piston"](x).item() == pytest.approx(2 * math.pi * math.sqrt(45 / 3000), rel=1e-3)
    assert 0.1 < engineering("piston", num_samples=500).target.mean() < 1.0


def test_the_standardised_covariance_is_that_of_scaled_columns() -> None:
    f = ENGINEERING["friedman"]
    found = f.standardised_covariance(num_samples=50_000)
    plain = gradient_covariance(f, f.draw(50_000, torch.Generator().manual_seed(0)))
    assert float((found * 12 - plain).abs().max()) <= closed_form(float(plain.abs().max()))
    # d f / d x3 = 40 (x3 - 1/2): its mean square is 1600 / 12
    assert float(plain[2, 2]) == pytest.approx(1600 / 12, rel=0.03)
    assert float(plain[3, 4]) == pytest.approx(50, abs=closed_form(50))


def test_tasks_stay_within_their_ranges_and_know_their_names() -> None:
    task = engineering("borehole", num_samples=300, noise=0.05, seed=1)
    low, high = np.array(list(ENGINEERING["borehole"].ranges.values())).T
    assert (task.x >= low).all()
    assert (task.x <= high).all()
    assert task.x_names[:2] == ("rw", "r")
    assert (task.index_rank, task.true_rank) == (7, 1)
    clean = engineering("borehole", num_samples=300, seed=1)
    assert (task.target - clean.target).std() / clean.target.std() == pytest.approx(0.05, rel=5 / math.sqrt(600))
    with pytest.raises(ValueError, match="needs one of borehole, otl_circuit"):
        engineering("bore", num_samples=3)
