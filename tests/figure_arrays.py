"""Arrays of every figure, made by hand so that every claim of the papers holds on them."""

from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr


def rank_recovery() -> xr.Dataset:
    depth = 13
    impact = np.full(depth, 1e-3)
    impact[[0, -2]] = 0.5
    numbers = {"objective": 0.1, "data_loss": 0.05, "penalty": 6.0 * depth, "rank": 5.0}
    data = xr.Dataset({name: ((), value) for name, value in numbers.items()}, coords={"layer": np.arange(1, depth + 1)})
    data["dimension_activation"] = ("layer", np.full(depth, 5))
    data["nonlinearity_impact"] = ("layer", impact)
    return data


def class_boundaries() -> xr.Dataset:
    columns = {"depth": [2, 2, 9, 9], "ridge": [0, 1e-3, 0, 1e-3], "tripoints": [2, 1, 0, 0], "error": [0, 0, 0, 0]}
    return xr.Dataset({name: ("run", np.array(values, dtype=float)) for name, values in columns.items()})


def depth_plateaus() -> xr.Dataset:
    depth = np.array([4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 40.0])
    count = np.array([3.0, 3.0, 3.0, 2.0, 2.0, 2.0, 0.0])
    columns = {"count": count, "penalty": np.where(count > 0, count * depth + 5, 0.0)}
    columns["data_loss"] = np.where(count > 0, 0.02, 1.0)
    data = xr.Dataset({name: ("depth", values) for name, values in columns.items()}, coords={"depth": depth})
    return data.expand_dims(start=2).assign(looks=((), 2))


def leaky() -> xr.Dataset:
    depths, bump = np.array([2.0, 4.0, 8.0]), np.array([1.0, 0.2, 0.0, 0.2, 1.0])
    identity = 2.0 + bump + (4 / depths - 0.4)[:, None]
    stable = np.array([1.0, 1.7, 1.95])[:, None] + 0.01 * bump
    hamiltonian = -stable * depths[:, None] / 2
    columns = {"cost_of_identity": identity, "hamiltonian": hamiltonian, "hamiltonian_mixed": hamiltonian}
    columns["kinetic_energy"] = (identity - stable) * depths[:, None] / 2
    columns |= {"momentum_norm": 1 + 0 * identity, "product_norm": 1 + 0 * identity}
    data = xr.Dataset({name: (("effective_depth", "layer"), values) for name, values in columns.items()})
    for name, value in (("path_length", 1.0), ("stationarity", 1e-4)):
        data[name] = ("effective_depth", np.full(3, value))
    data = data.assign_coords(effective_depth=depths).expand_dims(start=2).transpose(..., "start")
    return data.assign(rank=((), 2.0), looks=((), 2))


def denoising() -> xr.Dataset:
    columns = {"gain": [[0.8, 0.1], [0.9, 0.3], [0.9, 0.4]], "lost": [[0.01, 0.01], [0.02, 0.2], [0.02, 0.2]]}
    data = xr.Dataset({name: (("set", "kind"), np.array(values)) for name, values in columns.items()})
    return data.assign(defect=("kind", [0.5, 0.02]))


def large_depth() -> xr.Dataset:
    count, depth = np.array([8.0, 32.0, 128.0]), np.array([10.0, 160.0])
    stretch = 0.7 * count**0.5
    columns = {"stretch": stretch, "slope": 3 * stretch, "certified": np.log2(stretch) + 2}
    data = xr.Dataset({name: ("count", values) for name, values in columns.items()}, coords={"count": count})
    trained = {"trained_excess": [5.0, 5.0], "trained_objective": [1.4e-4, 1.6e-3], "least_ratio": [0.1, 0.02]}
    data = data.merge(xr.Dataset({name: ("depth", values) for name, values in trained.items()}))
    return data.assign_coords(depth=depth).assign(ridge=((), 1e-5))


def symmetry() -> xr.Dataset:
    numbers = {"lost": 0.01, "dimensions": 2.0, "to_statistics": 0.95, "from_statistics": 0.95, "crossings": 0.0}
    noisy = {f"noisy_{way}_statistics": ("noisy_start", [0.95, 0.96, 0.94]) for way in ("to", "from")}
    return xr.Dataset({name: ((), value) for name, value in numbers.items()} | noisy)


def narrowness() -> xr.Dataset:
    count = np.array([8.0, 32.0, 128.0])
    columns = {"rank_one": np.stack([count, count], 1), "rank_two": np.full((3, 2), 4.0)}
    data = xr.Dataset({name: (("count", "depth"), values) for name, values in columns.items()})
    return data.assign(stretch=("count", count**0.5)).assign_coords(count=count, depth=[10.0, 20.0])


def step_sizes() -> xr.Dataset:
    depth, start = np.array([3.0, 6.0, 12.0]), 0.01 * np.arange(3.0)
    trace = depth[:, None, None] * (np.array([[3.0], [1.0], [0.5]]) + start)  # over depth, run, start
    data = xr.Dataset({"trace": (("depth", "run", "start"), trace)})
    data = data.assign(edge=(("depth", "run", "start"), np.zeros_like(trace) + 0.9 + start))
    data = data.assign(rank_one=("depth", [1.0, 1.0, 1.0]), rank_two=("depth", [1e-9, 1e-9, 1e-9]))
    data = data.assign(loss=0 * data["trace"] + 0.01)
    return data.transpose("depth", "start", "run").assign_coords(depth=depth)


def discretisation() -> xr.Dataset:
    error = np.array([[0.2, 0.1], [0.19, 0.09], [0.15, 0.09]])
    data = xr.Dataset({"test_error": (("scheme", "depth"), error), "stationarity": (("scheme", "depth"), 0 * error)})
    data = data.assign(stationarity=data["stationarity"] + 1e-4, position=("layer", [0.1, 0.4, 0.9, 1.0]))
    return data.assign_coords(scheme=[0, 1, 2]).expand_dims(start=2).assign(looks=((), 2))


def linear_resnets() -> xr.Dataset:
    weight, construction = np.array([1e-300, 1e-1]), np.logspace(-16, -2, 8)
    log, logs = np.log(1 / weight), np.log(1 / construction)
    tiny = np.stack([np.tile(3 * weight * log**power, (3, 1)) for power in (2, 1)])
    data = xr.Dataset({"tiny_cost": (("block", "depth", "tiny_point"), tiny), "tiny_weight": ("tiny_point", weight)})
    data["wide_cost"] = (("block", "depth", "wide_point"), np.full((2, 3, 4), 4.3))
    data["trained_penalty"] = data["trained_closed"] = ("training", np.array([2.0, 5.0, 7.0]))
    data["trained_stationarity"] = ("training", np.full(3, 1e-4))
    data["construction_weight"] = ("case", construction)
    data["construction_cost"] = ("case", construction * (2 * logs + 0.5))
    data["construction_bound"] = 0.9 * data["construction_cost"]
    return data.assign_coords(block=[1, 2], depth=[4.0, 16.0, np.inf])


def linear_networks() -> xr.Dataset:
    falling = np.logspace(0, -5, 6)
    data = xr.Dataset({"full_cost": ("depth", [4.3, 3.5, 3.0]), "diagonal_cost": ("depth", [2.6, 3.5, 4.0])})
    data["trained_penalty"] = data["trained_closed"] = ("training", np.array([4.3, 3.5]))
    data["trained_stationarity"], data["network_loss"] = ("training", np.full(2, 1e-4)), ((), 0.05)
    data["kernel_spectrum"] = (("bandwidth", "component"), np.stack([falling**0.1, falling**0.5]))
    data["network_spectrum"] = ("component", np.array([1.0, 0.3, 1e-3, 1e-4, 1e-5, 1e-6]))
    return data.assign_coords(depth=[1.0, 10.0, 1000.0])


MADE: Mapping[str, Callable[[], xr.Dataset]] = {
    "rank-recovery": rank_recovery,
    "class-boundaries": class_boundaries,
    "depth-plateaus": depth_plateaus,
    "leaky-depth": leaky,
    "boundedness": leaky,
    "denoising": denoising,
    "large-depth": large_depth,
    "symmetry": symmetry,
    "narrowness": narrowness,
    "discretisation": discretisation,
    "linear-resnets": linear_resnets,
    "linear-networks": linear_networks,
    "step-sizes": step_sizes,
}
