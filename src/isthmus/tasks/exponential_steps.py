"""Steps of stiff equations v' = L v + N(v), L diagonal, in Fourier space. The equations: `kuramoto_sivashinsky` ...

A step takes one state, or a state with small disturbances of it where N gives their images under its derivative.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Complex128, Shaped
from numpy.typing import NDArray

CONTOUR_POINTS = 32
Modes = Complex128[np.ndarray, "*states modes"]


@dataclass(frozen=True, slots=True, eq=False)
class Etdrk4:
    """Fourth-order exponential Runge-Kutta step; the linear part is solved exactly.

    The phi functions are means over a circle around each eigenvalue, since their closed forms cancel catastrophically
    near zero.

    Attributes:
        nonlinear: N.

    Source: Cox and Matthews 2002; contour means of Kassam and Trefethen 2005.
    """

    nonlinear: Callable[[Modes], Modes]
    whole: Shaped[np.ndarray, " modes"]
    half: Shaped[np.ndarray, " modes"]
    stage: Shaped[np.ndarray, " modes"]
    update: tuple[Shaped[np.ndarray, " modes"], Shaped[np.ndarray, " modes"], Shaped[np.ndarray, " modes"]]

    @classmethod
    def build(
        cls, linear: Shaped[np.ndarray, " modes"], nonlinear: Callable[[Modes], Modes], *, time_step: float
    ) -> "Etdrk4":
        """The step's coefficients, one per Fourier mode; real where L is."""
        h = time_step
        hL = h * linear
        real = not np.iscomplexobj(linear)  # then half a circle will do, of which the real part is taken
        circle = np.exp((1 if real else 2) * 1j * math.pi * (np.arange(CONTOUR_POINTS) + 0.5) / CONTOUR_POINTS)
        w = hL[:, None] + circle
        e = np.exp(w)

        def mean(values: NDArray[Any]) -> NDArray[Any]:
            found = np.mean(values, axis=1)
            return h * (found.real if real else found)

        phi = [
            mean(p / w**3)
            for p in (-4 - w + e * (4 - 3 * w + w**2), 2 + w + e * (w - 2), -4 - 3 * w - w**2 + e * (4 - w))
        ]
        return cls(nonlinear, np.exp(hL), np.exp(hL / 2), mean((np.exp(w / 2) - 1) / w), (phi[0], phi[1], phi[2]))

    def step(self, v: Modes) -> Modes:
        """The modes one time step later."""
        first = self.nonlinear(v)
        a = self.half * v + self.stage * first
        second = self.nonlinear(a)
        third = self.nonlinear(self.half * v + self.stage * second)
        fourth = self.nonlinear(self.half * a + self.stage * (2 * third - first))
        f1, f2, f3 = self.update
        return self.whole * v + f1 * first + 2 * f2 * (second + third) + f3 * fourth

    def led(self, v: Modes, steps: int) -> Modes:
        """The modes so many steps later."""
        for _ in range(steps):
            v = self.step(v)
        return v

    def trajectory(self, v: Modes, steps: np.ndarray) -> Complex128[np.ndarray, "samples modes"]:
        """The modes after each of these increasing numbers of steps."""
        kept = np.empty((len(steps), len(v)), dtype=np.complex128)
        done = 0
        for row, target in enumerate(steps.tolist()):
            kept[row] = v = self.led(v, target - done)
            done = target
        return kept


def snapshots_kept(call: str, *, num_samples: int, num_snapshots: int, length: float) -> NDArray[np.int64]:
    """Which of the snapshots of a trajectory are rows, spread evenly over it.

    Raises:
        ValueError: `num_samples` is not between 1 and `num_snapshots`, or the circle's `length` is not positive.
    """
    if not 1 <= num_samples <= num_snapshots:
        raise ValueError(
            f"{call}(num_samples={num_samples}, num_snapshots={num_snapshots}): "
            "needs 1 <= num_samples <= num_snapshots."
        )
    if not 0 < length < math.inf:
        raise ValueError(f"{call}(length={length}): needs a positive length.")
    return np.linspace(0, num_snapshots - 1, num_samples).round().astype(np.int64)
