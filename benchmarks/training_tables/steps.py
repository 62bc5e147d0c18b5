"""Times of a training step: over its bare matrix products, over eager torch, and as N, L and w grow; and on a GPU."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from isthmus import FullyConnected, LeakyResNet
from isthmus.training.solvers.solver import Adam
from isthmus.training.steps.captured import Captured
from isthmus.training.steps.connected_step import FullyConnectedStep
from isthmus.training.steps.leaky_step import LeakyStep
from training_tables.problems import W1, W2_STEP, Problem
from training_tables.timing import clock_of, interleaved

Action = Callable[[], object]
Shape = tuple[int, int, bool]  # inputs and outputs of a layer, and whether the gradient goes on below it


def shapes(problem: Problem) -> list[Shape]:
    """The layers of a problem; the fixed maps of a leaky network are left out."""
    network = problem.network(0)
    if isinstance(network, LeakyResNet):
        return [(problem.width, problem.width, l > 0) for l in range(problem.depth)]
    d = network.dimensions
    return [(d[l], d[l + 1], l > 0) for l in range(problem.depth)]


def products(problem: Problem) -> dict[str, Action]:
    """A W^T, G^T A and G W of every layer on memory of its own, by oneDNN and by `torch.mm`; no bias, nothing else."""
    layers, device = shapes(problem), problem.device
    a, g = ([torch.randn(problem.rows, s[k], device=device) for s in layers] for k in (0, 1))
    w = [torch.randn(s[1], s[0], device=device) for s in layers]
    outs = [(torch.empty_like(g[l]), torch.empty_like(w[l]), torch.empty_like(a[l])) for l in range(len(layers))]
    a_t, g_t, w_t = ([m.t().contiguous() for m in ms] for ms in (a, g, w))

    def mm() -> None:
        for l, (forward, _, _) in enumerate(outs):
            torch.mm(a[l], w[l].t(), out=forward)
        for l in range(len(layers) - 1, -1, -1):
            torch.mm(g[l].t(), a[l], out=outs[l][1])
            if layers[l][2]:
                torch.mm(g[l], w[l], out=outs[l][2])

    def onednn() -> None:
        for l in range(len(layers)):
            _linear(a[l], w[l])
        for l in range(len(layers) - 1, -1, -1):
            _linear(g_t[l], a_t[l])
            if layers[l][2]:
                _linear(g[l], w_t[l])

    at_hand = device == "cpu" and torch.backends.mkldnn.is_available()
    return {"onednn": onednn, "mm": mm} if at_hand else {"mm": mm}


def _linear(x: Tensor, weight: Tensor) -> Tensor:
    """The product x W^T by oneDNN."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")


def engine(problem: Problem) -> dict[str, Action]:
    """The gradient alone, and with a step of Adam."""
    step, other = problem.step(), problem.step()
    solver = Adam(10**9, rate=1e-6)
    state = solver.start(other)
    return {"gradient": step, "step": lambda: solver.advance(other, state)}


class EagerLeaky(nn.Module):
    """The leaky network as one would write it."""

    def __init__(self, network: LeakyResNet) -> None:
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(w.detach().clone()) for w in network.weights])
        self.into, self.out = network.embedding.detach().clone(), network.unembedding.detach().clone()
        self.rho, self.leak = 1 / network.depth, network.effective_depth

    def forward(self, x: Tensor) -> Tensor:
        """f(x)."""
        a = x @ self.into.t()
        one = x.new_ones(len(x), 1)
        for w in self.weights:
            a = (1 - self.rho * self.leak) * a + self.rho * (torch.cat([torch.relu(a), one], 1) @ w.t())
        return a @ self.out.t()


def eager_module(problem: Problem) -> nn.Module:
    """The network out of `nn.Linear` and `nn.ReLU`, or the leaky one."""
    network = problem.network(0)
    if isinstance(network, LeakyResNet):
        return EagerLeaky(network)
    assert isinstance(network, FullyConnected)
    d = network.dimensions
    layers: list[nn.Module] = []
    for l in range(network.depth):
        layers += [nn.Linear(d[l], d[l + 1]), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).to(problem.device)


def eager(problem: Problem) -> Action:
    """A step of autograd and `torch.optim.Adam` on the same objective."""
    module = eager_module(problem)
    decay = 2 * problem.ridge if problem.leak is None else problem.ridge / problem.leak / problem.depth
    optimiser = torch.optim.Adam(module.parameters(), lr=1e-6, weight_decay=decay)
    x, y = problem.data()

    def act() -> None:
        with torch.enable_grad():
            optimiser.zero_grad(set_to_none=True)
            loss = (module(x) - y).square().sum() / len(x)
            loss.backward()
        optimiser.step()

    return act


def print_steps(quick: bool) -> None:
    """W1 and W2: ratios to the bare products, by oneDNN and by torch.mm, and to eager torch."""
    small = {"W1": Problem(4, 20, 50), "W2": Problem(4, 30, 50, leak=2.0)}
    print("step | ms | gradient over oneDNN products, over torch.mm | step over oneDNN products, torch.mm, eager Adam")
    for name, problem in (small if quick else {"W1": W1, "W2": W2_STEP}).items():
        actions = products(problem) | engine(problem) | {"eager": eager(problem)}
        took = interleaved(actions, seconds=0.2 if quick else 12.0)
        bare = took.get("onednn", took["mm"])
        print(
            f"{name:>4} | {1e3 * took['step']:.2f} | {took['gradient'] / bare:.2f} {took['gradient'] / took['mm']:.2f} "
            f"| {took['step'] / bare:.2f} {took['step'] / took['mm']:.2f} {took['step'] / took['eager']:.2f}",
            flush=True,
        )


def print_graphs(quick: bool) -> None:
    """On a GPU: bare products and gradients as CUDA graphs and kernel by kernel, and eager Adam; growing rows."""
    if not torch.cuda.is_available():
        print("graphs: there is no GPU")
        return
    print(
        f"graphs on {torch.cuda.get_device_name()} | ms: products kernel by kernel, as a graph | gradient kernel by "
        "kernel, as a graph | step of Adam | eager Adam | graph over products as one, over gradient without"
    )
    for name, problem, factor in (("W1", W1, 1), ("W1", W1, 20), ("W2", W2_STEP, 1), ("W2", W2_STEP, 20)):
        grown = replace(problem, rows=problem.rows * factor, device="cuda")
        bare, without = products(grown)["mm"], grown.step()
        assert isinstance(without, FullyConnectedStep | LeakyStep)
        without._computed.stop()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        captured = Captured[object](torch.device("cuda"))
        actions = {"bare": bare, "bare as a graph": lambda bare=bare, captured=captured: captured(bare, None)}
        actions |= {"without": without} | engine(grown) | {"eager": eager(grown)}
        took = {
            key: 1e3 * value
            for key, value in interleaved(actions, seconds=0.2 if quick else 3.0, clock=clock_of("cuda")).items()
        }
        print(
            f"{name} {grown.rows:>6} | {took['bare']:.3f} {took['bare as a graph']:.3f} | {took['without']:.3f} "
            f"{took['gradient']:.3f} | {took['step']:.3f} | {took['eager']:.3f} "
            f"| {took['gradient'] / took['bare as a graph']:.2f} {took['gradient'] / took['without']:.2f}",
            flush=True,
        )


def grown(quick: bool) -> Iterator[tuple[str, Problem, Problem]]:
    """A small problem and the one in which N, L or w is ten times as large, of each kind."""
    factor = 2 if quick else 10
    for leak in (None, 2.0):
        kind = "fully connected" if leak is None else "leaky"
        base = Problem(5, 30, 100, leak)
        yield f"{kind}, N", base, Problem(5, 30, 100 * factor, leak)
        yield f"{kind}, L", base, Problem(5 * factor, 30, 100, leak)
        yield f"{kind}, w", base, Problem(5, 30 * factor, 100, leak)


def print_growth(quick: bool) -> None:
    """A gradient over its bare products (torch.mm), small and ten times larger."""
    print("growth | from L w N to L w N | gradient over the bare products before, after, after / before")
    for name, small, large in grown(quick):
        ratios: list[float] = []
        for problem in (small, large):
            took = interleaved(
                {"bare": products(problem)["mm"], "gradient": engine(problem)["gradient"]},
                seconds=0.1 if quick else 4.0,
            )
            ratios.append(took["gradient"] / took["bare"])
        sizes = " to ".join(f"{p.depth} {p.width} {p.rows}" for p in (small, large))
        print(f"{name:>18} | {sizes} | {ratios[0]:.2f} {ratios[1]:.2f} {ratios[1] / ratios[0]:.2f}", flush=True)
