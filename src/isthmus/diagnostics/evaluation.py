"""One evaluation of a module under a listener: by its functions, or for a leaky network by its own layers."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from isthmus.diagnostics.listener import Listener, Reading
from isthmus.diagnostics.matrix_calls import MatrixCall
from isthmus.diagnostics.module_names import Names
from isthmus.diagnostics.recording import Recorder
from isthmus.diagnostics.replica import Replica
from isthmus.diagnostics.samples import Samples
from isthmus.errors import DataError, IsthmusError
from isthmus.networks import LeakyResNet, walk
from isthmus.networks.kinds import of_class
from isthmus.processes.shared_state import silenced
from isthmus.theory.representation_costs import lifted


def evaluate(replica: Replica, names: Names, samples: Samples, listener: Listener) -> Tensor:
    """The answer of a module, (n, ...), while a listener hears of its layers.

    Args:
        replica: what is evaluated.
        names: of the same module.
        samples: rows in the replica's precision.
        listener: hears every reading; of a `LeakyResNet` the activation is the stream, and what enters is the stream.
    """
    by_layers = of_class(_BY_LAYERS, replica.module, None)
    if by_layers is not None:
        return by_layers(replica.module, samples.positional[0], listener)
    return record(replica, names, samples, listener)


def checked_answer(
    replica: Replica, names: Names, samples: Samples, listener: Listener, *, where: str, start: int
) -> Tensor:
    """The same, where what goes wrong on some rows of many is told in one line.

    Args:
        replica: what is evaluated.
        names: of the same module.
        samples: rows in the replica's precision.
        listener: hears every reading.
        where: the call, for the message.
        start: the number of the first row.

    Raises:
        DataError: the module fails, or answers NaN or infinity.
    """
    rows, kind = f"rows {start + 1} to {start + samples.num}", type(replica.module).__name__
    try:
        output = evaluate(replica, names, samples, listener)
    except IsthmusError:
        raise
    except Exception as error:  # any error of a foreign module
        detail = " ".join(str(error).split())[:300]
        raise DataError(f"{where}: running {kind} on {rows} failed: {type(error).__name__}: {detail}") from error
    if not _is_finite(output):
        raise DataError(f"{where}: {kind} returned NaN or infinity for finite data, in {rows}. Check its weights.")
    return output


def _is_finite(output: Tensor) -> bool:
    """Whether there is neither NaN nor infinity; without the copies of torch.isfinite, two and a half of all logits."""
    if not output.is_floating_point() or not output.numel():
        return bool(torch.isfinite(output).all())
    return all(math.isfinite(float(end)) for end in torch.aminmax(output))  # NaN comes through both


def record(replica: Replica, names: Names, samples: Samples, listener: Listener) -> Tensor:
    """The answer of a module, (n, ...), while a listener hears of every function that runs.

    Raises:
        OtherCalls: other matrices are called than the replica's.
    """
    # what a foreign module says about itself was said when its owner ran it
    with silenced(), names.watching(), Recorder(names, listener, replica.calls) as recorder:
        output = replica(samples)
        recorder.finish()
    return output


def _leaky_readings(network: LeakyResNet, x: Tensor, listener: Listener) -> Tensor:
    states, smoothing = walk(network, x), float(network.smoothing)
    before = x
    for index, state in enumerate(states):
        is_layer = 0 < index < len(states) - 1
        features = lifted(before, bias=False, smoothing=smoothing) if is_layer else before
        reading = Reading(
            index, state.name, MatrixCall(features, state.weight, state.bias, state.weight), before, state.preactivation
        )
        if is_layer:  # what the relu takes from the stream that enters; the stream that leaves
            reading.before, reading.after, reading.functions = before, features, ("relu",)
            reading.stream = state.activation
        listener.called(reading)
        listener.closed(reading)
        before = state.activation
    return states[-1].activation


_BY_LAYERS: dict[type[nn.Module], Callable[[Any, Tensor, Listener], Tensor]] = {LeakyResNet: _leaky_readings}
