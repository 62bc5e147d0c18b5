"""Functions of engineering on which active subspaces are usually shown, with their published ranges.

Their gradients are exact. Formulas with dimensionless groups: `formulas`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from isthmus.tasks.gradients import gradient_covariance
from isthmus.tasks.task import Task
from isthmus.theory.home import at_home

STANDARD = 1 / math.sqrt(12)  # standard deviation of a uniform column of width 1


@dataclass(frozen=True, slots=True, eq=False)
class EngineeringFunction:
    """A formula of columns that are uniform within ranges.

    Attributes:
        name: as in `ENGINEERING`.
        ranges: column -> least and largest value, in the order of the columns.
        formula: the columns, one argument each -> values.
        directions: rows that span all gradients in the columns as they are, *exact*.

    >>> len(tasks.ENGINEERING["borehole"].ranges)
    8
    """

    name: str
    ranges: Mapping[str, tuple[float | int, float | int]]
    formula: Callable[..., Tensor]
    directions: Float64[np.ndarray, "index_rank d_in"]

    def __call__(self, x: Float[Tensor, "*n d_in"]) -> Float[Tensor, "*n 1"]:
        """Values, samples as rows."""
        return self.formula(*x.unbind(-1)).unsqueeze(-1)

    def draw(self, num_samples: int, generator: torch.Generator) -> Float[Tensor, "n d_in"]:
        """Rows, uniform within the ranges."""
        low, high = torch.tensor(list(self.ranges.values()), dtype=torch.float64).T
        return low + (high - low) * torch.rand(num_samples, len(low), generator=generator, dtype=torch.float64)

    def standardised_covariance(self, *, num_samples: int = 20_000, seed: int = 0) -> Float[Tensor, "d_in d_in"]:
        """Gradient covariance in columns scaled to variance 1, averaged over random rows (*estimate* of the integral).

        Its leading eigenvectors are what a discovery of standardised columns is compared with.
        """
        x = self.draw(num_samples, torch.Generator().manual_seed(seed))
        low, high = torch.tensor(list(self.ranges.values()), dtype=torch.float64).T
        scales = STANDARD * (high - low)
        return scales[:, None] * gradient_covariance(self, x) * scales


@at_home
def engineering(name: str, *, num_samples: int, noise: float = 0.0, seed: int = 0) -> Task:
    """Regression on one of the functions of `ENGINEERING`, its inputs uniform within the published ranges.

    Args:
        name: borehole, otl_circuit, piston, wing_weight, robot_arm or friedman.
        num_samples: number of rows.
        noise: standard deviation of the noise, relative to that of the function.
        seed: of rows and noise.

    Returns:
        Task with names, one target and the span of its gradients in `directions` (*exact*): borehole depends on the
        difference of its two heads, robot_arm not on its first angle, friedman on four combinations of ten columns.

    Raises:
        ValueError: no such function, no rows, or a negative noise.

    Source: Surjanovic and Bingham, Virtual Library of Simulation Experiments. Test: tests/tasks/test_engineering.py.

    >>> task = tasks.engineering("borehole", num_samples=20)
    >>> task.x.shape, task.y.shape
    ((20, 8), (20, 1))
    """
    if name not in ENGINEERING or num_samples < 1 or not 0 <= noise < math.inf:
        raise ValueError(
            f"engineering({name!r}, num_samples={num_samples}, noise={noise}): needs one of {', '.join(ENGINEERING)}, "
            "num_samples >= 1 and a finite noise >= 0."
        )
    function, generator = ENGINEERING[name], torch.Generator().manual_seed(seed)
    x = function.draw(num_samples, generator)
    y = function(x)
    y = y + noise * y.std(correction=0) * torch.randn(y.shape, generator=generator, dtype=torch.float64)
    source = f"engineering({name}, noise={noise:g}, seed={seed})"
    return Task(
        x.numpy(), y.numpy(), 1, source, x_names=tuple(function.ranges), jacobian_rank=1,
        directions=function.directions,
    )  # fmt: skip


def borehole(*columns: Tensor) -> Tensor:
    """Flow of water through a borehole, m^3 per year."""
    radius, influence, upper, upper_head, lower, lower_head, length, conductivity = columns
    ratio = torch.log(influence / radius)
    leak = 1 + 2 * length * upper / (ratio * radius.square() * conductivity) + upper / lower
    return 2 * math.pi * upper * (upper_head - lower_head) / (ratio * leak)


def otl_circuit(*columns: Tensor) -> Tensor:
    """Midpoint voltage of a push-pull circuit without an output transformer."""
    base_1, base_2, feedback, collector_1, collector_2, gain = columns
    base = 12 * base_2 / (base_1 + base_2)
    load = gain * (collector_2 + 9)
    total = load + feedback
    return (base + 0.74) * load / total + 11.35 * feedback / total + 0.74 * feedback * load / (total * collector_1)


def piston(*columns: Tensor) -> Tensor:
    """Seconds in which a piston completes one cycle."""
    weight, surface, volume, spring, pressure, ambient, gas = columns
    force = pressure * surface + 19.62 * weight - spring * volume / surface
    filling = pressure * volume / gas * ambient
    inner = surface / (2 * spring) * (torch.sqrt(force.square() + 4 * spring * filling) - force)
    return 2 * math.pi * torch.sqrt(weight / (spring + surface.square() * filling / inner.square()))


def wing_weight(*columns: Tensor) -> Tensor:
    """Weight of the wing of a light aircraft, in pounds."""
    area, fuel, aspect, sweep, pressure, taper, thickness, load, gross, paint = columns
    cosine = torch.cos(sweep * math.pi / 180)
    shape = (aspect / cosine.square()) ** 0.6 * (100 * thickness / cosine) ** -0.3 * taper**0.04
    return 0.036 * area**0.758 * fuel**0.0035 * shape * pressure**0.006 * (load * gross) ** 0.49 + area * paint


def robot_arm(*columns: Tensor) -> Tensor:
    """Distance of the end of an arm of four segments from its shoulder."""
    angles, lengths = torch.stack(columns[:4]), torch.stack(columns[4:])
    heading = angles.cumsum(0)
    across, along = (lengths * torch.cos(heading)).sum(0), (lengths * torch.sin(heading)).sum(0)
    return torch.hypot(across, along)


def friedman(*columns: Tensor) -> Tensor:
    """The first function of Friedman: five of ten columns."""
    a, b, c, d, e = columns[:5]
    return 10 * torch.sin(math.pi * a * b) + 20 * (c - 0.5).square() + 10 * d + 5 * e


def _span(d: int, *rows: Mapping[int, int]) -> Float64[np.ndarray, "index_rank d_in"]:
    """One row per direction, as column -> coefficient."""
    matrix = np.zeros((len(rows), d))
    for i, row in enumerate(rows):
        for column, coefficient in row.items():
            matrix[i, column] = coefficient
    return matrix


ENGINEERING: Mapping[str, EngineeringFunction] = MappingProxyType(
    {
        "borehole": EngineeringFunction(
            "borehole",
            {
                "rw": (0.05, 0.15), "r": (100, 50_000), "Tu": (63_070, 115_600), "Hu": (990, 1110), "Tl": (63.1, 116),
                "Hl": (700, 820), "L": (1120, 1680), "Kw": (9855, 12_045),
            },
            borehole,
            _span(8, {0: 1}, {1: 1}, {2: 1}, {3: 1, 5: -1}, {4: 1}, {6: 1}, {7: 1}),
        ),
        "otl_circuit": EngineeringFunction(
            "otl_circuit",
            {
                "Rb1": (50, 150), "Rb2": (25, 70), "Rf": (0.5, 3), "Rc1": (1.2, 2.5), "Rc2": (0.25, 1.2),
                "beta": (50, 300),
            },
            otl_circuit,
            np.eye(6),
        ),
        "piston": EngineeringFunction(
            "piston",
            {
                "M": (30, 60), "S": (0.005, 0.02), "V0": (0.002, 0.01), "k": (1000, 5000), "P0": (90_000, 110_000),
                "Ta": (290, 296), "T0": (340, 360),
            },
            piston,
            np.eye(7),
        ),
        "wing_weight": EngineeringFunction(
            "wing_weight",
            {
                "Sw": (150, 200), "Wfw": (220, 300), "A": (6, 10), "Lambda": (-10, 10), "q": (16, 45),
                "lambda": (0.5, 1), "tc": (0.08, 0.18), "Nz": (2.5, 6), "Wdg": (1700, 2500), "Wp": (0.025, 0.08),
            },
            wing_weight,
            np.eye(10),
        ),
        "robot_arm": EngineeringFunction(
            "robot_arm",
            {f"theta{i}": (0, 2 * math.pi) for i in range(1, 5)} | {f"L{i}": (0, 1) for i in range(1, 5)},
            robot_arm,
            np.eye(8)[1:],
        ),
        "friedman": EngineeringFunction(
            "friedman",
            {f"x{i}": (0, 1) for i in range(1, 11)},
            friedman,
            _span(10, {0: 1}, {1: 1}, {2: 1}, {3: 2, 4: 1}),
        ),
    }
)  # fmt: skip
