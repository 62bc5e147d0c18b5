"""Question: did a change of the code change a number?

Twelve discoveries, fits of every kind, diagnoses, cuts, estimators and three sweeps, small and in one thread. Of each
the digests of all numbers are written; what may differ from run to run (seconds, versions, paths) is left out.

    python benchmarks/same_bits.py --out BEFORE.json          (in the old checkout)
    python benchmarks/same_bits.py --out AFTER.json
    python benchmarks/same_bits.py --compare BEFORE.json AFTER.json

Answer, for the change that made minima, sessions and kinds of network objects (November 2026): 52 cases, 0 differ.

Exit 1 where one differs. No product here is large enough to be measured for oneDNN, so the digests of one machine are
the same at every run.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
import xarray as xr
from torch import nn

import isthmus
from isthmus.discovery import effective_depth
from isthmus.sweeps import Plan, sweep
from isthmus.tasks import inverted_s_classes, kuramoto_sivashinsky, teacher
from isthmus.training import fit_batch, fit_many, fit_several
from isthmus.training.solvers.minibatches import MiniBatches
from isthmus.training.solvers.solver import LBFGS, Adam, GradientDescent

LEFT_OUT = {
    "seconds",
    "speedup",
    "speedup_interval",
    "seconds_before",
    "seconds_after",
    "versions",
    "isthmus",
    "torch",
    "numpy",
    "python",
    "data",
    "wall_time",
    "started",
    "finished",
    "encoder_side",  # settings of later versions, which change numbers where they are not at their defaults
    "decoder_side",
    "combinations",
    "others",
    "remedies",
    "left_out",  # layers that no cut was tried at, for want of memory
}
# fields and columns of later versions, of one class only
ADDED = {
    "Diagnosis": {"cuts"},
    "Factorisation": {"heldout_error"},
    "Dataset": {
        "rank_90",
        "rank_99",
        "rank_999",
        "rank_entropy",
        "rows",
        "within",
        "frequency_singular_values",
        "frequency_rank_99",
        "frequency_pairs",
    },
}
SHORT = isthmus.Limits(evaluations=260)
Case = Callable[[], object]


def digest(value: object) -> str:
    """Of everything that a result holds, through its fields, tables and parameters."""
    told = hashlib.sha256()
    _tell(told, value)
    return told.hexdigest()[:16]


def _tell(told: Any, value: Any) -> None:  # noqa: PLR0911, PLR0912 - one branch for each kind of value
    if isinstance(value, nn.Module):
        told.update(type(value).__name__.encode())
        for name, tensor in value.state_dict().items():
            told.update(name.encode())
            _tell(told, tensor)
    elif isinstance(value, torch.Tensor):
        told.update(f"{value.dtype}{tuple(value.shape)}".encode())
        told.update(value.detach().cpu().contiguous().numpy().tobytes())
    elif isinstance(value, np.ndarray):
        told.update(f"{value.dtype}{value.shape}".encode())
        told.update(repr(value.tolist()).encode() if value.dtype == object else np.ascontiguousarray(value).tobytes())
    elif isinstance(value, xr.Dataset):
        for name in sorted(map(str, value.variables)):
            if name not in LEFT_OUT | ADDED["Dataset"]:
                told.update(name.encode())
                _tell(told, value[name].values)
        _tell(told, dict(value.attrs))
    elif isinstance(value, Mapping):
        for name in sorted(map(str, value)):
            if name not in LEFT_OUT:
                told.update(name.encode())
                _tell(told, value[name])
    elif isinstance(value, list | tuple):
        told.update(str(len(value)).encode())
        for one in value:
            _tell(told, one)
    elif hasattr(value, "__dataclass_fields__"):
        added = ADDED.get(type(value).__name__, set())
        _tell(told, {name: getattr(value, name) for name in value.__dataclass_fields__ if name not in added})
    elif isinstance(value, Path):
        return
    else:
        told.update(repr(value).encode())


def discoveries() -> dict[str, Case]:
    """By name: what a caller of `discover` may ask for."""
    few = {"ridge": [1e-2, 1e-3], "limits": SHORT, "workers": 1}
    three = teacher(3, d_in=8, d_out=5, num_samples=160, latent_dim=3, seed=3)
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 6, 150)
    coil = np.stack([np.cos(t), np.sin(t), t / 3], 1)
    classes = inverted_s_classes(num_samples=160, seed=0)
    waves = kuramoto_sivashinsky()
    wide = rng.normal(size=(120, 30))
    weights = rng.uniform(size=160)
    groups = np.arange(160) // 8
    return {
        "regression": lambda: isthmus.discover(three.x, three.y, **few, effort="quick"),
        "classes": lambda: isthmus.discover(classes.x, classes.y, loss="cross_entropy", **few, effort="quick"),
        "autoencoding": lambda: isthmus.discover(coil, **few, effort="quick"),
        "ordered": lambda: isthmus.discover(waves.x[:240], ordered=True, scaling="global", **few, effort="quick"),
        "groups": lambda: isthmus.discover(three.x, three.y, groups=groups, seed=4, **few, effort="quick"),
        "weights": lambda: isthmus.discover(three.x, three.y, sample_weight=weights, **few, effort="quick"),
        "leaky": lambda: isthmus.discover(three.x, three.y, network="leaky", depth=8, **few, effort="quick"),
        "resnet": lambda: isthmus.discover(three.x, three.y, network="resnet", depth=8, **few, effort="quick"),
        "depth path": lambda: isthmus.discover(coil, depth_path=True, **few, effort="quick"),
        "control": lambda: isthmus.discover(three.x, three.y, control=True, depth=13, **few, effort="quick"),
        "widening": lambda: isthmus.discover(wide, starts=1, **few, effort="quick"),
        "resume": lambda: _resumed(three.x, three.y, few),
        "one target": lambda: isthmus.discover(three.x, three.y[:, :1], **few, effort="quick"),
        "leaky classes": lambda: isthmus.discover(
            classes.x, classes.y, loss="cross_entropy", network="leaky", depth=6, **few, effort="quick"
        ),
    }


def _resumed(x: Any, y: Any, few: dict[str, Any]) -> object:
    """Stopped in the middle by its listener, then gone on with."""
    count = 0

    def stop(progress: Any) -> None:
        nonlocal count
        count += progress.fraction > 0.3
        if count:
            raise KeyboardInterrupt

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "run"
        try:
            isthmus.discover(x, y, out=place, progress=stop, **few, effort="quick")
        except KeyboardInterrupt:
            assert (place / "work").is_dir()
        found = isthmus.discover(x, y, out=place, **few, effort="quick")
        loaded = isthmus.load(place)
        assert digest(loaded.encoder) == digest(found.encoder)
        return found


def fits() -> dict[str, Case]:
    """By name: networks, losses and solvers."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(90, 5))
    y = np.stack([np.sin(x[:, 0]), x[:, 1] * x[:, 2]], 1)
    labels = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0.5)
    weight = rng.uniform(size=90)
    connected = isthmus.FullyConnected

    residual = isthmus.LeakyResNet

    def one(network: nn.Module, target: Any = y, ridge: float = 1e-3, **more: Any) -> Case:
        more.setdefault("limits", isthmus.Limits(evaluations=400))
        return lambda: isthmus.fit(network, x, target, ridge=ridge, **more)

    seeded = {"seed": 5, "dtype": torch.float64}
    torch.manual_seed(0)
    foreign = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 2)).double()
    frozen = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 2)).double()
    frozen[0].weight.requires_grad_(False)
    return {
        "connected": one(connected(5, 2, width=16, depth=4, **seeded)),
        "connected float32": one(connected(5, 2, width=16, depth=4, seed=5)),
        "linear run": one(connected(5, 2, width=16, depth=6, linear=(2, 3, 4), **seeded)),
        "slope": one(connected(5, 2, width=16, depth=4, negative_slope=-0.3, bias=False, **seeded)),
        "classes": one(connected(5, 3, width=16, depth=4, **seeded), labels, loss="cross_entropy"),
        "weights": one(connected(5, 2, width=16, depth=4, **seeded), sample_weight=weight),
        "seed": one(connected(5, 2, width=16, depth=4, **seeded), seed=77),
        "runs of rows": one(
            connected(5, 2, width=16, depth=4, **seeded), limits=isthmus.Limits(evaluations=200, memory=40_000)
        ),
        "leaky": one(residual(5, 2, width=12, depth=6, effective_depth=3.0, maps="learned", **seeded)),
        "leaky adaptive": one(
            residual(5, 2, width=12, depth=6, effective_depth=3.0, maps="learned", steps="adaptive", **seeded)
        ),
        "resnet": one(isthmus.ResNet(5, 2, width=12, depth=4, block_depth=2, **seeded)),
        "foreign": one(foreign),
        "frozen": one(frozen),
        "batches": one(
            connected(5, 2, width=16, depth=4, **seeded), solver=(MiniBatches(Adam(60), batch=30), LBFGS(80))
        ),
        "descent": one(connected(5, 2, width=16, depth=4, **seeded), solver=(Adam(50), GradientDescent(50))),
        "collapsed": one(connected(5, 2, width=16, depth=4, **seeded), ridge=3.0),
        "batch": lambda: fit_batch(
            [connected(5, 2, width=8, depth=3, seed=s, dtype=torch.float64) for s in range(3)], x, y,
            ridges=[1e-2, 1e-3, 1e-4], solver=(Adam(60), LBFGS(100)),
        ),
        "many": lambda: fit_many(
            [connected(5, 3, width=8, depth=3, seed=s, dtype=torch.float64) for s in range(2)], x, labels,
            ridges=[1e-2, 1e-3], loss="cross_entropy", solver=(Adam(60), LBFGS(100)),
        ),
        "several": lambda: fit_several(
            [connected(5, 2, width=8, depth=3, seed=s, dtype=torch.float64) for s in range(3)], x, y, ridge=1e-3,
            limits=isthmus.Limits(evaluations=200),
        ).results,
        "resumed": lambda: _resumed_fit(connected(5, 2, width=16, depth=4, **seeded), x, y),
    }  # fmt: skip


def _resumed_fit(network: nn.Module, x: Any, y: Any) -> object:
    with tempfile.TemporaryDirectory() as folder:
        path, limits = Path(folder) / "fit.pt", isthmus.Limits(evaluations=400)
        start = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        isthmus.fit(
            network, x, y, ridge=1e-3, checkpoint=path, limits=limits, callback=lambda event: event.evaluations > 150
        )
        network.load_state_dict(start)
        return isthmus.fit(network, x, y, ridge=1e-3, checkpoint=path, limits=limits)


def diagnoses() -> dict[str, Case]:
    """By name: what `diagnose`, the cuts and the estimators make of networks."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 5))
    y = np.stack([np.sin(x[:, 0]), x[:, 1] * x[:, 2]], 1)
    seeded = {"seed": 6, "dtype": torch.float64}
    short = {"evaluations": 260, "ridge": 1e-3, "random_state": 0}
    connected = isthmus.FullyConnected(5, 2, width=16, depth=4, linear=(2,), **seeded)
    leaky = isthmus.LeakyResNet(5, 2, width=12, depth=6, effective_depth=3.0, maps="learned", **seeded)
    residual = isthmus.ResNet(5, 2, width=12, depth=4, block_depth=1, **seeded)
    torch.manual_seed(1)
    convolution = nn.Sequential(
        nn.Conv1d(1, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(15, 6), nn.ReLU(), nn.Linear(6, 2)
    ).double()
    foreign = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 2)).double()
    many = rng.normal(size=(300, 5))
    return {
        "diagnose connected": lambda: isthmus.diagnose(connected, x, y, ridge=1e-2),
        "diagnose leaky": lambda: isthmus.diagnose(leaky, x, y, ridge=1e-2),
        "diagnose resnet": lambda: isthmus.diagnose(residual, x, y, ridge=1e-2),
        "diagnose convolution": lambda: isthmus.diagnose(convolution, x[:, None, :]),
        "diagnose foreign": lambda: isthmus.diagnose(foreign, x, y),
        "diagnose float32": lambda: isthmus.diagnose(
            isthmus.FullyConnected(5, 2, width=16, depth=4, seed=6), x.astype(np.float32)
        ),
        "factorise": lambda: isthmus.factorise(connected, x, 3),
        "factorise leaky": lambda: isthmus.factorise(leaky, x, 3),
        "factorise foreign": lambda: isthmus.factorise(foreign, x, 3),
        "compress": lambda: isthmus.compress(foreign, many, tolerance=0.2),
        "scree": lambda: isthmus.scree(connected, x, y, ranks=[1, 2, 3]),
        "effective depth": lambda: effective_depth(
            leaky, torch.from_numpy(x), torch.from_numpy(y), ridge=1e-2, most=6.0, limits=SHORT
        ),
        "regressor": lambda: _shell(isthmus.BottleneckRegressor(**short), x, y),
        "classifier": lambda: _shell(isthmus.BottleneckClassifier(**short), x, (y[:, 0] > 0) * 1),
        "autoencoder": lambda: _shell(isthmus.BottleneckAutoencoder(**short), x, None),
    }  # fmt: skip


def _shell(shell: Any, x: Any, y: Any) -> object:
    shell.fit(x, y)
    return [getattr(shell, "rank_", None), shell.transform(x), shell.predict(x) if hasattr(shell, "predict") else 0]


def sweeps() -> dict[str, Case]:
    """By name: a sweep of each kind of network."""
    task = {"name": "teacher", "rank": 1, "d_in": 5, "d_out": 2, "latent_dim": 2, "num_samples": 40}
    training = {"ridge": 1e-2, "evaluations": 120, "dtype": "float64"}
    leaky = {"kind": "leaky", "width": 6, "effective_depth": 2.0, "maps": "learned"}
    return {
        "sweep connected": lambda: _swept(
            Plan(task, {"width": 6}, training, grid={"depth": [2, 4], "ridge": [1e-1, 1e-3], "seed": [0, 1]})
        ),
        "sweep leaky": lambda: _swept(Plan(task, leaky, training, grid={"depth": [3, 5]})),
        "sweep resnet": lambda: _swept(
            Plan(task, {"kind": "resnet", "width": 6, "block_depth": 1}, training, grid={"depth": [2, 3]})
        ),
    }


def _swept(plan: Plan) -> object:
    from isthmus.sweeps.run_files import RESULT, arrays_of, read_result

    with tempfile.TemporaryDirectory() as folder:
        sweep(plan, out=Path(folder) / "sweep", workers=0)
        found: dict[str, object] = {}
        for result in sorted((Path(folder) / "sweep").glob(f"runs/*/*/{RESULT}")):
            run = read_result(result.parent)
            found[run.id] = [dict(run.numbers), list(run.warnings), arrays_of(result.parent)]
        assert found
        return found


def run(out: Path | None, only: str, *, quick: bool) -> None:
    """Write the digests of all cases, one after the other."""
    found: dict[str, str] = json.loads(out.read_text()) if out is not None and out.exists() else {}
    cases = {
        f"{family.__name__}: {name}": case
        for family in (discoveries, fits, diagnoses, sweeps)
        for name, case in list(family().items())[: 1 if quick else None]
    }
    torch.set_num_threads(1)
    for name, case in cases.items():
        if name in found or only not in name:
            continue
        began = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[name] = digest(case())
        print(f"{name:36} {found[name]} {time.monotonic() - began:6.1f} s", flush=True)
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(found, indent=1) + "\n")


def compare(before: Path, after: Path) -> int:
    """Print what differs; the number of cases that do, or that one file lacks."""
    old, new = json.loads(before.read_text()), json.loads(after.read_text())
    differing = [name for name in old | new if old.get(name) != new.get(name)]
    for name in differing:
        print(f"{name}: {old.get(name)} before, {new.get(name)} after")
    print(f"{len(old | new)} cases, {len(differing)} differ")
    return len(differing)


def main() -> None:
    """Write digests, or compare two files of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true", help="the first case of each kind")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--compare", type=Path, nargs=2)
    options = parser.parse_args()
    if options.compare:
        sys.exit(bool(compare(*options.compare)))
    run(options.out, options.only, quick=options.quick)


if __name__ == "__main__":
    main()
