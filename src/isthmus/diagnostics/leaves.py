"""Why a leaf module has no row of its own in the table: one reason per kind."""

from collections.abc import Collection, Sequence

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


def skipped_leaves(
    module: nn.Module, *, analysed: Sequence[str], called: Collection[str], followed: dict[str, str]
) -> list[tuple[str, str]]:
    """(name, reason) of every leaf module that is not in the table.

    Args:
        module: the module that was evaluated.
        analysed: names of the rows of the table.
        called: names of the modules that ran.
        followed: name of the layer whose activation a module is, by name of the module.
    """
    rows = {name.split("#")[0].split("[")[0] for name in analysed}
    out: list[tuple[str, str]] = []
    for name, leaf in module.named_modules():
        if any(leaf.children()) or isinstance(leaf, nn.ParameterList | nn.ParameterDict) or name in rows:
            continue
        if not name and _owns_rows(leaf, rows):
            continue
        if any(row.startswith(f"{name}.") for row in rows) and name:
            continue  # its parameters have rows: a list of weights, an attention
        out.append((name or type(leaf).__name__, _reason(name, leaf, called, followed)))
    return out


def _owns_rows(leaf: nn.Module, rows: set[str]) -> bool:
    names = {name.removesuffix(".weight") for name, _ in leaf.named_parameters(recurse=False)}
    return bool(names & rows) or "weight" in rows


def _reason(name: str, leaf: nn.Module, called: Collection[str], followed: dict[str, str]) -> str:
    kind = type(leaf).__name__
    if isinstance(leaf, _RECURRENT):
        return "recurrent cell: its step runs inside one function that cannot be watched; those of nn.LSTM can"
    if name not in called:
        return f"never called on this data ({kind})"
    for word, reason in _KINDS:
        if word in kind:
            return reason
    if name in followed:
        return f"elementwise activation, read with layer {followed[name]}"
    if any(True for _ in leaf.parameters()):
        return f"{kind}: its parameters enter no matrix product that could be watched"
    return f"{kind}: no weight matrix"
