"""The coordinates that an encoder finds, two at a time.

Where they come from: `Discovery.transform`. Spectra and curves: `spectra`, `curves`.
"""

import xarray as xr
from matplotlib.axes import Axes

from isthmus.plots.style import BLUE, axes_or_new, in_own_settings

_MOST_BINS = 40


@in_own_settings
def coordinates(dataset: xr.Dataset, ax: Axes | None = None, *, pair: tuple[int, int] = (0, 1)) -> Axes:
    """Scatter of two coordinates of every sample; a histogram where there is only one coordinate.

    Args:
        dataset: `coordinates` with dimensions "sample" and "coordinate".
        ax: axes to draw into; new ones unless given.
        pair: which two coordinates, counted from 0.

    Returns:
        The axes.

    Raises:
        ValueError: `pair` names a coordinate that is not there.
    """
    ax = axes_or_new(ax)
    values = dataset["coordinates"].transpose("sample", "coordinate").values
    num_samples, num_coordinates = values.shape
    if num_coordinates == 1:
        ax.hist(values[:, 0], bins=min(_MOST_BINS, max(5, num_samples // 10)), color=BLUE)
        ax.set_xlabel("coordinate 1")
        ax.set_ylabel("samples")
        return ax
    first, second = pair
    if not 0 <= min(pair) <= max(pair) < num_coordinates:
        raise ValueError(f"coordinates(pair={pair}): needs two of the coordinates 0..{num_coordinates - 1}.")
    # many points: smaller and fainter, as pixels, so that files stay small
    many = num_samples > 1000
    ax.scatter(
        values[:, first],
        values[:, second],
        s=5 if many else 12,
        alpha=0.35 if many else 0.7,
        color=BLUE,
        linewidths=0,
        rasterized=many,
    )
    ax.set_xlabel(f"coordinate {first + 1}")
    ax.set_ylabel(f"coordinate {second + 1}")
    return ax
