"""Why a leaf module, or a parameter beside its modules, has no row of its own in the table: one reason per kind.

What a parameter went into: `data_flow`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from torch import nn

_KINDS: tuple[tuple[str, str], ...] = (
    ("Norm", "normalisation: no weight matrix"),
    ("Dropout", "dropout: does nothing in evaluation mode"),
    ("Pool", "pooling: no weight matrix"),
    ("Rotary", "rotation by position: no weight matrix"),
    (
        "Embedding",
        "lookup table: it has a spectrum of its own, and what it returns is read as the input of the next layer",
    ),
    ("Pad", "padding: no weight matrix"),
    ("Flatten", "regroups entries: no weight matrix"),
    ("Unflatten", "regroups entries: no weight matrix"),
    ("PixelShuffle", "regroups entries: no weight matrix"),
    ("Upsample", "resampling: no weight matrix"),
    ("Identity", "identity: no weight matrix"),
    ("Softmax", "normalises over an axis: no weight matrix"),
    ("Bilinear", "bilinear: no single weight matrix"),
)
_RECURRENT = nn.RNNCellBase
# what a quantised layer keeps its weights in, and never calls
_PACKED, _QUANTISED = "_packed_params", "quantised: its product runs inside one function that cannot be watched"


@dataclass(frozen=True, slots=True)
class Uses:
    """What became of the parts of a module in one evaluation.

    Attributes:
        called: names of the modules that ran.
        followed: name of the layer whose activation a module is, by name of the module.
        in_layers: names of the parameters of which matrices and biases of the table are made.
        in_functions: names of the parameters that any function took.
    """

    called: Collection[str]
    followed: Mapping[str, str]
    in_layers: Collection[str]
    in_functions: Collection[str]


def skipped_parts(module: nn.Module, *, analysed: Sequence[str], uses: Uses) -> list[tuple[str, str]]:
    """(name, reason) of every leaf module that is not in the table, and of every other parameter in no row.

    Args:
        module: the module that was evaluated.
        analysed: names of the rows of the table.
        uses: what became of its parts.
    """
    rows = {name.split("#")[0].split("[")[0] for name in analysed}
    out: list[tuple[str, str]] = []
    told: set[str] = set()
    for name, leaf in module.named_modules():
        if any(leaf.children()) or isinstance(leaf, nn.ParameterList | nn.ParameterDict) or name in rows:
            continue
        if not name and _owns_rows(leaf, rows):
            continue
        if any(row.startswith(f"{name}.") for row in rows) and name:
            continue  # its parameters have rows: a list of weights, an attention
        if name.rpartition(".")[2] == _PACKED:
            out.append((name.rpartition(".")[0], _QUANTISED))
            continue
        told.add(name)
        out.append((name or type(leaf).__name__, _reason(name, leaf, uses)))
    return out + _parameters(module, told, rows, uses)


def _parameters(module: nn.Module, told: set[str], rows: set[str], uses: Uses) -> list[tuple[str, str]]:
    """Those in no row, of modules that are not told of as a whole."""
    out: list[tuple[str, str]] = []
    for name, _ in module.named_parameters():
        owner = name.rpartition(".")[0]
        if owner in told or name in uses.in_layers or name in rows:
            continue
        if isinstance(part := module.get_submodule(owner), nn.RNNBase) and name not in uses.in_functions:
            continue  # its rows tell of the matrices that take states back, too
        kind = type(part).__name__
        is_used = name in uses.in_functions
        what = "enters no matrix product that could be watched" if is_used else "never used on this data"
        out.append((name, f"parameter of {kind}: {what}"))
    return out


def _owns_rows(leaf: nn.Module, rows: set[str]) -> bool:
    names = {name.removesuffix(".weight") for name, _ in leaf.named_parameters(recurse=False)}
    return bool(names & rows) or "weight" in rows


def _reason(name: str, leaf: nn.Module, uses: Uses) -> str:
    kind = type(leaf).__name__
    if isinstance(leaf, _RECURRENT):
        return "recurrent cell: its step runs inside one function that cannot be watched; those of nn.LSTM can"
    own = [f"{name}.{parameter}".lstrip(".") for parameter, _ in leaf.named_parameters()]
    if name not in uses.called and not any(parameter in uses.in_functions for parameter in own):
        return f"never called on this data ({kind})"
    for word, reason in _KINDS:
        if word in kind:
            return reason
    if name in uses.followed:
        return f"elementwise activation, read with layer {uses.followed[name]}"
    if own:
        return f"{kind}: its parameters enter no matrix product that could be watched"
    return f"{kind}: no weight matrix"
