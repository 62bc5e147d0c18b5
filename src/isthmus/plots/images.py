"""Rows of small grey images under each other: inputs, and what networks make of them.

Samples as points of a plane: `planes`. How every picture looks: `style`.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from isthmus.plots.style import axes_or_new, in_own_settings, plain_text

_GAP = 0.12  # between images, of their width


@in_own_settings
def image_rows(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Square images in rows: one row for each version of the same samples, dark where pixels are large.

    Args:
        dataset: `images` with dimensions "version", "sample" and "pixel" (a square number, line by line); the
            coordinate "version" names the rows. Values below 0 are drawn as 0, those above the largest of the first
            version as that.
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    Raises:
        ValueError: the number of pixels is no square.

    >>> images = xr.Dataset({"images": (("version", "sample", "pixel"), np.zeros((1, 2, 9)))})
    >>> images["version"] = ["raw"]
    >>> len(plots.image_rows(images).images)
    2
    """
    images = dataset["images"].transpose("version", "sample", "pixel")
    num_versions, num_samples, pixels = images.shape
    side = round(pixels**0.5)
    if side * side != pixels:
        raise ValueError(f"image_rows: needs square images; got {pixels} pixels. Pad them with zeros to a square.")
    ax = axes_or_new(ax)
    largest = float(images[0].max())
    for version in range(num_versions):
        for sample in range(num_samples):
            left, top = sample * (1 + _GAP), version * (1 + _GAP)
            ax.imshow(
                images.values[version, sample].reshape(side, side),
                extent=(left, left + 1, top + 1, top),
                cmap="gray_r",
                vmin=0.0,
                vmax=largest,
                interpolation="nearest",
            )
    ax.set_xlim(-_GAP, num_samples * (1 + _GAP))
    ax.set_ylim(num_versions * (1 + _GAP), -_GAP)
    ax.set_xticks(np.arange(num_samples) * (1 + _GAP) + 0.5, [str(i + 1) for i in range(num_samples)])
    ax.set_yticks(np.arange(num_versions) * (1 + _GAP) + 0.5, [plain_text(name) for name in dataset["version"].values])
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("sample")
    ax.set_ylabel("images")
    return ax
