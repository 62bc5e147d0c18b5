"""A compressed network trained briefly against the outputs of the original, so that more moves keep to the tolerance.

Which moves there are: `compression_search`. Which are proved: `proofs`. Training of networks as such: `training`.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from isthmus.discovery.chains.compression_search import Change, CompressionSearch, stream_at
from isthmus.discovery.chains.proofs import Attempt, attempts
from isthmus.discovery.chains.rows import drawn
from isthmus.networks.copies import copied_module, on_copy
from isthmus.networks.stage_kinds import Stage

POLISHES = ("distil",)
DISTILLED = "trained against the outputs of the original"
# steps of L-BFGS and samples that it sees at the most; multiples of the tolerance up to which moves are made before it
STEPS, MOST_ROWS = 200, 2048
REACHES = (1.5, 2.0, 3.0, 4.0, 6.0)
SHORT = (torch.float16, torch.bfloat16)
SAFE = 0.7  # of the tolerance: moves up to there are tested before anything that is trained


def polished_attempts(search: CompressionSearch, target: Tensor) -> list[Attempt]:
    """What is to be proved, in order: safe moves, then trained networks from the largest on, as the search judges them.

    The search goes on to several times its tolerance, and is trained where it stands; a network whose error is still
    beyond the tolerance on the samples that choose is left out, and nothing smaller is looked at. Where training helps
    nowhere, all moves as they are.

    Args:
        search: at its end; it goes further down.
        target: what the original gives on the samples that fit.
    """
    plain = attempts(search)
    places = drawn(torch.arange(len(target), device=target.device), MOST_ROWS)
    x, target = search.fitting[places], target[places]
    found: list[Attempt] = []
    for reach in (1.0, *REACHES):
        before = len(search.changes)
        if reach > 1:
            search.go_down(reach * search.tolerance)
        if not search.changes or (reach > 1 and len(search.changes) == before):
            continue
        stages = distilled(search.stages, x, target)
        error = search.error(stages)
        if error > search.tolerance:
            break
        names = (search.changes[0].layers[0], search.changes[-1].layers[-1])
        found.append(Attempt(stages, (*search.changes, Change(DISTILLED, names, 0, error))))
    safe = [one for one in plain if one.changes[-1].relative_error <= SAFE * search.tolerance]
    return [*safe, *found] if found else plain


def distilled(stages: Sequence[Stage], x: Tensor, target: Tensor) -> list[Stage]:
    """The steps with all their numbers moved by L-BFGS towards a target; as they were where that makes nothing better.

    minimise |f(x) - target|_F^2 / |target - mean|_F^2   over all parameters

    Numbers of 16 bits are trained in float32, stored as they were, and judged as they are then.
    """
    before = _off(stages, x, target)
    try:
        found = _trained(copied_module(nn.Sequential(*(stage.module for stage in stages))).eval(), x, target)
    except RuntimeError:
        if target.dtype not in SHORT:
            raise
        return [*stages]  # a forward that writes its own type takes no other
    new = [Stage(old.name, module, old.reason) for old, module in zip(stages, found, strict=True)]
    after = _off(new, x, target)
    return new if after < before else [*stages]


def _trained(module: nn.Sequential, x: Tensor, target: Tensor) -> nn.Sequential:
    """The module with its numbers moved, in its own types."""
    types = {name: tensor.dtype for name, tensor in (*module.named_parameters(), *module.named_buffers())}
    if target.dtype in SHORT:
        module, x, target = module.float(), x.float() if x.is_floating_point() else x, target.float()
    parameters = [_in_order(p).requires_grad_() for p in module.parameters() if p.is_floating_point()]
    spread = _spread(target)
    optimiser = torch.optim.LBFGS(parameters, max_iter=STEPS, history_size=20, line_search_fn="strong_wolfe",
                                  tolerance_grad=1e-12, tolerance_change=0.0)  # fmt: skip

    def loss() -> Tensor:
        optimiser.zero_grad()
        with torch.enable_grad():
            value = (on_copy(module, x) - target).square().sum() / spread
            value.backward()
        return value.detach()

    optimiser.step(_as_numbers(loss))
    module.requires_grad_(False)
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        tensor.data = tensor.data.to(types[name])
    return module


def _off(stages: Sequence[Stage], x: Tensor, target: Tensor) -> float:
    """What is minimised, of steps in their own type."""
    wide = torch.float32 if target.dtype in SHORT else target.dtype
    target = target.to(wide)
    return float((stream_at(stages, x).to(wide) - target).square().sum() / _spread(target))


def _spread(target: Tensor) -> Tensor:
    return (target - target.mean(0)).square().sum().clamp_min(torch.finfo(target.dtype).tiny)


def _in_order(parameter: nn.Parameter) -> nn.Parameter:
    """A parameter with its numbers side by side, as L-BFGS looks at them: images may have their channels last."""
    parameter.data = parameter.data.contiguous()
    return parameter


def _as_numbers(loss: Callable[[], Tensor]) -> Callable[[], float]:
    return lambda: float(loss())
