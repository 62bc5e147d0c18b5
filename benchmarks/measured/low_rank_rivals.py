"""What a compression is compared with: every layer of a network through singular vectors of W, or of what W gives.

Plain SVD keeps one share of the energy of each W; data-aware SVD that of each W a on the data (the best there is for
one layer, as SVD-LLM, ASVD and their kin have it). Both are told fresh rows, and take the least share that is enough.
"""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from isthmus.networks.unfolded import UnfoldedEncoderLayer

# one minus the share of the energy that is kept, rising
LOST = torch.logspace(-9, -0.1, 90, dtype=torch.float64)
_KINDS = (nn.Linear, nn.Conv1d, nn.Conv2d)


@dataclass(slots=True, eq=False)
class _Layer:
    """One layer and where it is projected: W -> Q Q^T W (of data, around the mean) or its own leading vectors."""

    module: nn.Linear | nn.Conv1d | nn.Conv2d
    weight: Tensor
    bias: Tensor | None
    axes: Tensor
    energies: Tensor
    moved: Tensor | None

    def parameters(self, lost: float) -> int:
        """Weights that are left, two factors where they are fewer."""
        height, width = self.weight.shape
        return min(self.rank(lost) * (height + width), height * width)

    def rank(self, lost: float) -> int:
        share = self.energies.cumsum(0) / self.energies.sum()
        return min(int((share < 1 - lost).sum()) + 1, len(self.energies))

    def set(self, lost: float) -> None:
        """Project the weights in place; where that saves nothing they stay."""
        weight, bias = self.weight, self.bias
        if self.parameters(lost) < weight.numel():
            q = self.axes[:, : self.rank(lost)]
            weight = q @ (q.T @ weight)
            if bias is not None and self.moved is not None:
                bias = bias + self.moved - q @ (q.T @ self.moved)
        self.module.weight.data.copy_(weight.reshape(self.module.weight.shape))
        if bias is not None and self.module.bias is not None:
            self.module.bias.data.copy_(bias)


def unfolded(module: nn.Module) -> nn.Module:
    """The network with encoder layers written out, so that rivals may change their matrices too."""
    own = copy.deepcopy(module)
    for part in [*own.modules()]:
        for name, child in part.named_children():
            if isinstance(child, nn.TransformerEncoderLayer):
                setattr(part, name, UnfoldedEncoderLayer(child))
    return own.eval().requires_grad_(False)


def fewest_parameters(module: nn.Module, x: Tensor, fresh: Tensor, *, error: float, uses_data: bool) -> int:
    """Parameters at the least share at which the error on fresh rows is not above `error`, by bisection."""
    own = unfolded(module)
    with torch.no_grad():
        wanted = own(fresh).double()
        spread = (wanted - wanted.mean(0)).norm()
        layers = _layers(own, x, uses_data=uses_data)

        def found(lost: float) -> float:
            for layer in layers:
                layer.set(lost)
            return float((own(fresh).double() - wanted).norm() / spread)

        low, high = -1, len(LOST)  # the first is good enough, the last is not
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if found(float(LOST[middle])) <= error else (low, middle)
    total = sum(p.numel() for p in own.parameters())
    if low < 0:
        return total
    return total - sum(layer.weight.numel() - layer.parameters(float(LOST[low])) for layer in layers)


def _layers(own: nn.Module, x: Tensor, *, uses_data: bool) -> list[_Layer]:
    modules = [m for m in own.modules() if isinstance(m, _KINDS) and getattr(m, "groups", 1) == 1]
    grams: dict[int, tuple[Tensor, Tensor, int]] = {}

    def heard(module: nn.Module, _: object, z: Tensor) -> None:
        rows = (z if isinstance(module, nn.Linear) else z.movedim(1, -1)).reshape(-1, module.weight.shape[0]).double()  # pyright: ignore[reportAttributeAccessIssue, reportArgumentType, reportCallIssue, reportIndexIssue]
        gram, total, count = grams.get(id(module), (0.0, 0.0, 0))
        grams[id(module)] = (gram + rows.T @ rows, total + rows.sum(0), count + len(rows))

    if uses_data:
        handles = [m.register_forward_hook(heard) for m in modules]
        for batch in x.split(256):
            own(batch)
        for handle in handles:
            handle.remove()
    return [_of(m, grams.get(id(m))) for m in modules if not uses_data or id(m) in grams]


def _of(module: nn.Linear | nn.Conv1d | nn.Conv2d, gram: tuple[Tensor, Tensor, int] | None) -> _Layer:
    weight = module.weight.detach().double().flatten(1).clone()
    bias = None if module.bias is None else module.bias.detach().double().clone()
    if gram is None:
        u, s, _ = torch.linalg.svd(weight, full_matrices=False)
        return _Layer(module, weight, bias, u, s.square(), None)
    second, total, count = gram
    mean = total / count
    values, vectors = torch.linalg.eigh(second / count - torch.outer(mean, mean))
    moved = mean if bias is None else mean - bias
    return _Layer(module, weight, bias, vectors.flip(1), values.flip(0).clamp_min(0), moved)
