"""A resource that is refused is one line and exit code 2; the same command goes on from there to the same bits."""

import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

import discoveries
from signal_stress import ENDED, OPTIONS, SRC, write_data

DISCOVER = ["discover", "data.csv", *OPTIONS, "--no-pictures", "--out", "place/run"]
COMMANDS = {
    "discover": DISCOVER,
    "apply": ["apply", "saved", "inputs.csv", "--out", "place/rows.csv"],
    "diagnose": ["diagnose", "saved", "--data", "inputs.csv", "--out", "place/page.html"],
}
# what is done before the command, in a shell of its own (and its own mounts)
REFUSALS = {
    "full disk": "mount -t tmpfs -o size=4k none place; head -c 4096 /dev/zero >place/full",
    "read-only": "mount -t tmpfs -o ro none place",
    "file size": "ulimit -f 1",
    "memory": "ulimit -v 700000",
    "descriptors": "ulimit -n 5",
    "full stdout": "exec >/dev/full",
    "closed stdout": "exec >&-",
    "no place": "rmdir place; : >place",
}
# its table goes into a file, and it opens one file at a time
SAYS_NOTHING = {("apply", "full stdout"), ("apply", "closed stdout"), ("apply", "descriptors")}
MOUNTS = {"full disk", "read-only"}
# refused before torch is imported; one more while it is
CHEAP = [*((command, refusal) for command in COMMANDS for refusal in ("no place", "read-only"))]
CHEAP.append(("discover", "descriptors"))


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": str(SRC), **more}


def commanded(here: Path, first: str, arguments: list[str], **more: str) -> subprocess.CompletedProcess[str]:
    """One command after what was done before it, in a mount namespace of its own where there is something to mount."""
    shell = ["unshare", "-m"] if "mount" in first else []
    program = f'{first}\nexec "$0" -m isthmus "$@"'
    return subprocess.run(
        [*shell, "sh", "-c", program, sys.executable, *arguments], cwd=here, env=environment(**more),
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.fixture
def here(tmp_path: Path) -> Path:
    write_data(tmp_path / "data.csv")
    discoveries.discovery().save(tmp_path / "saved")
    lines = [",".join(discoveries.INPUTS), *(",".join(map(repr, row)) for row in discoveries.inputs().tolist())]
    (tmp_path / "inputs.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "place").mkdir()
    return tmp_path


def can_mount() -> bool:
    try:
        return subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0
    except OSError:
        return False


def check(here: Path, command: str, refusal: str) -> None:
    if refusal in MOUNTS and not can_mount():
        pytest.skip("mounting needs rights that are missing here")
    done = commanded(here, REFUSALS[refusal], COMMANDS[command])
    if (command, refusal) in SAYS_NOTHING:
        assert (done.returncode, done.stderr) == (0, "")
        return
    last = done.stderr.splitlines()[-1:]
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
    assert last[0].startswith("isthmus: "), done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("isthmus: ")]
    assert len(said) == 1, done.stderr


@pytest.mark.dear(1)
@pytest.mark.skipif(sys.platform != "linux", reason="limits and mounts of Linux")
@pytest.mark.parametrize(("command", "refusal"), CHEAP)
def test_what_is_refused_at_once_is_one_line(here: Path, command: str, refusal: str) -> None:
    check(here, command, refusal)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits and mounts of Linux")
@pytest.mark.parametrize(("command", "refusal"), [c for c in product(COMMANDS, REFUSALS) if c not in CHEAP])
def test_what_is_refused_later_is_one_line(here: Path, command: str, refusal: str) -> None:
    check(here, command, refusal)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
@pytest.mark.parametrize("limit", ["ulimit -f 8", "ulimit -f 40", "ulimit -n 5"])
def test_a_discovery_goes_on_after_the_refusal_to_the_same_bits(here: Path, limit: str) -> None:
    undisturbed = commanded(here, ":", [*DISCOVER[:-1], "whole"])
    assert undisturbed.returncode in ENDED, undisturbed.stderr
    refused = commanded(here, limit, DISCOVER)
    assert refused.returncode == 2, refused.stderr
    resume = ["--resume" if word == "--out" else word for word in DISCOVER]
    done = commanded(here, ":", resume if (here / "place" / "run").exists() else DISCOVER)
    assert done.returncode in ENDED, done.stderr
    same = [(here / at / "weights.safetensors").read_bytes() for at in ("whole", "place/run")]
    assert same[0] == same[1]


@pytest.mark.slow
def test_without_home_and_caches_it_works(here: Path) -> None:
    shutil.rmtree(here / "place")
    places = {name: "/nowhere/at/all" for name in ("HOME", "MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    done = commanded(here, ":", COMMANDS["diagnose"][:-1] + ["page.html"], **places)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error_worth_a_line(here: Path) -> None:
    program = '"$0" -m isthmus apply saved inputs.csv | head -c 1'
    done = subprocess.run(
        ["sh", "-c", program, sys.executable], cwd=here, env=environment(), capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.stderr) == ("c", "")
