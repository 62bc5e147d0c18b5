"""Any module cut in two at one of its linear layers: `factorise` for networks that are not ours.

How a module is taken apart: `networks.chain`. Networks of ours: `factorisation`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from isthmus.discovery.chains.module_input import checked_input, checked_output
from isthmus.discovery.chains.row_factor import RowFactor, row_factor
from isthmus.discovery.chains.rows import batches, row_batches
from isthmus.discovery.chains.sites import branches
from isthmus.discovery.chains.weighted_layers import numbers, pointwise, weighted, with_numbers
from isthmus.discovery.factors import Factorisation, dimensions_of, fewest_coordinates, principal_axes
from isthmus.networks.chain import UnreadableModule, as_module, read_chain, run
from isthmus.networks.copies import copied_module, on_copy
from isthmus.networks.stage_kinds import Stage, is_convolution, is_weighted

_NAMED = 3  # places of each obstacle in a message


def cut_module(module: nn.Module, x: Tensor, rank: int | None, *, layer: int | str | None) -> Factorisation[nn.Module]:
    """See `factorise`."""
    x = checked_input("factorise", module, x, least_rows=2)
    target = checked_output("factorise", copied_module(module).eval(), x)
    try:
        stages = read_chain(module, x)
    except UnreadableModule as error:
        raise ValueError(f"factorise(module, x): {type(module).__name__} cannot be taken apart: {error}.") from error
    places = _places(stages, layer)
    factors = {place: _preactivations(stages, x, place) for place in places}
    if rank is None:
        rank, places = _rank_and_places(module, x, target, stages, factors)
    halves = [_cut(stages, place, factors[place], rank) for place in places]
    errors = [_error_of(nn.Sequential(*pair), target, x) for pair in halves]
    best = min(range(len(places)), key=errors.__getitem__)
    return Factorisation(*halves[best], rank, _name_of(stages, places[best]), errors[best])


def _rank_and_places(
    module: nn.Module, x: Tensor, target: Tensor, stages: Sequence[Stage], factors: Mapping[int, RowFactor]
) -> tuple[int, list[int]]:
    """The number of coordinates where none is asked for, and the steps at which they are such.

    What `diagnose` reads counts numbers of a sample, not of a token or a pixel.
    """
    whole = [place for place, factor in factors.items() if run(stages[: place + 1], x[:1]).numel() == len(factor.mean)]
    found = dimensions_of(module, x, target[0].numel()) if whole else None
    if found is not None:
        return max(found, 1), whole

    def error(place: int, rank: int) -> float:
        return _error_of(nn.Sequential(*_cut(stages, place, factors[place], rank)), target, x) if rank else float("inf")

    widths = [len(factor.mean) for factor in factors.values()]
    return fewest_coordinates([partial(error, place) for place in factors], widths), list(factors)


def _places(stages: Sequence[Stage], layer: int | str | None) -> list[int]:
    """The steps to cut at.

    Raises:
        ValueError: none, or not the one that is asked for; says what can be cut.
    """
    weights = [i for i, stage in enumerate(stages[:-1]) if is_weighted(stage.module)]
    linear = [i for i in weights if isinstance(stages[i].module, nn.Linear)]
    places = [*linear, *(i for i in weights if i not in linear)]  # linear ones keep their numbers
    names = [_name_of(stages, i) for i in places]
    known = ", ".join(f"{number} {name!r}" for number, name in enumerate(names, 1)) or "none"
    if isinstance(layer, str) and layer not in names:
        raise ValueError(f"factorise(layer={layer!r}): {_why_not(stages, layer)} Layers that can be cut: {known}.")
    if isinstance(layer, int) and not 1 <= layer <= len(places):
        raise ValueError(f"factorise(layer={layer}): there is no such layer. Layers that can be cut: {known}.")
    if not places:
        raise ValueError(
            f"factorise(module, x): needs a hidden linear layer or convolution that nothing bypasses"
            f"{_obstacles(stages)}. What can be made smaller without a cut, compress finds."
        )
    if isinstance(layer, int):
        return [places[layer - 1]]
    return (linear or places) if layer is None else [places[names.index(layer)]]


def _name_of(stages: Sequence[Stage], place: int) -> str:
    """The name of the layer at a place; of one that runs several times "name (call 2)" from the second time on."""
    name = stages[place].name
    call = 1 + sum(stage.name == name for stage in stages[:place])
    return name if call == 1 else f"{name} (call {call})"


def _obstacles(stages: Sequence[Stage]) -> str:
    """The reasons why nothing is moved through some steps, each with the names of the first of them."""
    names: dict[str, list[str]] = {}
    for stage in stages:
        if stage.reason:
            names.setdefault(stage.reason, []).append(repr(stage.name))
    found = [
        f"{reason} in {', '.join(places[:_NAMED])}{f' and {len(places) - _NAMED} more' * (len(places) > _NAMED)}"
        for reason, places in names.items()
    ]
    return f"; there is {'; '.join(found)}" if found else ""


def _why_not(stages: Sequence[Stage], layer: str) -> str:
    for stage in stages:
        within = {step.name for steps in branches([stage]) for step in steps}
        inside = within | {
            *dict(stage.module.named_modules()),
            *(n.rpartition(".")[0] for n, _ in stage.module.named_parameters()),
        }
        if stage.reason and (layer in inside - {""} or layer.startswith(f"{stage.name}.")):
            return f"it is bypassed or mixed: {stage.name!r} has {stage.reason}."
        if stage.name == layer and isinstance(stage.module, nn.Linear):
            return "it is the output."
    return "there is no linear layer of this name."


def _preactivations(stages: Sequence[Stage], x: Tensor, place: int) -> RowFactor:
    width = len(weighted(stages[place]).weight)
    return row_factor(row_batches(stages[: place + 1], x, width, channels_first=is_convolution(stages[place].module)))


def _cut(stages: Sequence[Stage], place: int, factor: RowFactor, rank: int) -> tuple[nn.Module, nn.Module]:
    """(encoder, decoder): c = U^T (W a + b - mean), then the layers after U c + mean; channels of a convolution."""
    layer = weighted(stages[place])
    weight, bias = numbers(layer)
    if not 1 <= rank <= len(weight):
        name = stages[place].name
        raise ValueError(f"factorise(rank={rank}, layer={name!r}): needs 1 <= rank <= the layer's width {len(weight)}.")
    axes = principal_axes(factor.centred, rank)
    inner = with_numbers(
        layer, (axes.T @ weight.flatten(1)).reshape(rank, *weight.shape[1:]), axes.T @ (bias - factor.mean)
    )
    outer = pointwise(layer, axes, factor.mean)
    name = stages[place].name
    return (
        as_module([*stages[:place], Stage(name, inner)]),
        as_module([Stage(name, outer), *stages[place + 1 :]]),
    )


def _error_of(module: Callable[[Tensor], Tensor], target: Tensor, x: Tensor) -> float:
    """The relative error of a module on samples, summed in float64; infinite where it gives NaN.

    |f(x) - target|_F / |target - mean|_F,   or |f(x) - target|_F where the target does not vary
    """
    square = 0.0
    with torch.no_grad():
        for rows, wanted in zip(batches(x), batches(target), strict=True):
            square += float((on_copy(module, rows).double() - wanted.double()).square().sum())
    spread = float((target.double() - target.double().mean(0)).norm())
    error = square**0.5 / spread if spread else square**0.5
    return error if error == error else float("inf")
