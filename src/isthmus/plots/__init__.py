"""Pictures of tables: each function takes a dataset (or polygons) and axes, draws, and returns them. Nothing is shown.

The tables come from `discovery`, `diagnostics` and `sweeps`; files and pages with these pictures in them: `reports`.
"""

from isthmus.plots.combinations import loading_profiles, loadings, summary_curve, summary_plane
from isthmus.plots.curves import depth_path, objective_curve, scree, starts
from isthmus.plots.images import attribution_maps, image_rows, loading_maps
from isthmus.plots.interpretation import attributions, candidates, coordinates, errors_saved, symmetry_defects
from isthmus.plots.planes import autoencoder_arrows, decision_regions, representation_path
from isthmus.plots.profiles import (
    balance,
    departures,
    dimensions,
    energies,
    hamiltonian,
    rank_over_training,
    tangent_kernel,
)
from isthmus.plots.regions import regions
from isthmus.plots.spectra import direction_spectrum, jacobian_spectrum, layer_spectra
from isthmus.plots.sweeps import sweep_lines

__all__ = [
    "attribution_maps",
    "attributions",
    "autoencoder_arrows",
    "balance",
    "candidates",
    "coordinates",
    "decision_regions",
    "departures",
    "depth_path",
    "dimensions",
    "direction_spectrum",
    "energies",
    "errors_saved",
    "hamiltonian",
    "image_rows",
    "jacobian_spectrum",
    "layer_spectra",
    "loading_maps",
    "loading_profiles",
    "loadings",
    "objective_curve",
    "rank_over_training",
    "regions",
    "representation_path",
    "scree",
    "starts",
    "summary_curve",
    "summary_plane",
    "sweep_lines",
    "symmetry_defects",
    "tangent_kernel",
]
