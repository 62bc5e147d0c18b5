"""Question: does the certified interval hold the true rank of networks whose rank is known, and is it tight?

200 networks with weights written down: matrices of rank 1..8 between two piecewise linear bijections, the same after
another bijection, balanced deep linear networks, the divergent representation (rank 3) and the x-cross (bottleneck rank
2, Jacobian rank 1). Each is cut in two by `factorise` at the least rank that loses nothing; the interval is that of a
discovery, from a minor of the Jacobian below and the two halves above. 300 standard normal samples each, seeds drawn
from the hash of the measured commit.

    python benchmarks/interval.py [--quick] [--commit HASH]

Answer: at commit 97163e56, 200 of 200 intervals hold the rank and 195 are tight; the five that are not are the
x-crosses, whose interval is [1, 2]. 28 s of CPU (a busy core of an Intel Xeon, torch 2.13.0 CPU, November 2026).
"""

import argparse
import hashlib
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from isthmus import FullyConnected

NUM_SAMPLES = 300
EXACT = 1e-9  # relative error up to which a network equals its two halves


@dataclass(frozen=True)
class Known:
    """A network whose rank is known."""

    family: str
    network: FullyConnected
    rank: int
    nonnegative: bool = False


def matrix_of(rank: int, d_out: int, d_in: int, rng: np.random.Generator) -> torch.Tensor:
    """A random matrix of this rank, singular values between 1/2 and 2."""
    u, v = (np.linalg.qr(rng.normal(size=(d, rank)))[0] for d in (d_out, d_in))
    return torch.from_numpy(u * rng.uniform(0.5, 2, rank) @ v.T)


def networks(commit: str) -> Iterator[Known]:
    """The 200 networks that belong to a commit, the families in turn."""
    from isthmus import constructions as c

    rng = np.random.default_rng(int(hashlib.sha256(commit.encode()).hexdigest()[:16], 16))
    for number in range(200):
        rank, seed = 1 + number % 8, int(rng.integers(2**31))
        d_in, d_out = (int(rng.integers(rank, 2 * rank + 8)) for _ in range(2))
        matrix = matrix_of(rank, d_out, d_in, rng)
        if number % 40 == 38:
            yield Known("divergent", c.divergent_representation_example(8).network, 3, nonnegative=True)
        elif number % 40 == 39:
            yield Known("x-cross", c.x_cross_example().network, 2)
        elif number % 5 == 1:
            network = c.balanced_linear_network(matrix, depth=int(rng.integers(2, 12)))
            yield Known("linear", network, rank)
        else:
            inner = c.between_bijections(matrix, seed=seed).network
            if number % 5 == 2:
                outer = c.between_bijections(matrix_of(d_out, d_out, d_out, rng), seed=seed + 1).network
                yield Known("composed", c.merged_composition(inner, outer), rank)
            else:
                yield Known("bijections", inner, rank)


def measure(known: Known, seed: int) -> tuple[int, int, int]:
    """The certified interval and the estimate for samples of this seed."""
    from isthmus import factorise
    from isthmus.discovery.certificates import certified_interval
    from isthmus.discovery.problem import pose
    from isthmus.discovery.scaling import Standardiser
    from isthmus.training.losses import Loss

    d_in = known.network.dimensions[0]
    drawn = np.random.default_rng(seed).normal(size=(NUM_SAMPLES, d_in))
    x = np.abs(drawn) if known.nonnegative else drawn
    with torch.no_grad():
        y = known.network.double()(torch.from_numpy(x)).numpy()
    most = min(d_in, y.shape[1])
    halves, rank = None, 0
    for rank in range(1, most + 1):  # the least rank through which the network passes
        halves = factorise(known.network, torch.from_numpy(x), rank)
        if halves.relative_error < EXACT or rank == most:
            break
    inputs, targets = Standardiser.of(x), Standardiser.of(y, total=True)
    assert halves is not None
    problem = pose(x, y, np.zeros(len(x), dtype=bool), loss=Loss.SQUARED, inputs=inputs, targets=targets)
    found = certified_interval((halves.encoder, halves.decoder), problem, rank)
    return found.lower, found.upper, found.estimate


def main() -> None:
    """Print every interval that is not tight, then the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the first 20 networks")
    parser.add_argument("--commit", help="draw the networks of this commit instead of HEAD's")
    options = parser.parse_args()
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    commit, began = options.commit or head, time.process_time()
    print(f"commit {commit}")
    total, right, tight, wrong = 0, 0, 0, 0
    missed: Counter[str] = Counter()
    for number, known in enumerate(networks(commit)):
        if options.quick and number >= 20:
            break
        lower, upper, estimate = measure(known, number)
        total += 1
        right += estimate == known.rank
        tight += lower == upper
        wrong += not lower <= known.rank <= upper
        missed[known.family] += lower != upper
        if not lower == known.rank == upper:
            print(f"{number:>3} {known.family:<10} rank {known.rank}: [{lower}, {upper}], estimate {estimate}")
    per_family = ", ".join(f"{family} {count}" for family, count in missed.items() if count) or "none"
    print(f"{total - wrong} of {total} intervals hold the rank, {tight} are tight (not tight: {per_family}), "
          f"{right} estimates right; {time.process_time() - began:.0f} s")  # fmt: skip
    sys.exit(wrong > 0 or tight < 0.9 * total)


if __name__ == "__main__":
    main()
