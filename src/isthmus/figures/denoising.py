"""Autoencoders of a curve in the plane and of images, deep and shallow: deep ones project onto the data (figure 3).

Data: `tasks.manifolds`, `denoising_images`. Pictures: `denoising_panels`. Exact statements about autoencoders: FC-46.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from isthmus.figures.claims import Claim
from isthmus.figures.denoising_images import NOISE as IMAGE_NOISE
from isthmus.figures.denoising_images import ImageSizes, digit_pixels, digits_plan, mnist_pixels, mnist_plan, whole
from isthmus.figures.denoising_panels import SETS, draw
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.workshop import Trained, Workshop
from isthmus.networks import FullyConnected
from isthmus.networks.jacobians import jacobians
from isthmus.sweeps import Plan
from isthmus.theory import idempotency_defect

NOISE, DRAWN = 0.3, 60  # of the data's spread; arrows in each picture
FITTED, SEEN = 0.05, 0.3  # of the variance: a curve, images that are lost beyond it were not learned


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of a preset.

    Attributes:
        shallow: depth of the shallow autoencoder of the curve.
        deep: of the deep one.
        width: of every hidden layer.
        num_samples: points of the curve.
        ridge: of both.
        seeds: starts; the one of least objective is shown.
        evaluations: gradients of each training.
        images: of the autoencoders of images.
    """

    shallow: int
    deep: int
    width: int
    num_samples: int
    ridge: float
    seeds: tuple[int, ...]
    evaluations: int
    images: ImageSizes


PRESETS = {
    Preset.PAPER: Sizes(2, 12, 100, 1000, 1e-4, (0, 1, 2), 6000, ImageSizes(2, 12, 200, 10_000, 1e-4, 6000)),
    Preset.QUICK: Sizes(2, 8, 30, 200, 1e-3, (0, 1), 2000, ImageSizes(2, 8, 64, 1000, 1e-3, 1000)),
    Preset.TINY: Sizes(2, 4, 10, 40, 1e-3, (0,), 150, ImageSizes(2, 4, 12, 60, 1e-3, 40)),
}


def plan(preset: Preset, *, images: Path | None = None, folder: Path = Path()) -> FigurePlan[Sizes]:
    """A random piecewise linear curve and images (FC-49; depths, widths and the amount of noise are lost, ours).

    Args:
        preset: how large.
        images: MNIST, as `tasks.mnist` takes it; without it the digits of scikit-learn stand alone.
        folder: where the table of these images is written.

    Raises:
        DataError: `images` cannot be read as MNIST. OSError: the folder cannot be written.
    """
    sizes = PRESETS[preset]
    curve = Plan(
        {"name": "curve_autoencoder", "num_samples": sizes.num_samples},
        {"width": sizes.width},
        {"ridge": sizes.ridge, "evaluations": sizes.evaluations, "scaling": "none", "dtype": "float64"},
        grid={"depth": [sizes.shallow, sizes.deep], "seed": list(sizes.seeds)},
        name="denoising",
    )
    sweeps = {"curve": curve, "digits": digits_plan(sizes.images)}
    if images is None:
        return FigurePlan(sizes, sweeps)
    return FigurePlan(
        sizes, sweeps | {"MNIST": mnist_plan(sizes.images, images, folder)}, files={"MNIST": images}
    )  # fmt: skip


def with_mnist(path: Path, folder: Path) -> PaperFigure:
    """The figure with autoencoders of MNIST, read from `path`; the table of its images is written into `folder`."""
    return replace(FIGURE, plan=lambda preset: plan(preset, images=path, folder=folder))


def compute(plan: FigurePlan[Sizes], workshop: Workshop) -> xr.Dataset:
    """What both autoencoders make of noisy points and images, distances to the data, defects of the Jacobian."""
    names = [name for name in SETS if name in plan.sweeps]
    found = [_both(workshop.trained(plan.sweeps[name]), IMAGE_NOISE if i else NOISE) for i, name in enumerate(names)]
    numbers = [[run.numbers() for run in pair] for pair in found]
    data = xr.Dataset(
        {key: (("set", "kind"), [[run[key] for run in pair] for pair in numbers]) for key in numbers[0][0]}
    )
    shallow, deep = found[0]
    data["defect"] = ("kind", [run.defect() for run in (shallow, deep)])
    data["data"] = (("row", "component"), shallow.x.numpy())
    data["start"] = (("sample", "component"), shallow.noisy[:DRAWN].numpy())
    data["end"] = (("kind", "sample", "component"), np.stack([run.cleaned[:DRAWN].numpy() for run in found[0]]))
    for name, pair in zip(names[1:], found[1:], strict=True):
        pixels = _pixels(name, plan)
        first, shown = pair[0], plan.sizes.images.shown
        versions = (first.x, first.noisy, *(run.cleaned for run in pair))
        images = np.stack([whole(version[:shown].numpy(), pixels) for version in versions])
        data[name] = (("version", "shown", f"{name}_pixel"), images)
    return data


def _pixels(name: str, plan: FigurePlan[Sizes]) -> np.ndarray:
    return mnist_pixels(plan.files[name], plan.sizes.images.num_samples) if name in plan.files else digit_pixels()


@dataclass(frozen=True, slots=True)
class _Autoencoder:
    """A trained autoencoder with its data, the same with noise, and what it makes of that."""

    run: Trained
    network: FullyConnected
    x: Tensor
    noisy: Tensor
    cleaned: Tensor

    def numbers(self) -> dict[str, float]:
        """Depth, mean distance to the nearest sample after over before, share of the variance that is lost."""
        before, after = (torch.cdist(rows, self.x).min(1).values.mean() for rows in (self.noisy, self.cleaned))
        lost = self.run.number("data_loss") / float(self.x.var(0, correction=0).sum())
        return {"depth": self.run.axis("depth"), "gain": float(after / before), "lost": lost}

    def defect(self) -> float:
        """Median of |J J - J| / |J| at the samples."""
        return float(idempotency_defect(jacobians(self.network, self.x)).median())


def _both(runs: list[Trained], noise: float) -> list[_Autoencoder]:
    """Of the least depth and of the largest, each time the start of least objective."""
    depths = sorted({run.axis("depth") for run in runs})
    starts = [[run for run in runs if run.axis("depth") == depth] for depth in depths]
    return [_autoencoder(min(same, key=lambda run: run.number("objective")), noise) for same in starts]


def _autoencoder(run: Trained, noise: float) -> _Autoencoder:
    network = run.network()
    assert isinstance(network, FullyConnected)
    network = network.double()
    x = run.data()[0].double()
    spread = x.var(0, correction=0).sum().sqrt()
    added = torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=x.dtype)
    noisy = x + noise * spread * added / x.shape[1] ** 0.5
    with torch.no_grad():
        return _Autoencoder(run, network, x, noisy, network(noisy))


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """Deep networks denoise and are projections, shallow ones are not; the same for each set of images."""
    return (*_of_curve(data), *(claim for place in range(1, data.sizes["set"]) for claim in _of_images(data, place)))


def _of_curve(data: xr.Dataset) -> tuple[Claim, ...]:
    shallow, deep = data["gain"].values[0]
    doubt = _doubt(data, 0, FITTED)
    return (
        Claim(
            "Deep autoencoders project noisy points onto the data.", "001, Figure 3 B",
            "mean distance to the data, after over before", float(deep), most=0.3, doubt=doubt,
        ),
        Claim(
            "Shallow ones do not.", "001, Figure 3 C", "mean distance to the data, after over before",
            float(shallow), least=0.3, doubt=doubt,
        ),
        Claim(
            "Near the data a deep autoencoder is a projection, J J = J.", "001, section 5",
            "median |J J - J| relative to |J|, deep over shallow", float(data["defect"][1] / data["defect"][0]),
            most=0.5, doubt=doubt,
        ),
    )  # fmt: skip


def _of_images(data: xr.Dataset, place: int) -> tuple[Claim, ...]:
    shallow, deep = data["gain"].values[place]
    doubt = _doubt(data, place, SEEN)
    return (
        Claim(
            f"Deep autoencoders of {SETS[place]} project noisy images onto the data.", "001, Figure 3 A",
            "mean distance to the nearest image, after over before", float(deep), most=0.5, doubt=doubt,
        ),
        Claim(
            f"Shallow ones of {SETS[place]} do not.", "001, section 5",
            "mean distance to the nearest image, after over before", float(shallow), least=0.5, doubt=doubt,
        ),
    )  # fmt: skip


def _doubt(data: xr.Dataset, place: int, most: float) -> str:
    lost = float(data["lost"].values[place].max())
    return "" if lost <= most else f"an autoencoder loses {100 * lost:.0f} % of the variance"


FIGURE = PaperFigure(
    3,
    "denoising",
    "Denoising autoencoders",
    "001, Figure 3",
    "A random piecewise linear curve in the plane with noise of 0.3 of its spread, and images with noise of once their "
    "spread: the digits of scikit-learn, and MNIST where its files are given. Depths, widths, samples and noise are "
    "ours, the paper's are lost.",
    plan,
    compute,
    draw,
    verdict,
)
