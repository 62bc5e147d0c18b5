"""A panel that leaky networks share: singular values of their weights along the path.

Trainings: `leaky_training`. Which networks a figure shows, and its other panels: its own file.
"""

import xarray as xr

from isthmus.figures.panels import Curve, Frame, panel
from isthmus.reports.picture import Picture


def weight_spectra(table: xr.Dataset, name: str, caption: str) -> Picture:
    """Every singular value of the weights against the position of the layer, marks where the steps are.

    Args:
        table: `position` by "layer", `weight_singular_values` by "layer" and "component".
        name: of the picture.
        caption: what it shows.
    """
    spectra = [table["weight_singular_values"].isel(component=i) for i in range(table.sizes["component"])]
    shown = [
        Curve("" if i else "singular values", table["position"], values, "both", 0) for i, values in enumerate(spectra)
    ]
    return panel(name, caption, shown, Frame("position", "singular value", limits=(0, None)))
