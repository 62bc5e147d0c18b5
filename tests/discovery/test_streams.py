"""Discoveries with residual networks: the same stages, the same files, the same page."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import isthmus
from isthmus import LeakyResNet, Limits, ResNet, discover, tasks
from isthmus.cli.discover import DiscoverRequest as Request
from isthmus.cli.main import run
from isthmus.discovery.choices import is_full
from isthmus.discovery.files.networks import architecture, network_from, read_network, tensors_of, write_network
from isthmus.discovery.settings import Settings
from isthmus.errors import DataError
from isthmus.networks import Waist
from isthmus.reports.verdict import energies_of
from isthmus.training import fit
from isthmus.training.solvers.solver import LBFGS
from leaky_networks import random_leaky
from minima import minimum, noise_problem, streams
from theorem_checks import assert_close, normal

QUICK = Limits(evaluations=120)


def teacher(rank: int) -> tasks.Task:
    return tasks.teacher(rank, d_in=6, d_out=4, latent_dim=2, num_samples=120, noise=0.02, seed=1)


@pytest.fixture(scope="module")
def found() -> isthmus.Discovery:
    task = teacher(1)
    # with 120 gradients the start is no minimum yet, and what it reads (1 or 2) is chance
    limits = Limits(evaluations=480)
    return discover(task.x, task.y, network="leaky", depth=6, ridge=3e-3, starts=1, limits=limits, effort="quick")


def test_a_leaky_network_finds_the_rank_of_a_teacher(found: isthmus.Discovery) -> None:
    assert found.rank == found.interval.upper == found.interval.lower == 1
    assert isinstance(found.network, LeakyResNet)
    assert (found.network.depth, found.network.effective_depth) == (6, 8.0)
    assert found.readings["effective_depth"] == 8.0
    below, above = found.readings["hamiltonian_rank"], found.readings["identity_rank"]
    assert below is not None
    assert above is not None
    assert "hamiltonian" in found.diagnosis.layers
    assert f"its least cost of identity is {above:.2f}" in energies_of(found.readings)
    assert energies_of({"rank": 3}) == ""


def test_its_halves_are_fully_connected_and_say_what_it_predicts(found: isthmus.Discovery) -> None:
    task = teacher(1)
    assert task.y is not None
    error = np.square(found.predict(task.x) - task.y).sum() / np.square(task.y - task.y.mean(0)).sum()
    assert error < 0.3
    assert found.transform(task.x).shape == (120, 1)
    # bent as it is, it goes with one of the targets at least
    coordinate = found.transform(task.x)[:, 0]
    assert max(abs(np.corrcoef(coordinate, target)[0, 1]) for target in task.y.T) > 0.2


def test_it_comes_back_from_its_folder_bit_for_bit(found: isthmus.Discovery, tmp_path: Path) -> None:
    found.save(tmp_path / "run")
    back = isthmus.load(tmp_path / "run")
    assert isinstance(back.network, LeakyResNet)
    x = normal(3, 5, 6)
    assert torch.equal(back.network(x), found.network(x))


@pytest.mark.slow
def test_its_page_tells_the_energies(found: isthmus.Discovery, tmp_path: Path) -> None:
    isthmus.report(found, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Hamiltonian of the leaky network stands for" in page
    assert "This task needs" in page or "Probably 1 dimension" in page


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["leaky", "resnet"])
@pytest.mark.parametrize("rank", [1, 2])
def test_the_bend_of_the_held_out_error_is_the_rank_of_the_teacher(kind: str, rank: int) -> None:
    task = tasks.teacher(rank, d_in=12, d_out=6, latent_dim=4, num_samples=240, noise=0.02, seed=1)
    found = discover(
        task.x, task.y, network=kind, starts=1, ridge=(1e-2, 3e-3), limits=Limits(evaluations=400), effort="quick"
    )
    assert found.readings["scree_rank"] == rank
    assert isinstance(found.network, LeakyResNet if kind == "leaky" else ResNet)


@pytest.mark.parametrize("kind", ["leaky", "resnet"])
def test_a_linear_start_computes_about_the_regression(kind: str) -> None:
    x = normal(0, 60, 5).float()
    y = x @ normal(1, 5, 3).float() / 5
    family = streams(Settings(network=kind, stream_layers=6), replace(noise_problem(5, 3), x=x, y=y))
    network = family.new(seed=0)
    before = float((network(x) - y).detach().norm() / y.norm())
    family.start_linear(network)
    assert float((network(x) - y).detach().norm() / y.norm()) < 0.5 * before
    fit(network, x, y, ridge=1e-4, solver=LBFGS(60))
    assert float((network(x) - y).detach().norm() / y.norm()) < 0.1


def test_a_waist_stands_where_the_stream_varies_most() -> None:
    network, x = random_leaky(0), normal(3, 40, 3)
    settings = Settings(network="leaky", stream_layers=6)
    family = streams(settings, replace(noise_problem(3, 2), x=x))
    assert family.waist_layer == 3
    free = network(x).detach()
    family.narrowed(network, 2)
    assert family.visible_rank(network) <= 2
    lost = float((network(x).detach() - free).norm())
    network.narrow(Waist(3, torch.linalg.qr(normal(5, 5, 2)).Q, torch.zeros(5, dtype=torch.float64)))
    assert lost < float((network(x).detach() - free).norm())


@pytest.mark.parametrize("number", range(3))
def test_residual_networks_are_described_and_rebuilt(number: int) -> None:
    made = [
        random_leaky(0),
        ResNet(3, 2, width=5, depth=2, block_depth=2, inner_width=4, residual_weight=0.5, seed=1),
        ResNet(3, 2, width=5, depth=3, block_depth=1, linear=True, seed=2),
    ]
    network, x = made[number], normal(3, 8, 3).to(next(made[number].parameters()).dtype)
    described, tensors = architecture(network), tensors_of({"n": network})
    back = network_from(described, "n", tensors)
    assert torch.equal(back(x), network(x))
    assert isinstance(back, type(network))
    assert_close(back.penalty().detach(), network.penalty().detach(), relative=1e-15)
    with pytest.raises(ValueError, match="do not fit|do not number"):
        network_from(described | {"depth": 7}, "n", tensors)
    with pytest.raises(ValueError, match="maps of shapes"):
        network_from(described | {"dimensions": [3, 6, 2]}, "n", tensors)


def test_what_cannot_be_stored_is_refused_in_words(tmp_path: Path) -> None:
    network = random_leaky(0)
    write_network(tmp_path / "n.safetensors", network)
    with pytest.raises(DataError, match="holds a LeakyResNet; needs fully connected ones"):
        read_network(tmp_path / "n.safetensors")
    network.narrow(Waist(3, torch.linalg.qr(normal(5, 5, 2)).Q, torch.zeros(5, dtype=torch.float64)))
    with pytest.raises(TypeError, match="without a waist"):
        architecture(network)


def test_the_command_line_knows_the_networks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Request("a.csv", network="leaky", depth=3).command == "isthmus discover a.csv --depth 3 --network leaky"
    with pytest.raises(DataError, match="--depth 3: needs at least 8 with --network fully-connected"):
        Request("a.csv", depth=3)
    assert run(["discover", str(tmp_path / "t.csv"), "--network", "transformer"]) == 2
    assert "leaky, resnet" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_line_trains_the_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "t.csv"
    np.savetxt(data, np.hstack([teacher(1).x[:40], teacher(1).x[:40, :1] ** 2]), delimiter=",", header="a,b,c,d,e,f,y",
               comments="")  # fmt: skip
    words = ["discover", str(data), "--target", "y", "--network", "leaky", "--ridge", "1e-2", "--starts", "1",
             "--evaluations", "10", "--depth", "3", "--out", str(tmp_path / "run")]  # fmt: skip
    assert run(words) in {0, 3}
    assert isinstance(isthmus.load(tmp_path / "run").network, LeakyResNet)
    capsys.readouterr()
    other = ["resnet" if word == "leaky" else word for word in words[:-2]]
    assert run([*other, "--resume", str(tmp_path / "run")]) == 2
    assert "has other network" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["leaky", "resnet"])
def test_a_residual_network_is_shown_free_of_waists(kind: str) -> None:
    starts = [minimum(0.3), minimum(0.1)]
    assert streams(Settings(network=kind)).shown(starts, {1: minimum(0.05)}, 3) is starts[1]


@pytest.mark.parametrize("kind", ["leaky", "resnet"])
def test_residual_networks_are_wide_enough_from_the_start(kind: str) -> None:
    settings = Settings(network=kind, linear_width=5, widest=24)
    assert streams(settings).room == 24
    assert not is_full(5, streams(settings).room, most=9, widest=24)
    assert is_full(5, 5, most=9, widest=24)
