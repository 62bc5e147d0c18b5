"""One flipped bit in any file that is read back: it is refused, or what is read is the same to the last bit.

What is refused on the way is computed again, with the same end: `test_damaged_work`.
"""

import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import discoveries
import isthmus
from damage import bits, flipped, some_bits
from figure_parts import trainings
from isthmus.cli.fit import FitRequest
from isthmus.cli.fit_run import stored_result
from isthmus.discovery.files.export import write_module
from isthmus.discovery.files.models import read_model_file
from isthmus.discovery.files.networks import read_network, write_network
from isthmus.errors import DataWarning, IsthmusError
from isthmus.recheck import check_run
from isthmus.sweeps import sweep
from isthmus.sweeps.folder import SweepFolder
from isthmus.sweeps.index import Row, Status
from isthmus.sweeps.run_files import arrays_of, read_result
from isthmus.sweeps.run_files import read_network as network_of_run
from isthmus.sweeps.store import Store
from isthmus.training.checkpoint import load_state, load_twice, save_twice
from isthmus.training.sharded.distributed import fit_shards
from isthmus.training.sharded.team import Team
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.writing.checksums import KEY, check_archive, check_tensors, opened_json, sealed_json
from sweep_plans import tiny

SEED = 23


@dataclass(frozen=True)
class Kind:
    """A kind of file that is read back.

    Attributes:
        path: one of them.
        read: everything that is read from it, in bits.
    """

    path: Path
    read: Callable[[], str]


def small_fit(path: Path, *, stop: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 4, generator=generator)
    network = isthmus.FullyConnected(4, 2, width=8, depth=3, seed=5)
    isthmus.fit(
        network, x, x[:, :2].relu(), ridge=1e-3, solver=(Adam(20), LBFGS(20, plateau=0.0)), checkpoint=path,
        callback=lambda event: event.evaluations >= stop,
    )  # fmt: skip


def states(folder: Path) -> dict[str, Kind]:
    """Checkpoints: of a fit that was stopped, of one that ended, split into parts, and what a discovery keeps."""
    small_fit(folder / "fit.pt", stop=30)
    small_fit(folder / "ended.pt", stop=30)
    small_fit(folder / "ended.pt", stop=10**9)
    assert "ended" in (load_state(folder / "ended.pt") or {})
    x = torch.randn(200, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    fit_shards(
        isthmus.FullyConnected(5, 4, width=20, depth=3, seed=0, dtype=torch.float64), x, x[:, :4], total=200,
        team=Team(), ridge=1e-2, limits=isthmus.Limits(evaluations=30), split_parameters=True,
        checkpoint=folder / "split.parts.pt", callback=lambda event: event.evaluations > 5,
    )  # fmt: skip
    save_twice(folder / "belongs.pt", {"data": "0123456789abcdef", "settings": "Settings(seed=0)"})
    names = ("fit.pt", "ended.pt", "split.parts.pt", "split.parts.1.0.pt")
    found = {name: Kind(folder / name, lambda name=name: bits(load_state(folder / name))) for name in names}
    return found | {"belongs.pt": Kind(folder / "belongs.pt", lambda: bits(_without_name(folder / "belongs.pt")))}


def _without_name(path: Path) -> dict[str, object]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # which says that the copy was taken
        return {name: value for name, value in (load_twice(path) or {}).items() if name != "file"}


def files_of_a_sweep(folder: Path) -> dict[str, Kind]:
    """Files of a finished run, of one that failed, the head and the index."""
    plan = tiny(seed=[0])
    sweep(plan, out=folder, workers=0)
    [run] = folder.glob("runs/*/*")
    store = Store(folder)
    store.put_failure(Row("ab" * 10, Status.FAILED, plan.runs()[0].settings, error="Traceback: it would not"))

    def whole_run() -> str:
        return bits((read_result(run), arrays_of(run), network_of_run(run)))

    def index() -> str:
        with closing(SweepFolder(folder).reader()) as opened:
            return bits([(row.id, str(row.status), row.settings, row.numbers, row.error) for row in opened.rows()])

    failure = folder / "failed" / f"{'ab' * 10}.json"
    found = {name: Kind(run / name, whole_run) for name in ("result.json", "arrays.nc", "weights.safetensors")}
    return {f"run: {name}": kind for name, kind in found.items()} | {
        "sweep.json": Kind(folder / "sweep.json", lambda: SweepFolder(folder).token),
        "failure": Kind(failure, lambda: bits(opened_json(failure.read_bytes()))),
        "index": Kind(folder / "index.sqlite", index),
    }


def files_of_a_discovery(folder: Path) -> dict[str, Kind]:
    found = discoveries.discovery(depth_path=discoveries.depth_path())
    found.save(folder)
    names = ("result.json", "scree.nc", "runs.nc", "layers.nc", "depth_path.nc", "weights.safetensors")
    kinds = {f"discovery: {n}": Kind(folder / n, lambda: bits(isthmus.load(folder))) for n in names}
    return kinds


def networks(folder: Path) -> dict[str, Kind]:
    """Networks as files of their own, and the result of `isthmus fit`."""
    network = discoveries.networks()[0]
    write_network(folder / "network.safetensors", network)
    request = FitRequest("d.npy", 1e-2, "y", depth=3, width=6, evaluations=30)
    (folder / "result.json").write_bytes(sealed_json({"format": "isthmus fit", "request": asdict(request), "a": 0.5}))
    return {
        "network": Kind(folder / "network.safetensors", lambda: bits(read_network(folder / "network.safetensors"))),
        "fit: result.json": Kind(folder / "result.json", lambda: bits(stored_result(folder, request))),
    }


def exported(folder: Path) -> dict[str, Kind]:
    """A module for other programs, as safetensors and as a program; exporting takes seconds."""
    module = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    write_module(folder, "encoder", module, torch.randn(3, 5))

    def read(path: Path) -> str:
        module = read_model_file(path).module
        return bits((module.state_dict(), module(torch.ones(2, 5))))

    paths = (folder / "encoder.safetensors", folder / "encoder.pt2")
    return {f"exported: {path.suffix}": Kind(path, lambda path=path: read(path)) for path in paths}


def part_of_a_figure(folder: Path) -> dict[str, Kind]:
    part = trainings(1)[0]
    for name in ("runs", "work"):
        (folder / name).mkdir(parents=True)
    part.compute(folder)
    [place] = folder.glob("runs/*/*")
    return {f"part: {n}": Kind(place / n, lambda: bits(part.result(folder))) for n in ("result.json", "arrays.nc")}


MAKERS = (states, files_of_a_sweep, files_of_a_discovery, networks, part_of_a_figure)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kind]:
    found: dict[str, Kind] = {}
    for make in MAKERS:
        folder = tmp_path_factory.mktemp(make.__name__)
        found |= make(folder)
    return found


def survived(kind: Kind, whole: str, bit: int) -> bool:
    """Whether a flipped bit was refused (False) or changes nothing (True); neither is a failure."""
    with flipped(kind.path, bit):
        try:
            found = kind.read()
        except (IsthmusError, ValueError):
            return False
    assert found == whole, f"bit {bit} of {kind.path} changed what is read, silently"
    return True


def check(kinds: dict[str, Kind], count: int) -> dict[str, tuple[int, int]]:
    """So many flips of each kind of file: by kind, how many were refused, and how many change nothing."""
    counts: dict[str, tuple[int, int]] = {}
    for name, kind in kinds.items():
        whole = kind.read()
        harmless = [survived(kind, whole, bit) for bit in some_bits(kind.path, count, seed=SEED)]
        counts[name] = (len(harmless) - sum(harmless), sum(harmless))
    return counts


@pytest.mark.slow
def test_some_flipped_bits_in_every_kind_of_file(kinds: dict[str, Kind]) -> None:
    counts = check(kinds, 15)
    assert sum(map(sum, counts.values())) >= 300
    assert all(refused for name, (refused, _) in counts.items() if name not in {"belongs.pt", "index"}), counts


@pytest.mark.slow
def test_ten_thousand_flipped_bits(kinds: dict[str, Kind], tmp_path: Path) -> None:
    kinds = kinds | exported(tmp_path)
    counts = check(kinds, -(-10_000 // len(kinds)))
    assert sum(map(sum, counts.values())) >= 10_000
    print(counts)  # noqa: T201 - the measurement


@pytest.mark.parametrize(
    "name", ["sweep.json", *(pytest.param(name, marks=pytest.mark.slow) for name in ("fit.pt", "network"))]
)
def test_no_bit_of_the_mark_makes_a_file_pass_for_one_without_a_checksum(name: str, kinds: dict[str, Kind]) -> None:
    kind = kinds[name]
    whole, content = kind.read(), kind.path.read_bytes()
    start = content.index(KEY.encode()) - 1
    for bit in range(8 * start, 8 * (start + len(KEY) + 85)):
        assert not survived(kind, whole, bit)


def test_the_check_sees_what_is_not_covered(tmp_path: Path) -> None:
    path = tmp_path / "plain.safetensors"
    save_file({"a": torch.arange(100.0)}, path)
    kind = Kind(path, lambda: bits(path.read_bytes().hex()))
    with pytest.raises(AssertionError, match="changed what is read"):
        survived(kind, kind.read(), 8 * path.stat().st_size - 7)


def test_files_of_the_version_before_still_open(kinds: dict[str, Kind], tmp_path: Path) -> None:
    old = tmp_path / "fit.pt"
    torch.save(torch.load(kinds["fit.pt"].path, weights_only=True), old)
    assert not check_archive(old)
    assert bits(load_state(old)) == kinds["fit.pt"].read()
    path = tmp_path / "old.safetensors"
    save_file({"a": torch.zeros(3)}, path)
    assert not check_tensors(path)
    assert opened_json(b'{"token": "ab"}\n') == {"token": "ab"}


def test_damage_in_a_checkpoint_of_the_version_before_is_seen_by_the_sums_of_the_archive(
    kinds: dict[str, Kind], tmp_path: Path
) -> None:
    old = tmp_path / "fit.pt"
    torch.save(torch.load(kinds["fit.pt"].path, weights_only=True), old)
    kind = Kind(old, lambda: bits(load_state(old)))
    whole = kind.read()
    refused = [not survived(kind, whole, bit) for bit in some_bits(old, 40, seed=SEED)]
    assert sum(refused) >= 20


def test_a_damaged_result_is_refused_by_the_check_of_certificates(kinds: dict[str, Kind]) -> None:
    kind = kinds["discovery: result.json"]
    start = kind.path.read_bytes().index(b'"rank"')
    with flipped(kind.path, 8 * (start + 8)), pytest.raises(ValueError, match="result.json is damaged"):
        check_run(kind.path.parent)
