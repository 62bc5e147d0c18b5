"""Leaky ResNets over effective depth: the Hamiltonian and the cost of identity close in on the rank (figure 8).

Trainings: `leaky_training`. Bounded norms of the same networks: `boundedness`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import xarray as xr

from isthmus.figures.claims import Claim, StartRule, unfinished
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.leaky_training import FALLING, Leaky, leaky_part, over_effective_depths
from isthmus.figures.panels import Curve, Frame, panel, weight_spectra
from isthmus.figures.parts import Part
from isthmus.figures.workshop import Workshop
from isthmus.reports.picture import Picture


@dataclass(frozen=True, slots=True)
class LeakyDepthSizes:
    """Numbers of a preset.

    Attributes:
        effective_depths: Lt, ascending.
        network: everything else of each training.
        starts: at each effective depth.
    """

    effective_depths: tuple[float, ...]
    network: Leaky
    starts: StartRule = StartRule()

    def of_start(self, start: int) -> list[Part]:
        """A network at every effective depth."""
        return [leaky_part(replace(self.network, effective_depth=at, start=start)) for at in self.effective_depths]


PRESETS = {
    Preset.PAPER: LeakyDepthSizes(
        (4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0),
        Leaky((20, 5, 20), False, 1000, 200, 50, 4.0, "adaptive", 0.002, 30_000, plateau=FALLING),
        StartRule((2, 4)),
    ),
    Preset.QUICK: LeakyDepthSizes(
        (2.0, 3.0, 5.0, 8.0), Leaky((6, 2, 6), False, 40, 16, 16, 2.0, "equidistant", 0.02, 12_000)
    ),
    Preset.TINY: LeakyDepthSizes(
        (2.0, 4.0), Leaky((3, 1, 3), False, 12, 6, 6, 2.0, "equidistant", 0.05, 60), StartRule((2,))
    ),
}


def plan(preset: Preset) -> FigurePlan[LeakyDepthSizes]:
    """Paper: width 200, L = 50, adaptive steps, maps from 20 to 5 to 20 dimensions (LEAKY-20, LEAKY-21)."""
    sizes = PRESETS[preset]
    return FigurePlan(sizes, parts=tuple(part for i in range(sizes.starts.looks[0]) for part in sizes.of_start(i)))


def compute(plan: FigurePlan[LeakyDepthSizes], workshop: Workshop) -> xr.Dataset:
    """Energies by layer at every effective depth, of every start."""
    return over_starts(plan.sizes, workshop, verdict)


def over_starts(
    sizes: LeakyDepthSizes, workshop: Workshop, verdict: Callable[[xr.Dataset], Iterable[Claim]]
) -> xr.Dataset:
    """Tables of as many starts as these claims want, along the dimension "start"."""

    def computed(count: int) -> xr.Dataset:
        workshop.make(part for start in range(count) for part in sizes.of_start(start))  # all workers at once
        found = [workshop.parts(sizes.of_start(start)) for start in range(count)]
        tables = [over_effective_depths(parts, sizes.effective_depths) for parts in found]
        return xr.concat(tables, "start").assign(rank=((), float(sizes.network.rank)))

    return sizes.starts.decided(computed, verdict)


def _readings(data: xr.Dataset) -> xr.Dataset:
    """Rank from the Hamiltonian, -2 H / Lt, the paper's stable version, ours, and the least cost of identity."""
    readings = {"from_h": -2 / data["effective_depth"] * data["hamiltonian"], "stable": stable(data)}
    readings["ours"] = -2 / data["effective_depth"] * data["hamiltonian_mixed"]
    found = {name: values.median("layer") for name, values in readings.items()}
    return xr.Dataset(found | {"identity": data["cost_of_identity"].min("layer")})


def stable(table: xr.Dataset) -> xr.DataArray:
    """-2 H_gamma / Lt of Theorem 4: relaxed cost of identity less 2 / Lt times the relaxed kinetic energy."""
    return table["cost_of_identity"] - 2 / table["effective_depth"] * table["kinetic_energy"]


def draw(data: xr.Dataset) -> tuple[Picture, ...]:
    """The readings over Lt; of one start energies and spectra along the path at the least, a middle, the largest Lt."""
    places = np.unique(np.linspace(0, data.sizes["effective_depth"] - 1, 3).round().astype(int))
    along = [data.isel(effective_depth=place, start=0) for place in places]
    rank = float(data["rank"])
    return (_over_depths(data), *(_energies(table, rank) for table in along), *(_spectra(table) for table in along))


def _over_depths(data: xr.Dataset) -> Picture:
    read, depths, rank = _readings(data), data["effective_depth"], float(data["rank"])
    names = {"from_h": "-2 H / Lt", "stable": "stable", "ours": "ours", "identity": "least cost of identity"}
    curves = [
        Curve(
            words, depths, read[name].mean("start"), "both", low=read[name].min("start"), high=read[name].max("start")
        )
        for name, words in names.items()
    ]
    return panel(
        "leaky-depth-readings",
        "Rank read from the Hamiltonian (median over layers; ours is H of each layer's own representation and "
        "momentum) and the least cost of identity against the effective depth: mean over the starts, all of which lie "
        "in the bands. What lies beyond four times the rank is cut off.",
        curves,
        Frame("effective depth Lt", "rank", levels={"rank of the task": rank}, limits=(0, 4 * rank)),
    )


def _energies(table: xr.Dataset, rank: float) -> Picture:
    told, position = f"{float(table['effective_depth']):g}", table["position"]
    parts = [
        Curve("stable -2 H / Lt", position, stable(table), "both"),
        Curve("ours", position, -2 / table["effective_depth"] * table["hamiltonian_mixed"], "both"),
        Curve("cost of identity", position, table["cost_of_identity"], "both"),
        Curve("kinetic energy", position, table["kinetic_energy"], "both"),
    ]
    return panel(
        f"leaky-depth-energies-{told}",
        f"Along the path at effective depth {told}: the Hamiltonian varies less than its two parts.",
        parts,
        # the ends are hundreds of times the middle, and the Hamiltonian may change its sign
        Frame("position", "energy", levels={"rank of the task": rank}, log_y=True, linear_to=rank),
    )


def _spectra(table: xr.Dataset) -> Picture:
    told = f"{float(table['effective_depth']):g}"
    caption = f"Singular values of the weights against the position of their layer at effective depth {told}."
    return weight_spectra(table, f"leaky-depth-spectra-{told}", caption)


def verdict(data: xr.Dataset) -> tuple[Claim, ...]:
    """From below, from above, towards each other, and the Hamiltonian steadier than its parts."""
    read, rank, source = _readings(data), float(data["rank"]), "Jacot and Kaiser 2024, Figure 1"
    claim = partial(Claim.over_starts, doubt=unfinished(data["stationarity"]), looks=int(data["looks"]))
    gap = read["identity"] - read["stable"]
    shallow, deep = ({"effective_depth": place} for place in (0, -1))
    last = data.isel(deep)
    spread = stable(last).std("layer") / last["cost_of_identity"].std("layer")
    return (
        claim(
            f"-2 H / Lt approaches the rank ({rank:.0f}) from below.", f"{source}a",
            "largest stable median over effective depths", read["stable"].max("effective_depth").values.tolist(),
            most=rank + 0.25,
        ),
        claim(
            "At large effective depth it is the rank.", f"{source}a",
            f"stable median at Lt = {float(last['effective_depth']):g}", read["stable"].isel(deep).values.tolist(),
            least=rank - 0.5, most=rank + 0.5,
        ),
        claim(
            "The least cost of identity approaches it from above.", f"{source}a",
            "least value over effective depths", read["identity"].min("effective_depth").values.tolist(),
            least=rank - 0.05,
        ),
        claim(
            "Both close in on each other as the effective depth grows.", f"{source}a",
            "gap at the largest effective depth over that at the least",
            (gap.isel(deep) / gap.isel(shallow)).values.tolist(), most=0.5,
        ),
        claim(
            "The Hamiltonian varies much less over the layers than its parts.", f"{source}d",
            "its standard deviation over that of the cost of identity", spread.values.tolist(), most=0.5,
        ),
    )  # fmt: skip


FIGURE = PaperFigure(
    8,
    "leaky-depth",
    "Leaky ResNets over effective depth",
    "Jacot and Kaiser 2024, Figure 1",
    "Two random shallow networks in a row, whose inputs fill their space, from 20 to 5 to 20 dimensions for the "
    "paper's sizes and from 6 to 2 to 6 for smaller ones; standardised columns; preconditioned L-BFGS instead of Adam.",
    plan,
    compute,
    draw,
    verdict,
)
