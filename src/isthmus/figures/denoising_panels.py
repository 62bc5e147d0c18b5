"""The pictures of denoising: images with noise and without, arrows from noisy points of the plane.

Where the numbers come from: `denoising`. Drawing itself: `plots`.
"""

import xarray as xr

from isthmus import plots
from isthmus.reports.picture import Picture

KINDS = ("shallow", "deep")
SETS = ("curve", "digits", "MNIST")  # in the order of the dimension "set", as many as there are


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
