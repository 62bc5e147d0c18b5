"""Tables as headings and rows of text, for the page and the terminal. Their numbers: `diagnostics`, `discovery`."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import xarray as xr

from isthmus.diagnostics import Diagnosis
from isthmus.tasks.arrays import listing
from isthmus.tasks.csv_cells import csv_text

MOST_COUNTED = 1e9  # whole numbers below are written with all their digits
_LAYER_COLUMNS = {
    "name": "where",
    "dimension_activation": "gap",
    "rank_99": "99 %",
    "dimension_participation": "participation",
    "rank_entropy": "entropy",
    "nonlinearity_impact": "nonlinearity impact",
    "identity_defect": "identity defect",
    "balance_residual": "balance residual",
    "tangent_kernel_trace": "tangent kernel trace",
    "tangent_kernel_trace_error": "its standard error",
    "frequency_rank_99": "frequencies x channels, 99 %",
    "frequency_pairs": "of",
    "state_dimension": "states, gap",
    "state_rank_99": "states, 99 %",
    "stream_rank_99": "stream, 99 %",
    "position": "position",
    "cost_of_identity": "cost of identity",
    "kinetic_energy": "kinetic energy",
    "hamiltonian": "Hamiltonian",
    "rank_from_hamiltonian": "rank from Hamiltonian",
    "momentum_norm": "norm of momentum",
    "stationarity": "stationarity",
}

# of a heading of the layers, the line that explains it; those that are not here say it themselves
_LAYER_WORDS = {
    "gap": "directions of the centred activations before the largest gap of their spectrum; empty: none stands out",
    "99 %": "directions that hold 99 % of the variance of the activations",
    "participation": "(sum of variances)^2 / (sum of their squares): low where few directions hold most",
    "entropy": "exponential of the entropy of the shares of the variance: a soft count, never below the participation",
    "nonlinearity impact": "what the activation function takes away, as a share of what enters it; 0: linear",
    "identity defect": "how far the matrix is from a rotation of what enters; 0: the layer only passes it on",
    "balance residual": "imbalance of the weights into and out of a neuron; 0 at a minimum with an L2 penalty",
    "tangent kernel trace": "how much the outputs move when the weights of the layer move",
    "its standard error": "of the trace, which is an average over random combinations of the outputs",
    "frequencies x channels, 99 %": "of a convolution: directions with 99 % of the energy, frequency by frequency",
    "states, gap": "of a recurrent layer: directions of its states before the largest gap",
    "states, 99 %": "of a recurrent layer: directions that hold 99 % of the variance of its states",
    "stream, 99 %": "of a residual block: directions that hold 99 % of the variance of the stream behind it",
    "cost of identity": "what it costs to carry the representation on as it is",
    "kinetic energy": "what it costs to change the representation here",
    "Hamiltonian": "constant over depth at a minimum of a leaky network of small steps",
}

# headings that fit a terminal
_SHORT_COLUMNS = {
    "name": "where",
    "dimension_activation": "gap",
    "rank_99": "99 %",
    "dimension_participation": "particip.",
    "nonlinearity_impact": "nonlin.",
    "identity_defect": "defect",
    "state_rank_99": "states",
    "tangent_kernel_trace": "kernel",
    "cost_of_identity": "identity",
    "hamiltonian": "Hamilt.",
}

# what the layers of a block and the heads in it range over
_BLOCK_COLUMNS = {
    "rank_99": "99 %",
    "stream_rank_99": "stream, 99 %",
    "nonlinearity_impact": "nonlin.",
    "qk_rank_99": "QK 99 %",
    "ov_rank_99": "OV 99 %",
    "balance_gap_share": "excess",
}
_HEAD_COLUMNS = {
    "qk_rank": "QK",
    "qk_rank_99": "QK 99 %",
    "ov_rank": "OV",
    "ov_rank_99": "OV 99 %",
    "balance_gap": "excess weight",
    "balance_gap_share": "its share",
}
_LOOKUP_COLUMNS = {
    "embedding_entries": "entries",
    "embedding_width": "width",
    "embedding_rank_90": "90 %",
    "embedding_rank_99": "99 %",
    "embedding_rank_999": "99.9 %",
    "embedding_participation": "particip.",
    "embedding_rank_entropy": "entropy",
}


@dataclass(frozen=True, slots=True)
class TableText:
    """A table as text.

    Attributes:
        headings: of the columns.
        rows: one text per heading in every row.
        words: places of the columns that hold words, which stand to the left.
        explained: what a heading means, by heading.
        note: what is to be known of all of it, in sentences.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = ()
    explained: Mapping[str, str] = field(default_factory=dict[str, str])
    note: str = ""

    @property
    def csv_link(self) -> str:
        """The table as a .csv inside of a link."""
        text = csv_text(pd.DataFrame(self.rows, columns=list(self.headings), dtype=object))
        return data_link(text, "text/csv")


def data_link(text: str, kind: str) -> str:
    """A text as a link that holds it: a page stays one file."""
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"


def layer_table(found: Diagnosis) -> TableText:
    """Every layer of a diagnosis with its numbers, explained; spectra stand in pictures."""
    table = rows_by(found.layers, "layer", _LAYER_COLUMNS, number="layer")
    return replace(table, explained={name: _LAYER_WORDS[name] for name in table.headings if name in _LAYER_WORDS})


def short_layer_table(found: Diagnosis) -> TableText:
    """The numbers of every layer that say most, under headings of one short word."""
    return rows_by(found.layers, "layer", _SHORT_COLUMNS, number="layer")


def block_table(found: Diagnosis) -> TableText | None:
    """The layers of every numbered block in one row, heads of attention with it; None for fewer than two blocks."""
    layers = found.layers
    within = [str(name) for name in layers["within"].values] if "within" in layers.coords else []
    blocks = [name for name in dict.fromkeys(within) if name]
    if len(blocks) < 2:
        return None
    columns = {column: heading for column, heading in _BLOCK_COLUMNS.items() if column in layers}
    parts = [layers.isel(layer=[i for i, block in enumerate(within) if block == name]) for name in blocks]
    table = xr.Dataset({"block": ("row", blocks), "layers": ("row", [part.sizes["layer"] for part in parts])})
    for column in columns:
        table[column] = ("row", [_range(part[column].values) for part in parts])
    return rows_by(table, "row", {"block": "block", "layers": "layers"} | columns)


def head_table(found: Diagnosis) -> TableText | None:
    """Every head of attention with the ranks of its products; None where no attention layer has a row."""
    if "qk_rank" not in found.layers:
        return None
    table = found.layers[["name", *_HEAD_COLUMNS]].stack(row=("layer", "head"), create_index=False)
    table = table.isel(row=np.isfinite(table["qk_rank"].values)).reset_coords()
    return rows_by(table, "row", {"name": "where", "head": "head"} | _HEAD_COLUMNS)


def lookup_table(found: Diagnosis) -> TableText | None:
    """Every table of embeddings with the directions that its entries span; None where there is none."""
    if "embedding" not in found.layers.dims:
        return None
    return rows_by(found.layers[[*_LOOKUP_COLUMNS]], "embedding", {"embedding": "where"} | _LOOKUP_COLUMNS)


def _range(values: np.ndarray) -> str:
    """The least and the largest of some numbers, NaN left out."""
    known = values[np.isfinite(values)]
    if not known.size:
        return ""
    ends = dict.fromkeys(_text(float(end)) for end in (known.min(), known.max()))
    return " to ".join(ends)


def cut_table(found: Diagnosis) -> TableText | None:
    """The ranks at which so much of the output is lost, by layer; None where nothing was cut."""
    if found.cuts is None:
        return None
    cuts = found.cuts
    ranks = {f"rank at {100 * loss:g} %": ("place", cuts["rank"].sel(loss=loss).values) for loss in cuts["loss"].values}
    table = xr.Dataset({"where": cuts["name"], "width": cuts["width"], **ranks}, coords={"layer": cuts["layer"]})
    last: dict[str, str] = {}
    if not np.isnan(cuts.attrs["suggested"]):
        losses = cuts["lost_at_suggested"].values
        table["suggested"], last["suggested"] = ("place", [*map(_lost, losses)]), f"lost at {cuts.attrs['suggested']}"
    found_rows = rows_by(table, "place", {"layer": "behind"} | {n: n for n in ("where", "width", *ranks)} | last)
    return replace(found_rows, note=_not_cut(found.layers, cuts))


def _not_cut(layers: xr.Dataset, cuts: xr.Dataset) -> str:
    """Which layers stand in no row of the cuts, and why; nothing where all of them do."""
    more, wide = (cuts.attrs.get(name, []) for name in ("not_cut", "left_out"))
    known = {*map(str, cuts["name"].values), *more, *wide}
    past = [str(name) for name in layers["name"].values if str(name) not in known]
    reasons = (
        (more, "no fewer directions hold 99 % of what leaves"),
        (wide, "too wide"),
        (past, "not everything of a sample passes"),
    )
    said = [f"{listing(names, 'layer')} ({why})" for names, why in reasons if names]
    return f"Cut are the layers of the fewest directions. Not cut: {'; '.join(said)}." if said else ""


def _lost(share: float) -> str:
    """A share of the output; rounding is no loss, and what was not cut has none."""
    if np.isnan(share):
        return ""
    return "< 0.01 %" if share < 1e-4 else f"{100 * share:.3g} %"


def skipped_table(found: Diagnosis) -> TableText | None:
    """Every module that was not analysed, and why; None if there is none."""
    if not found.skipped:
        return None
    return TableText(("module", "why not"), tuple(found.skipped), (0, 1))


def rows_by(table: xr.Dataset, dimension: str, columns: Mapping[str, str], *, number: str | None = None) -> TableText:
    """The columns of one dimension as text; those that the table lacks, or that are empty throughout, are left out.

    Args:
        table: any.
        dimension: one row per entry of it.
        columns: headings by name of the variable, in the order wanted.
        number: heading of a first column that counts the rows from 1; none unless given.
    """
    shown = {
        name: table[name].values for name in columns if name in table.variables and table[name].dims == (dimension,)
    }
    shown = {name: values for name, values in shown.items() if any(_text(value) for value in values)}
    rows = [tuple(_text(values[i]) for values in shown.values()) for i in range(table.sizes[dimension])]
    words = [
        i for i, values in enumerate(shown.values())
        if values.dtype.kind in "OUS" and not all(str(value).endswith(" %") for value in values if str(value))
    ]  # fmt: skip
    headings = tuple(columns[name] for name in shown)
    if number is None:
        return TableText(headings, tuple(rows), tuple(words))
    counted = tuple((str(i), *row) for i, row in enumerate(rows, 1))
    return TableText((number, *headings), counted, tuple(i + 1 for i in words))


def _text(value: object) -> str:
    if isinstance(value, float | np.floating):
        # what is counted stands in floats where some have none
        is_count = abs(value) < MOST_COUNTED and float(value).is_integer()
        return "" if np.isnan(value) else f"{value:.0f}" if is_count else f"{value:.4g}"
    return str(value)
