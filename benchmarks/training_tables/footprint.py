"""Memory that a fit takes at most, and the time of an import, each in processes of their own."""

import statistics
import subprocess
import sys

from training_tables.problems import W1, W2_STEP, Problem

IMPORTS = ("import torch", "import isthmus", "from isthmus import fit")

# a first small fit loads what torch and scipy load late; the highest mark of the memory in use is then reset (Linux)
PEAK = """
import sys, torch
from pathlib import Path
sys.path.insert(0, "benchmarks")
from training_tables.problems import Problem
from isthmus import fit
from isthmus.training.solvers.solver import LBFGS, Adam
torch.set_num_threads(1)
def in_use(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(name)))
def act(problem, solver):
    x, y = problem.data()
    return fit(problem.network(0), x, y, ridge=problem.ridge, solver=solver)
solver = {solver}
act({small}, solver)
network, (x, y) = {problem}.network(0), {problem}.data()
before = in_use("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
fit(network, x, y, ridge={problem}.ridge, solver=solver)
print(in_use("VmHWM") - before)
"""


def expected(problem: Problem, vectors: int) -> int:
    """Bytes of the activations of all layers, of the parameters and of so many vectors as long as they are."""
    parameters = sum(p.numel() for p in problem.network(0).parameters())
    return 4 * (problem.rows * problem.width * problem.depth + parameters * (1 + vectors))


def measured(problem: Problem, solver: str) -> int:
    """Bytes by which a process grows when it fits the problem."""
    small = Problem(3, 20, 50, problem.leak and 2.0)
    script = PEAK.format(solver=solver, small=repr(small), problem=repr(problem))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return int(done.stdout)


def print_memory(quick: bool) -> None:
    """Peak over what activations, parameters and the state of the solver need, for Adam and L-BFGS."""
    print("memory | peak MB, activations + parameters + state MB | ratio")
    big = {"W1, 40 times the rows": Problem(13, 100, 20_000), "W2": W2_STEP, "W1, wide": Problem(13, 1000, 500)}
    for name, problem in ({"W1": W1} if quick else big).items():
        # Adam keeps the gradient and two moments; L-BFGS pairs, gradient, the last gradient, origin and direction
        for solver, vectors in (("Adam(3)", 3), ("LBFGS(8)", 2 * 20 + 4)):
            took, least = measured(problem, solver), expected(problem, vectors)
            print(f"{name:>22} {solver} | {took / 1e6:.0f} {least / 1e6:.0f} | {took / least:.2f}", flush=True)


def import_seconds(statement: str) -> float:
    """CPU seconds of a fresh process."""
    script = f"import time\nbegan = time.process_time()\n{statement}\nprint(time.process_time() - began)"
    return float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)


def print_imports(quick: bool) -> None:
    """CPU seconds of imports, over that of torch."""
    rounds = [{s: import_seconds(s) for s in IMPORTS} for _ in range(1 if quick else 5)]
    print("import | CPU s | over import torch")
    base = statistics.median(r[IMPORTS[0]] for r in rounds)
    for statement in IMPORTS:
        median = statistics.median(r[statement] for r in rounds)
        print(f"{statement:>24} | {median:.2f} | {median / base:.2f}", flush=True)
