"""Every loss of the registry goes wherever a loss is asked for: a new one is checked by being registered.

What it computes: tests/training/losses.
"""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

import isthmus
from command_lines import line_of
from isthmus import FullyConnected, LeakyResNet, Limits
from isthmus.cli.main import run
from isthmus.discovery.data.problem import pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.evidence.baseline import linear_errors
from isthmus.discovery.work.unit import Progress
from isthmus.errors import DataError, PlanError
from isthmus.reports import verdict_of
from isthmus.reports.pictures import pictures_of
from isthmus.sweeps import Plan, sweep
from isthmus.training import fit_batch, fit_many, fit_several, fit_shards
from isthmus.training.losses import LOSSES, Loss
from isthmus.training.sharded.team import Team
from isthmus.training.solvers.solver import LBFGS, Adam
from loss_targets import targets_of
from tolerances import rounding

N, D = 60, 3
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda l: l.name)
X = torch.randn(N, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
SCORES = torch.stack([X[:, 0], -X[:, 0], X[:, 1].tanh()], 1)  # rank 2
FEW: dict[str, Any] = {"ridge": 1e-2, "starts": 1, "limits": Limits(evaluations=40)}
SHORT = (Adam(20), LBFGS(40))


def targets(loss: Loss) -> Tensor:
    return targets_of(loss, SCORES)


def small(loss: Loss) -> FullyConnected:
    return FullyConnected(5, D * loss.per_target, width=6, depth=3, seed=0, dtype=torch.float64)


def leaky(loss: Loss) -> LeakyResNet:
    outputs, of_floats = D * loss.per_target, torch.float64
    return LeakyResNet(5, outputs, width=8, depth=4, effective_depth=2.0, maps="learned", seed=0, dtype=of_floats)


@pytest.fixture(scope="module", params=LOSSES.values(), ids=lambda l: l.name)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Loss, Path]:
    loss, folder = request.param, tmp_path_factory.mktemp("run")
    isthmus.discover(X, targets(loss), loss=loss.name, out=folder, control=True, **FEW, effort="quick")
    return loss, folder


@pytest.mark.dear(1)
def test_a_discovery_knows_its_loss_after_it_was_saved(found: tuple[Loss, Path]) -> None:
    loss, folder = found
    loaded = isthmus.load(folder)
    assert loaded.loss == loss
    assert loaded.control is not None
    assert loaded.control.loss == loss
    assert loaded.predict(X.numpy()).shape == (N, D * loss.per_target)
    if loaded.rank:
        assert loss.words.left in " ".join(map(str, verdict_of(loaded).lines))
    captions = " ".join(picture.caption for picture in pictures_of(loaded))
    assert loss.words.unit in captions
    assert loss.words.linear in captions


@pytest.mark.dear(2)
def test_predictions_have_the_error_that_is_said(found: tuple[Loss, Path]) -> None:
    loss, folder = found
    loaded, y = isthmus.load(folder), targets(loss)
    assert loaded.rank >= 1
    shares = float(loaded.scree["train_error"].sel(rank=loaded.rank)), float(loaded.readings["heldout_error"] or 0)
    outputs = torch.from_numpy(loaded.predict(X.numpy()))
    of_targets = Standardiser.of(y.numpy(), total=True) if loss.standardised else None
    values = y.double().numpy() if of_targets is None else of_targets.apply(y.numpy())
    said = outputs if of_targets is None else torch.from_numpy(of_targets.of_outputs(loss).apply(outputs.numpy()))
    rows = loss.row_losses(said, loss.targets(torch.from_numpy(values), torch.float64))
    assert min(shares) - 1e-3 <= float(rows.mean()) / loss.unit(values, None) <= max(shares) + 1e-3


@pytest.mark.dear(2)
def test_a_table_of_predictions_says_what_they_are(found: tuple[Loss, Path], tmp_path: Path) -> None:
    loss, folder = found
    table = tmp_path / "x.csv"
    pd.DataFrame(X.numpy(), columns=[f"x{i}" for i in range(5)]).to_csv(table, index=False)
    assert run(["apply", str(folder), str(table), "--what", "prediction", "--out", str(tmp_path / "p.csv")]) == 0
    columns = list(pd.read_csv(tmp_path / "p.csv").columns)
    assert ("class" in columns) == loss.classes
    assert [column for column in columns if column != "class"] == loss.output_names(isthmus.load(folder).target_names)


@pytest.mark.dear(2)
def test_a_run_of_a_loss_that_is_not_known_here_says_so(found: tuple[Loss, Path]) -> None:
    loaded = isthmus.load(found[1])
    older = {name: value for name, value in loaded.settings.items() if name != "loss"}
    if found[0].name in {"squared", "cross_entropy"}:
        assert dataclasses.replace(loaded, settings=older).loss == found[0], "it was not recorded once"
    newer = dataclasses.replace(loaded, settings={**older, "loss": "hinge"})
    with pytest.raises(DataError, match="loss 'hinge', which this version of isthmus does not know"):
        _ = newer.loss


@pytest.mark.slow
def test_a_discovery_goes_on_after_a_stop(found: tuple[Loss, Path], tmp_path: Path) -> None:
    loss, alone = found[0], isthmus.load(found[1])

    def stop(progress: Progress) -> None:
        if progress.fraction > 0.4:
            raise KeyboardInterrupt

    y = targets(loss)
    with pytest.raises(KeyboardInterrupt):
        isthmus.discover(X, y, loss=loss, out=tmp_path, workers=1, progress=stop, **FEW, effort="quick")
    resumed = isthmus.discover(X, y, loss=loss, out=tmp_path, workers=1, **FEW, effort="quick")
    assert np.array_equal(resumed.predict(X.numpy()), alone.predict(X.numpy()))
    assert resumed.scree.equals(alone.scree)


@pytest.mark.dear(1)
@every_loss
def test_the_linear_baseline_learns_what_is_linear(loss: Loss) -> None:
    y = targets_of(loss, 3 * torch.stack([X[:, 0], -X[:, 0], X[:, 1]], 1)).double().numpy()
    maps = Standardiser.of(y, total=True) if loss.standardised else None
    problem = pose(X.numpy(), y, np.arange(N) % 4 == 0, loss=loss, inputs=Standardiser.of(X.numpy()), targets=maps)
    errors = linear_errors(problem, most=4)
    assert errors[0] == pytest.approx(problem.heldout_error_of_constant(), rel=rounding(size=N, dtype=torch.float32))
    assert min(errors) < 0.5 * errors[0]


@pytest.mark.slow
@every_loss
def test_every_fit_takes_it_by_name_and_as_an_object(loss: Loss) -> None:
    y = targets(loss)
    ends = [isthmus.fit(small(loss), X, y, ridge=1e-2, loss=of, solver=SHORT).objective for of in (loss.name, loss)]
    for name in (loss.name, loss):
        ends.append(fit_batch([small(loss)], X, y, ridges=[1e-2], loss=name, solver=SHORT)[0].objective)
        ends.append(fit_many([small(loss)], X, y, ridges=[1e-2], loss=name, solver=SHORT)[0].objective)
        ends.append(fit_several([small(loss)], X, y, ridge=1e-2, loss=name, solver=SHORT).results[0].objective)
        own = loss.targets(y, torch.float64)
        shards = fit_shards(small(loss), X, own, total=N, team=Team(), ridge=1e-2, loss=name, schedule=SHORT)
        ends.append(shards.objective)
    assert ends == pytest.approx([ends[0]] * len(ends), rel=1e-4), "one minimum, up to rounding in training"


@pytest.mark.dear(1)
@every_loss
def test_a_leaky_network_is_trained_by_its_curvature(loss: Loss) -> None:
    network, y = leaky(loss), targets(loss)
    before = isthmus.fit(network, X, y, ridge=1e-2, loss=loss, limits=Limits(evaluations=1)).objective
    result = isthmus.fit(network, X, y, ridge=1e-2, loss=loss, limits=Limits(evaluations=200))
    assert result.objective < before
    assert result.data_loss < loss.constant_loss(loss.targets(y, torch.float64), None, D)


@every_loss
def test_a_table_by_layer_has_its_data_loss(loss: Loss) -> None:
    network, y = small(loss), targets(loss)
    expected = float(loss.row_losses(network(X).detach(), loss.targets(y, torch.float64)).mean())
    for named in (loss, loss.name):
        table = isthmus.diagnose(network, X, y, ridge=0.1, loss=named).layers.attrs
        assert table["data_loss"] == pytest.approx(expected, rel=rounding(size=N * D))
    columns = isthmus.diagnose(leaky(loss), X, y, ridge=0.1, loss=loss).layers
    assert ("hamiltonian" in columns) == loss.is_quadratic, "energies are those of the squared error"


@every_loss
def test_a_sweep_takes_it(loss: Loss, tmp_path: Path) -> None:
    table, y = tmp_path / "d.csv", targets(loss)
    frame = pd.DataFrame(X.numpy(), columns=list("abcde"))
    frame["t"] = ["xyz"[int(c)] for c in y] if loss.classes else y[:, 0].numpy()
    frame.to_csv(table, index=False)
    task = {"file": str(table), **({"classes": "t"} if loss.classes else {"target": ["t"]})}
    plan = Plan(task, {"width": 4}, {"ridge": 1e-2, "evaluations": 30, "loss": loss.name}, grid={"depth": [2]})
    result = sweep(plan, out=tmp_path / "sweep", workers=0)
    assert np.isfinite(result["data_loss"].values).all()
    assert not np.isnan(result["rank_estimate"].values).any()
    kind = {"kind": "leaky", "width": 6, "effective_depth": 1.0, "maps": "learned"}
    energies = sweep(dataclasses.replace(plan, network=kind), out=tmp_path / "leaky", workers=0)["rank_hamiltonian"]
    assert loss.is_quadratic or np.isnan(energies.values).all(), "energies are those of the squared error"


def test_a_plan_with_an_unknown_loss_is_refused_with_the_known_ones() -> None:
    task = {"name": "teacher", "rank": 1, "d_in": 5, "d_out": 2, "latent_dim": 2, "num_samples": 40}
    with pytest.raises(PlanError, match="training.loss is 'hinge'; needs one of 'squared', 'cross_entropy'"):
        Plan(task, {"width": 4}, {"ridge": 1e-2, "loss": "hinge"}, grid={"depth": [2]}).runs()


def written(loss: Loss, folder: Path) -> tuple[Path, list[str]]:
    """A table with targets of the loss, and the options that name them."""
    y = targets(loss)
    frame = pd.DataFrame(X.numpy(), columns=list("abcde"))
    if loss.classes:
        frame["t"] = ["xyz"[int(c)] for c in y]
        options = ["--classes", "t"]
    else:
        for j in range(D):
            frame[f"t{j}"] = y[:, j].numpy()
        options = ["--target", "t0,t1,t2"]
    frame.to_parquet(folder / "d.parquet")
    return folder / "d.parquet", [*options, "--loss", loss.name]


def hinged(words: list[str], loss: Loss) -> list[str]:
    """The command with a loss that there is not."""
    return ["hinge" if word == loss.name else word for word in words]


@pytest.mark.slow
@pytest.mark.usefixtures("blank_pictures")
@every_loss
def test_commands_take_it(
    loss: Loss, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    data, options = written(loss, tmp_path)
    few = ["--ridge", "1e-2", "--starts", "1", "--evaluations", "20", "--effort", "quick", "--no-pictures"]
    discovery = ["discover", str(data), *options, *few]
    assert run([*discovery, "--out", "found"]) in {0, 3}
    assert isthmus.load("found").loss == loss
    assert run([*discovery, "--resume", "found"]) in {0, 3}
    fitted = ["fit", str(data), *options, "--ridge", "1e-2", "--depth", "3", "--width", "6", "--evaluations", "40"]
    assert run([*fitted, "--out", "net"]) in {0, 3}
    assert run(["diagnose", "found", "--data", str(data), *options, "--out", "page.html"]) == 0
    capsys.readouterr()
    assert run([*hinged(discovery[:-1], loss), "--out", "other"]) == 2
    line = line_of(capsys.readouterr().err)
    assert all(kind in line for kind in LOSSES), line
    assert run([*hinged(fitted, loss), "--out", "other"]) == 2
    line = line_of(capsys.readouterr().err)
    assert all(kind in line for kind in LOSSES), line


@pytest.mark.slow
@every_loss
def test_estimators_take_it_where_it_fits(loss: Loss) -> None:
    y = targets(loss).numpy()
    short: dict[str, Any] = {"evaluations": 30, "ridge": 1e-2, "starts": 1, "effort": "quick", "random_state": 0}
    regressor, classifier = isthmus.BottleneckRegressor(loss=loss, **short), isthmus.BottleneckClassifier(**short)
    if loss.classes:
        with pytest.raises(ValueError, match="needs a loss of numbers"):
            regressor.fit(X.numpy(), y)
        assert classifier.set_params(loss=loss.name).fit(X.numpy(), y).discovery_.loss == loss
        return
    with pytest.raises(ValueError, match="needs a loss of classes"):
        classifier.set_params(loss=loss.name).fit(X.numpy(), y[:, 0].round())
    given = regressor.fit(X.numpy(), y)
    assert given.discovery_.loss == loss
    assert np.allclose(given.predict(X.numpy()), loss.means(given.discovery_.predict(X.numpy())))
    assert given.score(X.numpy(), y) > 0, "predictions have the units of the targets"
    auto = isthmus.BottleneckAutoencoder(loss=loss.name, **short).fit(y)
    assert auto.discovery_.loss == loss
    assert auto.discovery_.task == "autoencoding"
    assert auto.score(y) > 0
    assert np.allclose(auto.inverse_transform(auto.transform(y)), loss.means(auto.discovery_.predict(y)))
