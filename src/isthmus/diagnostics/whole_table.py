"""All columns of the table of a diagnosis, with and without derivatives, and what stands beside it.

One room for both ways through the data: `with_derivatives`, and `diagnose` by forward passes alone.
"""

import math
from dataclasses import replace
from functools import partial

import torch
import xarray as xr
from torch import nn

from isthmus.diagnostics.attention_heads import add_head_columns, heads_of
from isthmus.diagnostics.convolution_columns import add_convolution_columns
from isthmus.diagnostics.derivatives import Derivatives
from isthmus.diagnostics.embedding_columns import add_embedding_columns
from isthmus.diagnostics.evaluation import record
from isthmus.diagnostics.layer_sums import LayerSums
from isthmus.diagnostics.leaves import Uses, skipped_parts
from isthmus.diagnostics.listener import Listener
from isthmus.diagnostics.module_names import Names
from isthmus.diagnostics.narrow_places import CutPlan
from isthmus.diagnostics.recurrent_columns import add_recurrent_columns
from isthmus.diagnostics.replica import float_type_of
from isthmus.diagnostics.session import DiagnosisSession
from isthmus.diagnostics.stream_columns import add_stream_spectra
from isthmus.diagnostics.table import table_of
from isthmus.errors import DataError

# samples of which heads are told, two at least: of two with two tokens each, two heads may look at the same
ASKED, NUMBERS_ASKED = 8, 2**14


def uncut(plan: CutPlan) -> list[str]:
    """That no cut was made though a layer would allow it, in a sentence."""
    return [f"No cut has judged the rank: {plan.hindrance}."] if plan.hindrance else []


def whole_table(
    session: DiagnosisSession, network: nn.Module, layers: list[LayerSums], derivatives: Derivatives | None
) -> tuple[xr.Dataset, list[tuple[str, str]]]:
    """The table by layer; what a residual stream costs is added by `stream_columns`.

    Returns:
        The table; name and reason of every leaf module, of every parameter beside them, that is in no row, and of
        attention whose heads are in no column.

    Raises:
        DataError: activations are so large that no float64 holds their squares.
    """
    if beyond := [layer.name for layer in layers if not math.isfinite(layer.size)]:
        raise DataError(
            f"diagnose(module, x): squares of what {beyond[0]!r} gives for these rows exceed float64. Rescale x, "
            "or the weights before it."
        )
    table = table_of(layers, derivatives)
    heads, untold = heads_of(
        network, session.structure.readings, partial(_once_more, session), is_dear=session.fixed_size
    )
    add_head_columns(table, heads, float_type_of(network) or torch.float64)
    add_convolution_columns(table, layers, session.structure.readings)
    add_recurrent_columns(table, layers)
    add_stream_spectra(table, layers)
    add_embedding_columns(table, network, session.names.called)
    names, structure = session.names, session.structure
    uses = Uses(names.called, names.followed, structure.in_layers(), structure.in_functions())
    return table, [*skipped_parts(network, analysed=[layer.name for layer in layers], uses=uses), *untold]


def _once_more(session: DiagnosisSession, listener: Listener) -> None:
    """Pass a few samples, whatever they call where a listener writes into them."""
    replica = replace(session.streamed, calls=[])
    each = max(sum(t[0].numel() for t in session.samples.by_rows()), 1)
    few = session.size if session.fixed_size else max(session.size, min(ASKED, NUMBERS_ASKED // each))
    part = session.samples.at(slice(0, few), replica.dtype, replica.device)
    with torch.no_grad():
        record(replica, Names(replica.module), part, listener)


def gaps_in(table: xr.Dataset) -> list[int | None]:
    """Gap integers of the activations, None where there is no gap."""
    return [None if math.isnan(k) else int(k) for k in table["dimension_activation"].values]


def fewest_numbers(session: DiagnosisSession) -> int:
    """Numbers per sample that enter, where they are none of tokens, or come out, whichever are fewer."""
    enters, leave = session.samples.num_inputs, session.num_outputs
    return leave if enters is None else min(enters, leave)
