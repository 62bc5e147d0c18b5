"""Laws of physics in plain units, one function of columns each. Their units, ranges and groups: `formulas`."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float64
from scipy.special import ellipk, erfc

Column = Float64[np.ndarray, " n"]
Law = Callable[..., Column]  # columns in the order in which a formula lists them -> the target
WALL_SHEAR = 0.332057336215196  # f''(0) of the Blasius equation
FAR = 12.0  # where the boundary layer has ended: 1 - f' < 1e-12
HEATS = 1.4  # ratio of specific heats of air
SPHERE_DRAG = 0.47  # of a projectile at high Reynolds number
BISECTIONS = 80
NODES, HALVINGS = 100, 45  # of Gauss-Legendre along a trajectory, and of the slope at which it ends


def plate_started(height: Column, time: Column, density: Column, viscosity: Column, speed: Column) -> Column:
    """Velocity above a plate that is started, relative to the plate's: erfc(y / (2 sqrt(nu t))) (Rayleigh, Stokes)."""
    del speed  # the answer is relative to it
    return erfc(height / (2 * np.sqrt(viscosity * time / density)))


@cache
def _blasius() -> Any:
    """Dense solution of f''' + f f'' / 2 = 0, f(0) = f'(0) = 0."""
    from scipy.integrate import solve_ivp  # as long to import as all of our own modules, for one formula

    start = [0.0, 0.0, WALL_SHEAR]
    return solve_ivp(
        lambda _, s: [s[1], s[2], -s[0] * s[2] / 2], (0.0, FAR), start, method="DOP853", dense_output=True,
        rtol=1e-12, atol=1e-13,
    ).sol  # fmt: skip


def boundary_layer(speed: Column, density: Column, viscosity: Column, along: Column, height: Column) -> Column:
    """Velocity in a laminar boundary layer relative to that outside: f'(y sqrt(U / (nu x))) (Blasius)."""
    eta = height * np.sqrt(speed * density / (viscosity * along))
    return _blasius()(np.minimum(eta, FAR))[1]


def pendulum(length: Column, gravity: Column, amplitude: Column, mass: Column) -> Column:
    """Period of a pendulum of any amplitude below pi: 4 sqrt(l / g) K(sin^2(theta / 2))."""
    del mass
    return 4 * np.sqrt(length / gravity) * ellipk(np.sin(amplitude / 2) ** 2)


def pipe_friction(density: Column, speed: Column, diameter: Column, viscosity: Column, roughness: Column) -> Column:
    """Darcy friction factor of a rough pipe: 1 / sqrt f = -2 log10(k / (3.7 D) + 2.51 / (Re sqrt f)) (Colebrook)."""
    reynolds = density * speed * diameter / viscosity
    s = np.full_like(reynolds, 7.0)  # 1 / sqrt f; the right-hand side contracts
    for _ in range(BISECTIONS):
        s = -2 * np.log10(roughness / (3.7 * diameter) + 2.51 * s / reynolds)
    return s**-2.0


def sphere_drag(density: Column, speed: Column, diameter: Column, viscosity: Column, sound: Column) -> Column:
    """Drag coefficient of a sphere of the gas's temperature by Reynolds and Mach number (Henderson 1976), air."""
    re, mach = density * speed * diameter / viscosity, speed / sound
    below, above = _subsonic(re, np.minimum(mach, 1.0)), _supersonic(re, np.maximum(mach, 1.75))
    share = np.clip((mach - 1) / 0.75, 0.0, 1.0)
    return (1 - share) * below + share * above


def _subsonic(re: Column, mach: Column) -> Column:
    s = mach * math.sqrt(HEATS / 2)  # molecular speed ratio
    slip = s * (4.33 + (3.65 - 1.53) / 1.353 * np.exp(-0.247 * re / s))
    bend = 0.03 * re + 0.48 * np.sqrt(re)
    pressure = (4.5 + 0.38 * bend) / (1 + bend) + 0.1 * mach**2 + 0.2 * mach**8
    return 24 / (re + slip) + np.exp(-0.5 * mach / np.sqrt(re)) * pressure + 0.6 * s * (1 - np.exp(-mach / re))


def _supersonic(re: Column, mach: Column) -> Column:
    s, rare = mach * math.sqrt(HEATS / 2), 1.86 * np.sqrt(mach / re)
    return (0.9 + 0.34 / mach**2 + rare * (2 + 2 / s**2 + 1.058 / s - 1 / s**4)) / (1 + rare)


def waterwheel(*columns: Column) -> Column:
    """Rate at which a chaotic waterwheel at rest starts to turn, relative to its leak (Malkus; Strogatz, section 9.1).

    The larger root of (s + nu / I)(s + K) = pi g r q / (I K), divided by K.
    """
    gravity, radius, inflow, leak, friction, inertia = columns
    brake = friction / inertia
    drive = math.pi * gravity * radius * inflow / (inertia * leak)
    return (np.sqrt((brake - leak) ** 2 + 4 * drive) - brake - leak) / (2 * leak)


def convection(*columns: Column) -> Column:
    """Nusselt number of a layer heated from below (Grossmann and Lohse; constants of Stevens et al. 2013)."""
    gravity, expansion, difference, height, viscosity, diffusivity = columns
    rayleigh = gravity * expansion * difference * height**3 / (viscosity * diffusivity)
    return nusselt(rayleigh, viscosity / diffusivity)


def nusselt(rayleigh: Column, prandtl: Column) -> Column:
    """The two equations of the theory solved for the Reynolds number by bisection, then for the Nusselt number."""
    low, high = np.full_like(rayleigh, math.log(1e-6)), np.full_like(rayleigh, math.log(1e12))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        excess, transport = _balances(np.exp(middle), rayleigh, prandtl)
        fast = excess > transport
        low, high = np.where(fast, low, middle), np.where(fast, middle, high)
    return 1 + _balances(np.exp((low + high) / 2), rayleigh, prandtl)[0]


def _balances(re: Column, rayleigh: Column, prandtl: Column) -> tuple[Column, Column]:
    """Nu - 1 by the dissipation of kinetic energy, and by that of heat with that Nu."""
    a = 0.922
    critical = (2 * a) ** 2
    x = np.sqrt(critical / re)
    g = x * (1 + x**4) ** -0.25
    excess = prandtl**2 / rayleigh * (8.05 * re**2 / g + 1.38 * re**3)
    y = 2 * a * (1 + excess) / math.sqrt(critical) * g
    f = (1 + y**4) ** -0.25
    return excess, 0.487 * np.sqrt(re * prandtl * f) + 0.0252 * prandtl * re * f


def projectile(*columns: Column) -> Column:
    """Range of a ball with quadratic drag relative to v^2 / g.

    With p the slope of the path and u the horizontal velocity, du^-2/dp = -(2 b / u0^2) cos^2 sqrt(1 + p^2) in closed
    form, where b = drag over weight at the start; x and y are integrals over p, and the ball lands where y is 0 again.
    """
    density, diameter, mass, speed, gravity, angle = columns
    drag = math.pi / 8 * SPHERE_DRAG * density * diameter**2 * speed**2 / (mass * gravity)
    top = np.arcsinh(np.tan(angle))  # slopes are sinh of this: a steep fall takes few nodes
    low, high = np.full_like(top, -15.0), np.zeros_like(top)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        airborne = _path(middle, top, drag, angle)[1] > 0
        low, high = np.where(airborne, low, middle), np.where(airborne, middle, high)
    return _path((low + high) / 2, top, drag, angle)[0]


def _path(end: Column, top: Column, drag: Column, angle: Column) -> tuple[Column, Column]:
    """How far and how high between two slopes, in units of v^2 / g."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    middle, half = (top + end) / 2, (top - end) / 2
    t = middle[:, None] + half[:, None] * nodes
    bent = np.sinh(2 * t) / 2 + t  # of p sqrt(1 + p^2) + arcsinh p
    start = np.sinh(2 * top) / 2 + top
    u_squared = 1 / (np.cos(angle)[:, None] ** -2 + drag[:, None] * (start[:, None] - bent))
    dx = u_squared * np.cosh(t) * weights * half[:, None]
    return dx.sum(1), (dx * np.sinh(t)).sum(1)
