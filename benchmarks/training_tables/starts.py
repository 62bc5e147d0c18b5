"""What is gained by giving up dominated starts, and by adding a rank to a start that ended too low."""

import time

from isthmus import FullyConnected, fit
from isthmus.training.culling import Culling
from isthmus.training.moves import middle_rank, rebalancing, truncate_middle
from isthmus.training.several import fit_several
from isthmus.training.solvers.rank_raising import raise_rank
from isthmus.training.solvers.schedule import default_schedule
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.solvers.trials import RankTrials
from training_tables.problems import DISCOVERY, W1_SMALL, Problem

QUICK = Problem(5, 16, 60)


def print_culling(quick: bool) -> None:
    """Five starts of W1-small and three that start from ten times smaller weights, all to the end or culled."""
    problem, rule = (QUICK, Culling(20, 100)) if quick else (W1_SMALL, Culling())
    print("culling | rule | CPU s, gradients | given up at | best objective | objectives of all")
    for name, culling in (("none", None), ("culled", rule)):
        began = time.process_time()
        networks = [problem.network(seed) for seed in range(2 if quick else 8)]
        for network in networks[5:]:
            for parameter in network.parameters():
                parameter.mul_(0.3)
        solver = default_schedule(networks[0], evaluations=200 if quick else None)
        found = fit_several(networks, *problem.data(), ridge=problem.ridge, culling=culling, solver=solver, workers=1)
        ends = " ".join(f"{r.objective:.4f}" for r in found.results)
        spent = sum(r.gradient_evaluations for r in found.results)
        print(
            f"culling | {name} | {time.process_time() - began:.1f} {spent} | {found.culled} "
            f"| {found.results[found.best].objective:.5f} | {ends}",
            flush=True,
        )


def print_raising(quick: bool) -> None:
    """Starts truncated to one rank below the true 5 and minimised there: as many gradients again, or a rank added."""
    steps = 20 if quick else 300
    print("raising | start | objective rank: stuck | as many gradients again | one rank added, polished")
    for seed in range(1 if quick else 3):
        network = DISCOVERY.network(seed)
        assert isinstance(network, FullyConnected)

        def minimised(which: FullyConnected, *solver: Adam | LBFGS | RankTrials) -> str:
            found = fit(which, *DISCOVERY.data(), ridge=DISCOVERY.ridge, solver=tuple(solver))
            return f"{found.objective:.5f} {middle_rank(which)}"

        minimised(network, Adam(steps, moves=(rebalancing,), move_every=10), LBFGS(steps))
        truncate_middle(network, 4)
        stuck = minimised(network, LBFGS(steps))
        control = network.rewritten(*network.written_layers())
        again = minimised(control, LBFGS(steps))
        raised = minimised(network, RankTrials(LBFGS(steps), most=1, attempt=raise_rank))
        print(f"raising | {seed} | {stuck} | {again} | {raised}", flush=True)
