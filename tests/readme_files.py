"""The files that the commands of the README name, small, each with a rank that is known."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image

from isthmus import FullyConnected, tasks

INPUTS = ("density", "velocity", "diameter", "viscosity", "temperature", "pressure")


def write_all(folder: Path) -> None:
    """Tables, snapshots.npy, pictures, matrix.npy, rows.npy and targets.npy, and the network model.pt2."""
    random = np.random.default_rng(5)
    _measurements(random, 300).to_csv(folder / "measurements.csv", index=False)
    _measurements(random, 12).drop(columns=["yield", "purity"]).to_csv(folder / "new_rows.csv", index=False)
    np.save(folder / "snapshots.npy", _travelling_wave(random, 240))
    (folder / "pictures").mkdir()
    for number, picture in enumerate(_mixed_pictures(100)):
        Image.fromarray(picture).save(folder / "pictures" / f"{number}.png")
    angles = random.uniform(0, 4 * np.pi, 160)
    curve = np.stack([np.cos(angles), np.sin(angles), angles / (2 * np.pi)], axis=1)
    pd.DataFrame(curve, columns=["x", "y", "z"]).to_csv(folder / "curve.csv", index=False)
    np.save(folder / "matrix.npy", random.normal(size=(6, 3)) @ random.normal(size=(3, 5)))
    teacher = tasks.teacher(3, d_in=16, d_out=4, latent_dim=4, num_samples=200, seed=2)
    rows = teacher.x.astype(np.float32)
    np.save(folder / "rows.npy", rows)
    np.save(folder / "targets.npy", teacher.target)
    network = FullyConnected(16, 16, width=24, depth=5, seed=0, dtype=torch.float32)
    torch.export.save(torch.export.export(network, (torch.from_numpy(rows[:4]),)), folder / "model.pt2")


def _measurements(random: np.random.Generator, count: int) -> pd.DataFrame:
    """Two targets that depend on six inputs through two combinations, one of which is a column of its own."""
    x = random.normal(size=(count, 6))
    reynolds = x[:, 0] + x[:, 1] + x[:, 2] - x[:, 3]
    heat = x[:, 4] - 0.5 * x[:, 5]
    table = pd.DataFrame(x, columns=list(INPUTS))
    table["reynolds"] = np.exp(0.5 * reynolds)
    table["yield"] = np.tanh(0.6 * reynolds)
    table["purity"] = np.tanh(0.8 * heat) + 0.3 * np.abs(reynolds)
    return table


def _mixed_pictures(count: int) -> np.ndarray:
    """Two pictures of 6 x 6 pixels, mixed."""
    random = np.random.default_rng(6)
    parts, shares = random.uniform(0, 110, size=(2, 36)), random.uniform(0, 1, size=(count, 2))
    return (shares @ parts).round().astype(np.uint8).reshape(count, 6, 6)


def _travelling_wave(random: np.random.Generator, count: int) -> np.ndarray:
    """Two waves on a ring whose phases go round at different speeds."""
    places, times = np.linspace(0, 2 * np.pi, 20, endpoint=False), np.arange(count)[:, None] * 0.21
    wave = np.sin(places - times) + 0.6 * np.sin(2 * places + 1.37 * times)
    return wave + 0.01 * random.normal(size=wave.shape)
