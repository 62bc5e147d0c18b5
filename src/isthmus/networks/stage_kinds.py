"""What a step of a chain does to its features: weights, a function per neuron, or a coupling.

A step that couples features (attention, layer norm, softmax, a residual block) is a barrier: nothing is moved through
it, but chains inside of it can be rewritten: the branch of a residual sum x + branch(x), whose stream keeps its width,
or parts of a module that was opened (`networks.opening`). How a module becomes a chain: `networks.chain`.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from isthmus.networks.departures import departure

ELEMENTWISE = (
    nn.ReLU, nn.LeakyReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.ELU, nn.SELU, nn.CELU, nn.Softplus, nn.Softsign,
    nn.Mish, nn.ReLU6, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.Tanhshrink, nn.LogSigmoid,
)  # fmt: skip
NOTHING = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
CHANNELWISE = (
    nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d,
    nn.MaxPool1d, nn.AvgPool1d, nn.AdaptiveAvgPool1d, nn.AdaptiveMaxPool1d,
)  # fmt: skip
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d)
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One step of a chain.

    Attributes:
        name: where it sits in the module it came from, as in `named_modules`.
        module: what computes it; a copy.
        reason: why nothing may be moved through it; empty where something may.
    """

    name: str
    module: nn.Module
    reason: str = ""


def is_weighted(module: nn.Module) -> bool:
    """Whether the module is a linear layer or a plain 1-d or 2-d convolution, and computes what its weights say."""
    return _has_weights(module) and not departure(module, type(module))


def _has_weights(module: nn.Module) -> bool:
    if type(module) in CONVOLUTIONS and isinstance(module, CONVOLUTIONS):
        return module.groups == 1 and module.padding_mode == "zeros"
    return type(module) is nn.Linear


def is_convolution(module: nn.Module) -> bool:
    """Whether the module is a 1-d or 2-d convolution, plain or not."""
    return isinstance(module, CONVOLUTIONS)


def barrier_reason(module: nn.Module) -> str:
    """Why nothing is moved through a module; empty for weights, activations, pooling, flattening and batch norm."""
    known = (*ELEMENTWISE, *NOTHING, *CHANNELWISE, *BATCH_NORMS)
    kind = type(module).__name__
    if _has_weights(module) or type(module) in known or is_flatten(module):
        why = departure(module, type(module))
        return f"{kind}: it has {why}" if why else ""
    inner = " ".join(type(part).__name__ for part in module.modules()).lower()
    if "attention" in inner:
        return f"{kind}: attention mixes the samples of a sequence"
    if "norm" in kind.lower():
        return f"{kind}: normalisation couples the features between the layers"
    if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.ConvTranspose2d):
        if getattr(module, "groups", 1) > 1:
            return f"{kind}: a convolution of several groups has its channels apart already"
        return f"{kind}: only 1-d and 2-d convolutions padded with zeros are rewritten"
    return f"{kind}: not a layer whose features can be told apart"


def relu_slope(module: nn.Module) -> float | None:
    """The slope for negative numbers of a ReLU or a leaky one, of size below 1; None for anything else."""
    if type(module) is nn.ReLU:
        return 0.0
    if type(module) is nn.LeakyReLU and abs(module.negative_slope) < 1:
        return float(module.negative_slope)
    return None


def is_flatten(module: nn.Module) -> bool:
    """Whether the module flattens everything but the batch."""
    return type(module) is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1)


_READ_OFF = ("weight", "bias", "in_features", "out_features", "in_channels", "out_channels")


class InnerChain(nn.Sequential):
    """Steps one after the other in the place of a part of a module that is one step itself.

    Args:
        steps: what they are; nothing is done where there is none.
    """

    def __init__(self, steps: Sequence[Stage]) -> None:
        super().__init__(*(step.module for step in steps))
        self.names = tuple(step.name for step in steps)
        self.reasons = tuple(step.reason for step in steps)

    @property
    def steps(self) -> list[Stage]:
        """The steps."""
        return [Stage(*step) for step in zip(self.names, self, self.reasons, strict=True)]

    def __getattr__(self, name: str) -> Tensor | nn.Module:
        """What modules read off a layer of theirs besides calling it, `self.projection.weight.dtype`: of a step.

        What enters is that of the first step that has it, anything else that of the last.
        """
        if name in _READ_OFF:
            steps = [step for step in self if hasattr(step, name)]
            if steps:
                return getattr(steps[0 if name.startswith("in_") else -1], name)
        return super().__getattr__(name)


class ResidualSum(nn.Module):
    """x + branch(x), the branch being steps one after the other.

    Args:
        steps: of the branch; x itself where there is none.
    """

    def __init__(self, steps: Sequence[Stage]) -> None:
        super().__init__()
        self.branch = InnerChain(steps)

    def forward(self, x: Tensor) -> Tensor:
        """The stream after the sum, of the shape of x."""
        return x + self.branch(x)


class Tied(nn.Module):
    """A layer whose weights serve in other steps too: what is saved here is not saved there, and it stays.

    Args:
        inner: the layer.
    """

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """What the layer gives."""
        return self.inner(x)


def inner_chains(stage: Stage) -> dict[str, list[Stage]]:
    """The chains inside one step by where they are: the branch of a residual sum, parts of a module that was opened."""
    found: dict[str, list[Stage]] = {}
    for path, part in stage.module.named_modules():
        if isinstance(part, InnerChain) and not any(path.startswith(f"{other}.") for other in found):
            found[path] = part.steps
    return found


def with_inner_chain(stage: Stage, path: str, steps: Sequence[Stage]) -> Stage:
    """The step with other steps in one of its chains; everything else is shared."""
    return Stage(stage.name, with_part(stage.module, path, InnerChain(steps)), stage.reason)


def with_part(module: nn.Module, path: str, part: nn.Module) -> nn.Module:
    """A module with another one in a place within; whatever is not on the way there is shared."""
    head, _, rest = path.partition(".")
    own = copy.copy(module)
    parts = dict(own.named_children())
    own.__dict__["_modules"] = {**parts, head: with_part(parts[head], rest, part) if rest else part}
    return own
