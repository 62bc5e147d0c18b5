"""Every command signalled at random moments: how each ended, and whether it said more than it should.

python tests/command_signals.py 300 [SEED] [COMMAND ...]   # a row for each child, counts at the end

Half of the children are fresh processes, whose imports are signalled too; the others are forked from one that has
imported everything, so that the moments fall into the work. A third of the signals go to the whole group, as Ctrl-C
does.
A discovery that goes on where it was stopped: `signal_stress`.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import discoveries
import readme_files
from signal_stress import SIGNALS, SRC, is_handled
from sweep_plans import write_plan

ENDED = {0, 3}  # done, or done and doubtful
LONGEST = 400.0
IMPORTS = 3.0  # seconds in which a fresh process may still be at its imports
# what nobody should read after an interrupt
ODD = ("Traceback", "Exception ignored", "terminate called", "bug of isthmus", "Warning", "Error in atexit", "leaked")
ROUGH = ["--ridge", "1e-2", "--starts", "1", "--evaluations", "20"]
# the end of Python calls first what was registered last. Main's, which ends the process, must stay before all that the
# imports registered, as it does in a fresh process
FORKING = """
import atexit, json, os, signal, sys
at_last, register = [], atexit.register
register(lambda: [deed(*given) for deed, *given in at_last])
sys.path.insert(0, {src!r})
import isthmus.cli.commands, isthmus.cli.discover_run, isthmus.cli.diagnose_run, isthmus.cli.figure_run
import isthmus.cli.region_run, isthmus.cli.export_run, isthmus.cli.interpret, isthmus.cli.doctor, isthmus.cli.fit_run
import isthmus.sweeps, isthmus.recheck, matplotlib.figure, pandas
from isthmus.cli.main import main
for line in sys.stdin:
    words, errors = json.loads(line)
    child = os.fork()
    if not child:
        os.setsid()
        for number, name in ((0, os.devnull), (1, errors), (2, errors)):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND), number)
        sys.argv = ["isthmus", *words]

        def first(*given):
            at_last.append(given)
            atexit.register = register

        atexit.register = first
        break
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    os._exit(0)
main()
"""


def command_lines(folder: Path) -> dict[str, list[str]]:
    """A line for every command on files that this makes; {out} is a place of its own for each child."""
    readme_files.write_all(folder)
    discoveries.discovery().save(folder / "run")
    table, model, samples = str(folder / "measurements.csv"), str(folder / "model.pt2"), str(folder / "rows.npy")
    run, found = str(folder / "run"), str(folder / "found")
    search = ["discover", table, "--target", "yield", *ROUGH]
    fresh([*search, "--out", found], folder / "errors").wait()
    plan = str(write_plan(folder, "seed = [0, 1, 2]", evaluations=60))
    rows = folder / "rows.csv"
    rows.write_text("\n".join([",".join(discoveries.INPUTS), *(",".join(map(str, x)) for x in discoveries.inputs())]))
    on_model = [model, "--data", samples, "--out", "{out}"]
    return {
        "discover": [*search, "--out", "{out}"],
        "discover workers": [*search, "--out", "{out}", "--workers", "2"],
        "fit": ["fit", samples, "--autoencode", "--ridge", "1e-2", "--evaluations", "40", "--out", "{out}"],
        "apply": ["apply", run, str(rows), "--out", "{out}.csv"],
        "interpret": ["interpret", run, str(rows)],
        "compare": ["compare", run, run],
        "verify": ["verify", found],
        "region": ["region", found, "--data", table, "--slice", "1,2,3", "--out", "{out}.png"],
        "cost": ["cost", str(folder / "matrix.npy"), "--depth", "20", "--kind", "connected"],
        "diagnose": ["diagnose", *on_model[:-1], "{out}.html"],
        "factor": ["factor", *on_model, "--rank", "8"],
        "compress": ["compress", *on_model, "--tolerance", "1e-2"],
        "sweep": ["sweep", plan, "--out", "{out}", "--workers", "0"],
        "sweep workers": ["sweep", plan, "--out", "{out}", "--workers", "2"],
        "figure": ["figure", "large-depth", "--preset", "tiny", "--workers", "2", "--out", "{out}"],
        "doctor": ["doctor"],
        "help": ["discover", "--help"],
    }


@dataclass(slots=True)
class Child:
    """A command that runs.

    Attributes:
        number: of its process, which leads a group of its own.
        errors: the file that all that it says goes to.
        wait: its exit code, once it has ended.
    """

    number: int
    errors: Path
    wait: Callable[[], int]

    def told(self) -> str:
        """What it said."""
        return self.errors.read_text(errors="replace")


@dataclass(slots=True)
class Signalled:
    """How children ended: counts by command and code, and every failure whole."""

    codes: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])


def fresh(words: list[str], errors: Path) -> Child:
    """A process of its own."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(SRC)}
    with errors.open("ab") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "isthmus", *words], stdin=subprocess.DEVNULL, stdout=stream,
            stderr=stream, env=environment, start_new_session=True,
        )  # fmt: skip
    return Child(process.pid, errors, lambda: process.wait(LONGEST))


@contextlib.contextmanager
def forking() -> Generator[Callable[[list[str], Path], Child]]:
    """What starts children that have imported everything."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", FORKING.format(src=str(SRC))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=environment,
    ) as parent:  # fmt: skip
        told, heard = parent.stdin, parent.stdout
        assert told is not None
        assert heard is not None

        def start(words: list[str], errors: Path) -> Child:
            print(json.dumps([words, str(errors)]), file=told, flush=True)
            return Child(int(heard.readline()), errors, lambda: int(heard.readline()))

        yield start
        told.close()


def ended(child: Child, number: signal.Signals, delay: float, *, group: bool) -> tuple[int, str]:
    """Signal a child after a delay; its exit code, and what is wrong with how it ended."""
    while is_handled(child.number) is False:
        time.sleep(0.001)
    time.sleep(delay)
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if group else os.kill)(child.number, number)
    until, problem = time.monotonic() + LONGEST, ""
    while is_handled(child.number) is not None:
        time.sleep(0.01)
        if time.monotonic() > until:
            problem = "did not end"
            os.killpg(child.number, signal.SIGKILL)
    code, told = child.wait(), child.told()
    problem = problem or next((f"says {word!r}" for word in ODD if word in told), "")
    if code not in {130, *ENDED}:
        problem = problem or f"exit code {code}"
    elif code == 130 and "interrupted" not in told:
        problem = problem or "said nothing"
    return code, problem and f"{problem}\n{told[-3000:]}"


def undisturbed(child: Child) -> tuple[float, int, str]:
    """Seconds until a child ends by itself, its exit code, and what is wrong with it."""
    began = time.monotonic()
    code = child.wait()
    problem = "" if code in ENDED else f"exit code {code} undisturbed\n{child.told()[-2000:]}"
    return time.monotonic() - began, code, problem


def stress(number: int, *, seed: int, names: tuple[str, ...] = (), say: Callable[[str], object] = print) -> Signalled:
    """Signal so many children, of all commands in turn; the first forked one of each ends by itself, and is timed."""
    chance, found = random.Random(seed), Signalled()
    # a shell or nohup may have made this process deaf, and children inherit that; handlers they do not
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, lambda _number, _frame: None)
    with TemporaryDirectory(prefix="signals-") as place, forking() as forked:
        lines = command_lines(Path(place))
        chosen = {name: words for name, words in lines.items() if not names or name in names}
        lasts: dict[str, float] = {}
        for turn in range(number):
            name, is_fresh = list(chosen)[turn % len(chosen)], (turn // len(chosen)) % 2 == 0
            words = [word.format(out=f"{place}/out{turn}") for word in chosen[name]]
            child = (fresh if is_fresh else forked)(words, Path(place) / f"errors{turn}")
            if is_fresh or name in lasts:
                kind, group = chance.choice(SIGNALS), chance.random() < 1 / 3
                longest = lasts.get(name, 0.0) + IMPORTS * is_fresh
                delay = chance.uniform(0.0, 1.05 * longest)
                code, problem = ended(child, kind, delay, group=group)
                how = (
                    f"{'fresh' if is_fresh else 'forked'}, {kind.name}{' to all' if group else ''} after {delay:.2f} s"
                )
            else:
                lasts[name], code, problem = undisturbed(child)
                how = f"undisturbed, {lasts[name]:.2f} s"
            found.codes[f"{name} {code}"] += 1
            say(f"{turn} {name}: {code} ({how}){': ' + problem if problem else ''}")
            if problem:
                found.failures.append(f"turn {turn}, {name}, {how}: {problem}")
            for path in Path(place).glob(f"out{turn}*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    return found


if __name__ == "__main__":
    told = stress(
        int(sys.argv[1]), seed=int(sys.argv[2]) if len(sys.argv) > 2 else 0, names=tuple(sys.argv[3:]),
        say=lambda text: (sys.stdout.write(text + "\n"), sys.stdout.flush()),
    )  # fmt: skip
    sys.stdout.write(f"{dict(sorted(told.codes.items()))}\n")
    sys.stdout.write("\n".join([f"{len(told.failures)} failures", *told.failures, ""]))
    sys.exit(bool(told.failures))
