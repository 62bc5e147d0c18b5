"""Formulas of physics whose dimensionless groups are known, with the units of every column. The physics: `laws`.

Columns come in plain units and span more than a decade: their logarithms are taken by whoever looks for groups.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from jaxtyping import Float64

from isthmus.tasks import laws
from isthmus.tasks.laws import Law
from isthmus.tasks.task import Task

BASE_UNITS = ("kg", "m", "s", "K")
Number = float | int  # as written down
Units = Mapping[str, int]  # base unit -> exponent; what is left out is 0
Group = Mapping[str, Number]  # column -> exponent
Bounds = tuple[Number, Number]
BATCHES = 1000  # of rows drawn before a formula's bounds are called empty


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a formula: positive, between two values, log-uniform or uniform, in these units."""

    low: Number
    high: Number
    units: Units = field(default_factory=dict[str, int])
    logarithmic: bool = True

    def draw(self, num_samples: int, rng: np.random.Generator) -> Float64[np.ndarray, " n"]:
        """Values of a random sample."""
        if not self.logarithmic:
            return rng.uniform(self.low, self.high, num_samples)
        return np.exp(rng.uniform(math.log(self.low), math.log(self.high), num_samples))


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A law of positive columns that depends on few products of their powers.

    Attributes:
        name: as in `FORMULAS`.
        columns: by name, in the order in which the law takes them.
        groups: the products, column -> exponent: up to powers and products of each other all that the target, or its
            logarithm less that of a product of powers, depends on.
        law: the target.
        target: its name.
        bounds: for each of some groups, where rows may lie; others are not drawn.
        target_units: of the target; empty where it has none.
        log_target: the target spans decades, or only its logarithm depends on as few groups: take that.

    >>> tasks.FORMULAS["colebrook"].groups
    ({'density': 1, 'speed': 1, 'diameter': 1, 'viscosity': -1}, {'roughness': 1, 'diameter': -1})
    """

    name: str
    columns: Mapping[str, Column]
    groups: tuple[Group, ...]
    law: Law
    target: str
    bounds: tuple[tuple[Group, Bounds], ...] = ()
    target_units: Units = field(default_factory=dict[str, int])
    log_target: bool = False

    @property
    def exponents(self) -> Float64[np.ndarray, "groups d_in"]:
        """The groups as rows: they span all gradients in the logarithms of the columns."""
        return np.stack([self._powers(group) for group in self.groups])

    @property
    def units(self) -> Float64[np.ndarray, "d_in base"]:
        """Exponents of kg, m, s, K, one row per column."""
        return np.array([[float(column.units.get(base, 0)) for base in BASE_UNITS] for column in self.columns.values()])

    def __call__(self, x: Float64[np.ndarray, "n d_in"]) -> Float64[np.ndarray, "n 1"]:
        """The target without noise, one row per row of x."""
        return self.law(*x.T)[:, None]

    def draw(self, num_samples: int, rng: np.random.Generator) -> Float64[np.ndarray, "n d_in"]:
        """Random rows within the bounds.

        Raises:
            ValueError: hardly any row lies within them.
        """
        kept: list[np.ndarray] = []
        for _ in range(BATCHES):
            rows = np.stack([column.draw(num_samples, rng) for column in self.columns.values()], 1)
            within = np.ones(num_samples, dtype=bool)
            for group, (low, high) in self.bounds:
                value = np.exp(np.log(rows) @ self._powers(group))
                within &= (low < value) & (value < high)
            kept.append(rows[within])
            if sum(map(len, kept)) >= num_samples:
                return np.concatenate(kept)[:num_samples]
        raise ValueError(f"{self.name}: hardly any row lies within its bounds {self.bounds}. Widen them.")

    def task(self, *, num_samples: int, noise: float = 0.0, seed: int = 0) -> Task:
        """Regression on the law: as `formula` says."""
        if num_samples < 1 or not 0 <= noise < math.inf:
            raise ValueError(
                f"formula(num_samples={num_samples}, noise={noise}): needs num_samples >= 1 and a finite noise >= 0."
            )
        rng = np.random.default_rng(seed)
        x = self.draw(num_samples, rng)
        y = self(x) * np.exp(noise * rng.standard_normal((num_samples, 1)))
        source = f"formula({self.name}, noise={noise:g}, seed={seed})"
        return Task(x, y, 1, source, x_names=tuple(self.columns), y_names=(self.target,), jacobian_rank=1)

    def _powers(self, group: Group) -> Float64[np.ndarray, " d_in"]:
        return np.array([float(group.get(name, 0)) for name in self.columns])


def formula(name: str, *, num_samples: int, noise: float = 0.0, seed: int = 0) -> Task:
    """Regression on one of the formulas of `FORMULAS`, in plain units.

        y = law(x) * exp(noise * N(0, 1))

    The number of groups and their exponents are in `FORMULAS[name].exponents`: the rows that span all gradients of the
    target in the *logarithms* of the columns. In the columns themselves the task has no such rank.

    Args:
        name: rayleigh_plate (1 group), blasius (1), pendulum (2, of the logarithm of its period), colebrook (2),
            sphere_drag (2), waterwheel (2), convection (2) or projectile (2).
        num_samples: number of rows.
        noise: relative error of the target.
        seed: of rows and noise.

    Raises:
        ValueError: no such formula, no rows, or a negative noise.

    Source: `laws` names them. Test: tests/tasks/test_formulas.py.

    >>> task = tasks.formula("colebrook", num_samples=20)
    >>> task.x_names, task.y_names
    (('density', 'speed', 'diameter', 'viscosity', 'roughness'), ('friction',))
    """
    if name not in FORMULAS:
        raise ValueError(f"formula({name!r}): needs one of {', '.join(FORMULAS)}.")
    return FORMULAS[name].task(num_samples=num_samples, noise=noise, seed=seed)


SPEED, VISCOSITY, DENSITY = {"m": 1, "s": -1}, {"kg": 1, "m": -1, "s": -1}, {"kg": 1, "m": -3}
LENGTH, TIME, MASS, GRAVITY = {"m": 1}, {"s": 1}, {"kg": 1}, {"m": 1, "s": -2}
DIFFUSIVITY, INERTIA = {"m": 2, "s": -1}, {"kg": 1, "m": 2}
REYNOLDS = {"density": 1, "speed": 1, "diameter": 1, "viscosity": -1}
RAYLEIGH = {"gravity": 1, "expansion": 1, "difference": 1, "height": 3, "viscosity": -1, "diffusivity": -1}
ACROSS_PLATE = {"height": 1, "time": -0.5, "density": 0.5, "viscosity": -0.5}
ACROSS_LAYER = {"height": 1, "speed": 0.5, "density": 0.5, "viscosity": -0.5, "along": -0.5}
DRIVE = {"gravity": 1, "radius": 1, "inflow": 1, "leak": -2, "friction": -1}
BRAKE = {"friction": 1, "leak": -1, "inertia": -1}
DRAG = {"density": 1, "diameter": 2, "mass": -1, "speed": 2, "gravity": -1}


def _listed(*formulas: Formula) -> Mapping[str, Formula]:
    return MappingProxyType({one.name: one for one in formulas})


FORMULAS: Mapping[str, Formula] = _listed(
    Formula(
        "rayleigh_plate",
        {
            "height": Column(1e-3, 0.1, LENGTH), "time": Column(1, 1e3, TIME), "density": Column(1, 1e3, DENSITY),
            "viscosity": Column(1e-4, 1e-1, VISCOSITY), "speed": Column(0.1, 10, SPEED),
        },
        (ACROSS_PLATE,),
        laws.plate_started,
        "velocity",
        bounds=((ACROSS_PLATE, (0.1, 5)),),
    ),
    Formula(
        "blasius",
        {
            "speed": Column(0.1, 10, SPEED), "density": Column(1, 1e3, DENSITY),
            "viscosity": Column(1e-4, 1e-1, VISCOSITY), "along": Column(1e-2, 1, LENGTH),
            "height": Column(1e-4, 0.1, LENGTH),
        },
        (ACROSS_LAYER,),
        laws.boundary_layer,
        "velocity",
        bounds=((ACROSS_LAYER, (0.2, 7)),),
    ),
    Formula(
        "pendulum",
        {
            "length": Column(0.1, 10, LENGTH), "gravity": Column(1, 30, GRAVITY),
            "amplitude": Column(0.1, 2.8, logarithmic=False), "mass": Column(0.1, 10, MASS),
        },
        ({"length": 0.5, "gravity": -0.5}, {"amplitude": 1}),
        laws.pendulum,
        "period",
        target_units=TIME,
        log_target=True,
    ),
    Formula(
        "colebrook",
        {
            "density": Column(1e2, 2e3, DENSITY), "speed": Column(0.1, 10, SPEED), "diameter": Column(0.01, 1, LENGTH),
            "viscosity": Column(1e-4, 3e-3, VISCOSITY), "roughness": Column(1e-6, 1e-2, LENGTH),
        },
        (REYNOLDS, {"roughness": 1, "diameter": -1}),
        laws.pipe_friction,
        "friction",
        bounds=((REYNOLDS, (4e3, 1e8)), ({"roughness": 1, "diameter": -1}, (1e-6, 0.05))),
    ),
    Formula(
        "sphere_drag",
        {
            "density": Column(1e-2, 10, DENSITY), "speed": Column(30, 1e3, SPEED),
            "diameter": Column(1e-5, 1e-2, LENGTH), "viscosity": Column(3e-6, 1e-4, VISCOSITY),
            "sound": Column(100, 1500, SPEED),
        },
        (REYNOLDS, {"speed": 1, "sound": -1}),
        laws.sphere_drag,
        "drag",
        bounds=((REYNOLDS, (20, 1e5)), ({"speed": 1, "sound": -1}, (0.1, 3))),
    ),
    Formula(
        "waterwheel",
        {
            "gravity": Column(1, 30, GRAVITY), "radius": Column(0.1, 3, LENGTH),
            "inflow": Column(0.01, 1, {"kg": 1, "s": -1}), "leak": Column(0.01, 1, {"s": -1}),
            "friction": Column(0.01, 10, {"kg": 1, "m": 2, "s": -1}), "inertia": Column(0.1, 100, INERTIA),
        },
        (DRIVE, BRAKE),
        laws.waterwheel,
        "growth",
        bounds=((DRIVE, (1, 300)), (BRAKE, (0.05, 50))),
        log_target=True,
    ),
    Formula(
        "convection",
        {
            "gravity": Column(1, 30, GRAVITY), "expansion": Column(1e-4, 1e-2, {"K": -1}),
            "difference": Column(0.3, 30, {"K": 1}), "height": Column(0.03, 1, LENGTH),
            "viscosity": Column(1e-7, 1e-4, DIFFUSIVITY), "diffusivity": Column(1e-7, 1e-4, DIFFUSIVITY),
        },
        (RAYLEIGH, {"viscosity": 1, "diffusivity": -1}),
        laws.convection,
        "Nusselt",
        bounds=((RAYLEIGH, (1e6, 1e10)), ({"viscosity": 1, "diffusivity": -1}, (0.003, 300))),
        log_target=True,
    ),
    Formula(
        "projectile",
        {
            "density": Column(0.1, 10, DENSITY), "diameter": Column(0.01, 1, LENGTH), "mass": Column(0.1, 100, MASS),
            "speed": Column(3, 300, SPEED), "gravity": Column(1, 30, GRAVITY),
            "angle": Column(0.1, 1.4, logarithmic=False),
        },
        (DRAG, {"angle": 1}),
        laws.projectile,
        "range",
        bounds=((DRAG, (0.1, 100)),),
        log_target=True,
    ),
)  # fmt: skip
