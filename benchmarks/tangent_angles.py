"""Question: how many dimensions does the manifold of a flow have, by the angles between its tangent subspaces?

    python benchmarks/tangent_angles.py [kuramoto-22 ...] [--moments 2000]

Of the first m covariant Lyapunov vectors against all others that were computed: the least angle on the trajectory. It
falls towards zero the longer one looks at a splitting inside of the manifold and stays where it is at its border, where
the least angle rises above all those before by the largest factor.

Answer (November 2026, 2,000 moments; exponents of kuramoto-22 are those of the literature, .043, 0, 0, -.003, -.189):
    kuramoto-22      8    angle .277 there, .004 before it (Ding et al. 2016: 8)
    kuramoto-44     18    angle .392, .006
    kuramoto-66     28    angle .120, .005
    ginzburg-20     22    angle .278, .006
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isthmus.tasks import ginzburg_landau, kuramoto_sivashinsky
from isthmus.tasks.ginzburg_landau import tangent_solver as of_ginzburg_landau
from isthmus.tasks.kuramoto_sivashinsky import tangent_solver as of_kuramoto_sivashinsky
from measured.covariant_vectors import Array, Lead, covariant

WARM = 500  # intervals until decompositions have forgotten their beginning


@dataclass(frozen=True)
class Flow:
    """A flow with its tangent flow.

    Attributes:
        state: one on the attractor.
        lead: it and its disturbances one interval of time on.
        time: of the interval.
        count: of the vectors that are followed.
    """

    state: Callable[[], Array]
    lead: Lead
    time: float
    count: int


def kuramoto(length: float, count: int) -> Flow:
    """The Kuramoto-Sivashinsky equation on 64 points, intervals of 4 steps."""
    solver = of_kuramoto_sivashinsky(length=length, grid_points=64, time_step=0.25)
    return Flow(
        lambda: kuramoto_sivashinsky(num_samples=1, num_snapshots=1, length=length).x[0],
        lambda rows: np.fft.irfft(solver.led(np.fft.rfft(rows), 4), 64), 1.0, count,
    )  # fmt: skip


def ginzburg(length: float, count: int) -> Flow:
    """The complex Ginzburg-Landau equation on 64 points, intervals of 10 steps."""
    solver = of_ginzburg_landau(length=length)

    def lead(rows: Array) -> Array:
        a = np.fft.ifft(solver.led(np.fft.fft(rows[:, :64] + 1j * rows[:, 64:]), 10))
        return np.concatenate([a.real, a.imag], axis=1)

    return Flow(lambda: ginzburg_landau(num_samples=1, num_snapshots=1, length=length).x[0], lead, 0.5, count)


FLOWS: dict[str, Callable[[], Flow]] = {
    "kuramoto-22": lambda: kuramoto(22.0, 16),
    "kuramoto-44": lambda: kuramoto(44.0, 30),
    "kuramoto-66": lambda: kuramoto(66.0, 40),
    "ginzburg-20": lambda: ginzburg(20.0, 40),
}


def border(angles: Array) -> int:
    """The splitting whose least angle is the largest multiple of all those before it."""
    least = angles.min(0)
    return int(np.argmax(least[1:] / np.maximum.accumulate(least)[:-1])) + 2


def main() -> None:
    """One line a flow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("flows", nargs="*", default=list(FLOWS), metavar="FLOW", help=", ".join(FLOWS))
    parser.add_argument("--moments", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="the first flow alone, 500 moments")
    options = parser.parse_args()
    if options.quick:
        options.flows, options.moments = options.flows[:1], 500
    print(f"{options.moments} moments, after {WARM} intervals of time")
    for name in options.flows:
        flow = FLOWS[name]()
        found = covariant(
            flow.lead, flow.state(), count=flow.count, time=flow.time, warm=WARM, moments=options.moments, cool=WARM
        )
        rank, least = border(found.angles), found.angles.min(0)
        shown = ", ".join(f"{value:.3f}" for value in found.exponents[: rank + 2])
        before = least[: rank - 1].max()
        print(f"{name:<12} {rank:>4}    angle {least[rank - 1]:.3f}, before {before:.3f}    exponents {shown}")


if __name__ == "__main__":
    main()
