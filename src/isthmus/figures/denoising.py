"""Autoencoders of a curve in the plane and of images, deep and shallow: deep ones project onto the data (figure 3).

Data: `tasks.manifolds`, `denoising_images`. Numbers: `denoising_measures`. Exact: FC-46.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import xarray as xr

from isthmus import plots
from isthmus.figures.claims import Claim
from isthmus.figures.denoising_images import NOISE as IMAGE_NOISE
from isthmus.figures.denoising_images import ImageSizes, digit_pixels, digits_plan, mnist_pixels, mnist_plan, whole
from isthmus.figures.denoising_measures import NOISE, RankOneStart, defect, measured
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.workshop import FinishedTraining, Workshop
from isthmus.reports.picture import Picture
from isthmus.sweeps import Plan

KINDS = ("shallow", "deep")
SETS = ("curve", "digits", "MNIST")  # in the order of the dimension "set", as many as there are
NUMBERS = ("depth", "gain", "lost")
DRAWN = 60  # arrows in each picture
FITTED, SEEN = 0.05, 0.3  # of the variance: a curve, images that are lost beyond it were not learned


@dataclass(frozen=True, slots=True)
class DenoisingSizes:
    """Numbers of a preset.

    Attributes:
        shallow: depth of the shallow autoencoder of the curve.
        deep: of the deep one.
        width: of every hidden layer.
        num_samples: points of the curve.
        ridge: of both.
        seeds: cold starts; of these and one from rank 1 the one of least objective is shown.
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
    Preset.PAPER: DenoisingSizes(2, 12, 100, 1000, 1e-4, (0, 1, 2), 6000, ImageSizes(2, 12, 200, 10_000, 1e-4, 6000)),
    Preset.QUICK: DenoisingSizes(2, 12, 30, 200, 1e-3, (0, 1), 3000, ImageSizes(2, 8, 64, 1000, 1e-3, 1000)),
    Preset.TINY: DenoisingSizes(2, 4, 10, 40, 1e-3, (0,), 150, ImageSizes(2, 4, 12, 60, 1e-3, 40)),
}


def plan(preset: Preset, *, images: Path | None = None, folder: Path = Path()) -> FigurePlan[DenoisingSizes]:
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
    started = [
        RankOneStart(depth, sizes.width, sizes.num_samples, sizes.ridge, sizes.evaluations)
        for depth in (sizes.shallow, sizes.deep)
    ]
    sweeps, parts = {"curve": curve, "digits": digits_plan(sizes.images)}, tuple(start.part() for start in started)
    if images is None:
        return FigurePlan(sizes, sweeps, parts)
    sweeps["MNIST"] = mnist_plan(sizes.images, images, folder)
    return FigurePlan(sizes, sweeps, parts, {"MNIST": images})


def with_mnist(path: Path, folder: Path) -> PaperFigure:
    """The figure with autoencoders of MNIST, read from `path`; the table of its images is written into `folder`."""
    return replace(FIGURE, plan=lambda preset: plan(preset, images=path, folder=folder))


def compute(plan: FigurePlan[DenoisingSizes], workshop: Workshop) -> xr.Dataset:
    """What both autoencoders make of noisy points and images, distances to the data, defects of the Jacobian."""
    curve = _of_curve(plan, workshop)
    images = {
        name: _tables(workshop.trained(plan.sweeps[name]), IMAGE_NOISE) for name in SETS[1:] if name in plan.sweeps
    }
    pairs = [curve, *images.values()]
    data = xr.Dataset(
        {key: (("set", "kind"), [[float(table[key]) for table in pair] for pair in pairs]) for key in NUMBERS}
    )
    data["defect"] = ("kind", [float(table["defect"]) for table in curve])
    data["data"] = (("row", "component"), curve[0]["clean"].values)
    data["start"] = (("sample", "component"), curve[0]["noisy"].values[:DRAWN])
    data["end"] = (("kind", "sample", "component"), np.stack([table["cleaned"].values[:DRAWN] for table in curve]))
    for name, (shallow, deep) in images.items():
        versions = [shallow["clean"], shallow["noisy"], shallow["cleaned"], deep["cleaned"]]
        shown = [whole(rows.values[: plan.sizes.images.shown], _pixels(name, plan)) for rows in versions]
        data[name] = (("version", "shown", f"{name}_pixel"), np.stack(shown))
    return data


def _pixels(name: str, plan: FigurePlan[DenoisingSizes]) -> np.ndarray:
    return mnist_pixels(plan.files[name], plan.sizes.images.num_samples) if name in plan.files else digit_pixels()


def _of_curve(plan: FigurePlan[DenoisingSizes], workshop: Workshop) -> list[xr.Dataset]:
    """The shallow and the deep autoencoder of the curve: of cold starts and of the one from rank 1 the least objective.

    Cold starts of every depth tried end in the identity of the plane, whose squared norm is twice the depth.
    """
    cold = _tables(workshop.trained(plan.sweeps["curve"]), NOISE, with_defect=True)
    pairs = zip(cold, workshop.parts(plan.parts), strict=True)
    return [min(pair, key=lambda table: float(table["objective"])) for pair in pairs]


def _tables(runs: list[FinishedTraining], noise: float, *, with_defect: bool = False) -> list[xr.Dataset]:
    """Of the least depth and of the largest, each time the start of least objective."""
    depths = sorted({run.axis("depth") for run in runs})
    starts = [[run for run in runs if run.axis("depth") == depth] for depth in depths]
    return [_table(min(same, key=lambda run: run.number("objective")), noise, with_defect) for same in starts]


def _table(run: FinishedTraining, noise: float, with_defect: bool) -> xr.Dataset:
    network, x = run.connected().double(), run.data()[0].double()
    found = measured(network, x, noise=noise, data_loss=run.number("data_loss"), objective=run.number("objective"))
    return found.assign(defect=((), defect(network, x))) if with_defect else found


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """Deep networks denoise and are projections, shallow ones are not; the same for each set of images."""
    images = (claim for place in range(1, data.sizes["set"]) for claim in _image_claims(data, place))
    return (*_curve_claims(data), *images)


def _curve_claims(data: xr.Dataset) -> tuple[Claim, ...]:
    shallow, deep = data["gain"].values[0]
    doubt = _doubt(data, 0, FITTED)
    return (
        Claim(
            "Deep autoencoders project noisy points onto the data.", "Jacot 2023a, Figure 3 B",
            "mean distance to the data, after over before", float(deep), most=0.3, doubt=doubt,
        ),
        Claim(
            "Shallow ones do not.", "Jacot 2023a, Figure 3 C", "mean distance to the data, after over before",
            float(shallow), least=0.3, doubt=doubt,
        ),
        Claim(
            "Near the data a deep autoencoder is a projection, J J = J.", "Jacot 2023a, section 5",
            "median |J J - J|, deep over shallow", float(data["defect"][1] / data["defect"][0]),
            most=0.5, doubt=doubt,
        ),
    )  # fmt: skip


def _image_claims(data: xr.Dataset, place: int) -> tuple[Claim, ...]:
    shallow, deep = data["gain"].values[place]
    doubt = _doubt(data, place, SEEN)
    return (
        Claim(
            f"Deep autoencoders of {SETS[place]} project noisy images onto the data.", "Jacot 2023a, Figure 3 A",
            "mean distance to the nearest image, after over before", float(deep), most=0.5, doubt=doubt,
        ),
        Claim(
            f"Shallow ones of {SETS[place]} do not.", "Jacot 2023a, section 5",
            "mean distance to the nearest image, after over before", float(shallow), least=0.5, doubt=doubt,
        ),
    )  # fmt: skip


def _doubt(data: xr.Dataset, place: int, most: float) -> str:
    lost = float(data["lost"].values[place].max())
    return "" if lost <= most else f"an autoencoder loses {100 * lost:.0f} % of the variance"


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """Images with noise and without, and the arrows of both autoencoders of the curve."""
    images = [_images(data, place, SETS[place]) for place in range(1, data.sizes["set"])]
    return (*images, *(_arrows(data.isel(kind=kind, set=0), name) for kind, name in enumerate(KINDS)))


def _images(data: xr.Dataset, place: int, name: str) -> Picture:
    shallow, deep = (float(depth) for depth in data["depth"].values[place])
    kept = [f"{100 * float(gain):.0f} %" for gain in data["gain"].values[place]]
    versions = ["data", "with noise", f"depth {shallow:.0f}", f"depth {deep:.0f}"]
    rows = xr.Dataset({"images": (("version", "sample", "pixel"), data[name].values)}, coords={"version": versions})
    return Picture(
        f"denoising-{name.lower()}",
        f"Images of {name}, the same with noise, and what autoencoders of depth {shallow:.0f} and {deep:.0f} make of "
        f"the noisy ones: their mean distance to the nearest image of the data becomes {kept[0]} and {kept[1]} of what "
        "it was.",
        f"Four rows of images of {name}: the data, with noise, and the outputs of two autoencoders.",
        lambda: plots.image_rows(rows),
    )


def _arrows(data: xr.Dataset, name: str) -> Picture:
    depth, gain = float(data["depth"]), float(data["gain"])
    return Picture(
        f"denoising-{name}",
        f"Noisy points around the curve and where the autoencoder of depth {depth:.0f} sends them: their mean distance "
        f"to the samples of the curve becomes {100 * gain:.0f} % of what it was.",
        f"Arrows from noisy points in the plane to the outputs of an autoencoder of depth {depth:.0f}.",
        lambda: plots.autoencoder_arrows(data, names=("noisy input", "output"), axis_names=("x1", "x2")),
    )


FIGURE = PaperFigure(
    3,
    "denoising",
    "Denoising autoencoders",
    "Jacot 2023a, Figure 3",
    "A random piecewise linear curve in the plane with noise of 0.3 of its spread: cold starts and one from rank 1, of "
    "which the least objective is shown. Images with noise of once their spread: the digits of scikit-learn, and MNIST "
    "where its files are given. Depths, widths, samples and noise are ours, the paper's are lost.",
    plan,
    compute,
    draw,
    verdict,
)
