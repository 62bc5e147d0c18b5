"""Train the autoencoder 64-512-256-20 | four linear 20x20 | 20-256-512-64 on Kuramoto-Sivashinsky data and diagnose it.

The attractor of u_t = -u u_x - u_xx - u_xxxx on a circle of length 22 lies in a manifold of 8 dimensions; the narrow
part of the network has 20. An L2 penalty on all weights (weight decay, here the exact one: `ridge`) leaves 8 of the 20
in use. Read them off the centred activations; the weight matrices keep their full numerical rank of 20.

    python examples/rank_of_an_autoencoder.py

Took 84 s of training on one core shared with other work; seed 0 and 2,500 snapshots say 8 as well.
"""

import torch
import xarray as xr
from torch import Tensor

import isthmus
from isthmus import tasks
from isthmus.theory import numerical_rank
from isthmus.training.moves import rebalancing
from isthmus.training.solvers import LBFGS, Adam, ExactMoves

NARROW = range(3, 8)  # the layers, of 10, that answer with 20 numbers
SCHEDULE = (Adam(200, moves=(rebalancing,), move_every=10), ExactMoves(), LBFGS(500))


def snapshots(num_samples: int) -> Tensor:
    """States of the equation as rows, of mean 0 and total variance 1."""
    x = torch.from_numpy(tasks.kuramoto_sivashinsky(num_samples=num_samples, seed=0).x)
    return (x - x.mean(0)) / x.var(0, correction=0).sum().sqrt()


def trained(x: Tensor, *, seed: int) -> isthmus.FullyConnected:
    """The autoencoder at the end of its training."""
    widths = [512, 256, 20, 20, 20, 20, 20, 256, 512]
    network = isthmus.FullyConnected(64, 64, width=widths, depth=10, linear=NARROW, seed=seed, dtype=torch.float32)
    result = isthmus.fit(network, x, x, ridge=3e-4, solver=SCHEDULE)
    print(
        f"objective {result.objective:.4f}, squared error {result.data_loss:.4f} of variance 1, {result.seconds:.0f} s"
    )
    return network


def say(network: isthmus.FullyConnected, layers: xr.Dataset) -> None:
    """A line for every narrow layer."""
    for layer in NARROW:
        row, weight = layers.sel(layer=layer), network.weights[layer - 1].detach()
        s = row.activation_singular_values.values
        print(
            f"layer {layer}: {row.dimension_activation.item():.0f} dimensions "
            f"(value 9 is {s[8] / s[7]:.0e} of value 8); rank of the weights {int(numerical_rank(weight))}"
        )


def main() -> None:
    x = snapshots(1250)
    network = trained(x, seed=1)
    diagnosis = isthmus.diagnose(network, x)
    say(network, diagnosis.layers)
    narrow = diagnosis.layers.sel(layer=list(NARROW)).dimension_activation.values  # NaN where no number stands out
    listed = ", ".join(f"{number:.0f}" for number in narrow)
    print(f"narrow layers: {listed}; rank of the whole: {diagnosis.rank.estimate}")


if __name__ == "__main__":
    main()
