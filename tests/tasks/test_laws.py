"""The physics against limits, closed forms and equations solved another way."""

import math

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from isthmus.tasks import laws


def rows(*values: float) -> list[np.ndarray]:
    return [np.array([float(value)]) for value in values]


def test_a_plate_that_starts_drags_along_what_solves_the_heat_equation() -> None:
    y, t, nu, h = 0.3, 2.0, 0.05, 1e-3

    def u(height: float, time: float) -> float:
        return laws.plate_started(*rows(height, time, 2.0, 2 * nu, 9.0)).item()

    diffused = nu * (u(y + h, t) - 2 * u(y, t) + u(y - h, t)) / h**2
    assert (u(y, t + h) - u(y, t - h)) / (2 * h) == pytest.approx(diffused, rel=1e-4)
    assert u(0.0, t) == 1.0
    assert u(9.0, t) < 1e-12


def test_the_boundary_layer_has_its_tabulated_velocities() -> None:
    # Schlichting, table 5.1
    for eta, velocity in ((1.0, 0.32979), (2.0, 0.62977), (3.0, 0.84605), (5.0, 0.99155)):
        assert laws.boundary_layer(*rows(1, 1, 1, 1, eta)).item() == pytest.approx(velocity, abs=1.5e-5)
    assert laws.boundary_layer(*rows(1, 1, 1, 1, 50)).item() == pytest.approx(1, abs=1e-9)


def test_a_pendulum_swings_as_a_harmonic_one_where_it_is_small_and_as_its_energy_says_where_not() -> None:
    small = laws.pendulum(*rows(2.0, 9.8, 1e-4, 3.0)).item()
    assert small == pytest.approx(2 * math.pi * math.sqrt(2.0 / 9.8), rel=1e-8)
    amplitude = 2.5
    # with sin(theta / 2) = sin(amplitude / 2) sin(phi) the energy integral is regular
    k = math.sin(amplitude / 2)
    energy = quad(lambda phi: 1 / math.sqrt(1 - (k * math.sin(phi)) ** 2), 0, math.pi / 2)[0]
    period = laws.pendulum(*rows(1.0, 1.0, amplitude, 3.0)).item()
    assert period == pytest.approx(4 * energy, rel=1e-10)
    swing = solve_ivp(
        lambda _, s: [s[1], -math.sin(s[0])], (0, period), [amplitude, 0.0], rtol=1e-10, atol=1e-12, method="DOP853"
    )
    assert swing.y[0, -1] == pytest.approx(amplitude, abs=1e-7)
    assert swing.y[0, -1] != pytest.approx(small, abs=0.1)


def test_friction_has_its_smooth_and_its_rough_limit() -> None:
    smooth = laws.pipe_friction(*rows(1000, 1, 0.1, 1e-3, 1e-15)).item()  # Re = 1e5
    assert 1 / math.sqrt(smooth) == pytest.approx(2 * math.log10(1e5 * math.sqrt(smooth) / 2.51), rel=1e-9)
    assert smooth == pytest.approx(0.0180, abs=5e-5)  # Moody's diagram
    rough = laws.pipe_friction(*rows(1000, 1e6, 0.1, 1e-3, 1e-3)).item()
    assert rough == pytest.approx((2 * math.log10(3.7 * 100)) ** -2, rel=1e-4)


def test_a_sphere_has_the_drag_of_stokes_newton_and_of_supersonic_flow() -> None:
    def drag(reynolds: float, mach: float) -> float:
        return laws.sphere_drag(*rows(1.0, mach, 1.0, mach / reynolds, 1.0)).item()

    assert drag(1e-4, 1e-9) * 1e-4 / 24 == pytest.approx(1, abs=1e-3)
    assert drag(1e5, 0.1) == pytest.approx(0.4, abs=0.03)
    assert drag(1e7, 30.0) == pytest.approx(0.9, abs=0.02)
    for mach in (1.0, 1.75):
        assert drag(1e3, mach * (1 - 1e-9)) == pytest.approx(drag(1e3, mach * (1 + 1e-9)), rel=1e-6)
    assert drag(1e4, 1.5) > 2 * drag(1e4, 0.3)
    # between Stokes and free flow of molecules, worked out step by step: Re = 2, M = .5
    s = 0.5 * math.sqrt(0.7)
    slip = s * (4.33 + 2.12 / 1.353 * math.exp(-0.494 / s))
    bend = 0.06 + 0.48 * math.sqrt(2)
    pressure = (4.5 + 0.38 * bend) / (1 + bend) + 0.025 + 0.2 / 256
    expected = 24 / (2 + slip) + math.exp(-0.25 / math.sqrt(2)) * pressure + 0.6 * s * (1 - math.exp(-0.25))
    assert drag(2.0, 0.5) == pytest.approx(expected, rel=1e-12)


def test_a_sphere_among_single_molecules_has_their_drag() -> None:
    # diffuse reflection at the gas's temperature, s small: (16 / (3 sqrt pi) + 2 sqrt pi / 3) / s
    s = 0.01 * math.sqrt(0.7)
    free = (16 / (3 * math.sqrt(math.pi)) + 2 * math.sqrt(math.pi) / 3) / s
    assert laws.sphere_drag(*rows(1.0, 0.01, 1.0, 0.01 / 1e-7, 1.0)).item() == pytest.approx(free, rel=0.04)


def test_a_waterwheel_starts_at_the_rate_of_its_equations() -> None:
    gravity, radius, inflow, leak, friction, inertia = 9.8, 0.4, 0.2, 0.3, 2.0, 4.0
    rate = laws.waterwheel(*rows(gravity, radius, inflow, leak, friction, inertia)).item() * leak

    def turning(_: float, state: np.ndarray) -> list[float]:
        omega, a, b = state
        return [
            (-friction * omega + math.pi * gravity * radius * a) / inertia,
            omega * b - leak * a,
            -omega * a - leak * b + inflow,
        ]

    late = solve_ivp(turning, (0, 12), [1e-9, 0, inflow / leak], rtol=1e-11, atol=1e-18, t_eval=[10.0, 12.0])
    assert math.log(late.y[0, 1] / late.y[0, 0]) / 2 == pytest.approx(rate, rel=1e-3)
    # at Rayleigh number 1 the wheel neither starts nor stops
    balanced = math.pi * gravity * radius * inflow / leak**2
    assert laws.waterwheel(*rows(gravity, radius, inflow, leak, balanced, inertia)).item() == pytest.approx(
        0, abs=1e-12
    )


def test_convection_transports_what_is_measured_and_more_where_it_is_driven_more() -> None:
    # direct simulations at Prandtl number .7: Stevens, Lohse and Verzicco 2011; within the few per cent of the theory
    for rayleigh, measured in ((1e8, 32.0), (1e9, 63.7), (1e10, 131.0)):
        assert laws.nusselt(*rows(rayleigh, 0.7)).item() == pytest.approx(measured, rel=0.05)
    rayleigh = np.logspace(5, 11, 30)
    for prandtl in (0.01, 1.0, 100.0):
        values = laws.nusselt(rayleigh, np.full(30, prandtl))
        slopes = np.diff(np.log(values)) / np.diff(np.log(rayleigh))
        assert (values > 1).all()
        assert ((slopes > 0.15) & (slopes < 0.5)).all()


def test_the_two_balances_of_convection_agree_at_the_solution() -> None:
    re = np.logspace(-2, 6, 200)
    excess, transport = laws._balances(re, np.full(200, 1e8), np.full(200, 1.0))  # pyright: ignore[reportPrivateUsage]
    assert (np.diff(np.sign(excess - transport)) != 0).sum() == 1


@pytest.mark.parametrize(
    "case", [(1.2, 0.1, 0.5, 50, 9.8, 0.7), (1.2, 0.3, 0.5, 50, 9.8, 1.4), (5, 0.1, 1, 50, 9.8, 0.1)]
)
def test_a_projectile_lands_where_its_equations_of_motion_say(case: tuple[float, ...]) -> None:
    density, diameter, mass, speed, gravity, angle = case
    k = math.pi / 8 * laws.SPHERE_DRAG * density * diameter**2 / mass

    def flight(_: float, s: np.ndarray) -> list[float]:
        v = math.hypot(s[2], s[3])
        return [s[2], s[3], -k * v * s[2], -gravity - k * v * s[3]]

    def height(_: float, s: np.ndarray) -> float:
        return s[1]

    height.terminal, height.direction = True, -1  # type: ignore[attr-defined]
    start = [0, 0, speed * math.cos(angle), speed * math.sin(angle)]
    landed = solve_ivp(flight, (0, 100), start, events=height, rtol=1e-11, atol=1e-12, method="DOP853", max_step=0.05)
    expected = landed.y_events[0][-1][0] * gravity / speed**2
    assert laws.projectile(*rows(*case)).item() == pytest.approx(expected, rel=1e-7)


def test_in_a_vacuum_the_range_is_the_sine_of_twice_the_angle() -> None:
    angles = np.linspace(0.1, 1.4, 9)
    thin = [np.full(9, value) for value in (1e-12, 0.1, 1.0, 10.0, 9.8)]
    np.testing.assert_allclose(laws.projectile(*thin, angles), np.sin(2 * angles), rtol=1e-9)
