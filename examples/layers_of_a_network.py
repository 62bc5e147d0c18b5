"""Train a plain deep ReLU network, see its layers become an identity on few dimensions, and cut it there."""

import math

import torch

import isthmus
from isthmus import tasks


def main() -> None:
    task = tasks.teacher(2, d_in=10, d_out=5, latent_dim=4, num_samples=200, noise=0.0, seed=0)
    x, y = torch.from_numpy(task.x), torch.from_numpy(task.target)
    y = (y - y.mean(0)) / y.var(0).sum().sqrt()
    network = isthmus.FullyConnected(10, 5, width=32, depth=8, seed=0)
    result = isthmus.fit(network, x, y, ridge=3e-3, limits=isthmus.Limits(evaluations=1500))
    print(f"{result.outcome.value}; objective {result.objective:.3f}, rank of the middle {result.rank}")
    layers = isthmus.diagnose(network, x).layers
    for layer in layers.layer.values:
        row = layers.sel(layer=layer)
        found = float(row.dimension_activation)
        count = "no clear number of" if math.isnan(found) else f"{found:.0f}"
        print(
            f"layer {layer}: {count} dimensions, "
            f"nonlinearity {float(row.nonlinearity_impact):.2f}, identity defect {float(row.identity_defect):.2f}"
        )
    halves = isthmus.factorise(network.double(), x, result.rank)
    print(f"cut at layer {halves.layer}: relative error {halves.relative_error:.1e} through {halves.rank} dimensions")


if __name__ == "__main__":
    main()
