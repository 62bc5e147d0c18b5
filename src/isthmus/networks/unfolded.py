"""Layers of torch that multiply inside one fused function, written with a layer for every matrix, to be changed.

Who puts them in place: `networks.opening`. What a diagnosis does with the same layers: `diagnostics.attention`.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from isthmus.networks.chain import linear_layer
from isthmus.networks.stage_kinds import ELEMENTWISE, Tied


class UnfoldedAttention(nn.Module):
    """`nn.MultiheadAttention` of one tensor for query, key and value, in evaluation: a layer for each of four matrices.

    Args:
        old: one that `unfolds`.
    """

    def __init__(self, old: nn.MultiheadAttention) -> None:
        super().__init__()
        held = dict(old.named_parameters(recurse=False))
        biases = held["in_proj_bias"].chunk(3) if "in_proj_bias" in held else (None,) * 3
        parts = zip(held["in_proj_weight"].chunk(3), biases, strict=True)
        self.query, self.key, self.value = (linear_layer(weight, bias) for weight, bias in parts)
        self.out = linear_layer(old.out_proj.weight, old.out_proj.bias)
        self.heads, self.batch_first = old.num_heads, old.batch_first

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attention of the tokens to each other; `mask` is added to the scores, or true where they count."""
        x = x if self.batch_first else x.transpose(0, 1)
        parts = (part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value))
        mixed = functional.scaled_dot_product_attention(*parts, attn_mask=mask)
        found = self.out(mixed.transpose(1, 2).flatten(2))
        return found if self.batch_first else found.transpose(0, 1)

    @staticmethod
    def unfolds(old: nn.MultiheadAttention) -> bool:
        """Whether it is of the kind that can be written so: one width, no learned extra token."""
        held = dict(old.named_parameters(recurse=False))
        plain = "in_proj_weight" in held and "bias_k" not in held and not old.add_zero_attn
        return plain and type(old) is nn.MultiheadAttention


class UnfoldedEncoderLayer(nn.Module):
    """`nn.TransformerEncoderLayer` in evaluation, its two parts as layers one after the other.

    Args:
        old: one that `unfolds`.
    """

    def __init__(self, old: nn.TransformerEncoderLayer) -> None:
        super().__init__()
        self.self_attn = UnfoldedAttention(old.self_attn)
        activation = _activation(old.activation)
        assert activation is not None
        self.feed = nn.Sequential(old.linear1, activation, old.linear2)
        self.norm1, self.norm2, self.norm_first = old.norm1, old.norm2, old.norm_first

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,  # noqa: FBT001, FBT002 - as torch has it; the mask says it too
    ) -> Tensor:
        """The stream behind both parts."""
        del is_causal
        mask = _joined(src, src_mask, src_key_padding_mask)
        if self.norm_first:
            x = src + self.self_attn(self.norm1(src), mask)
            return x + self.feed(self.norm2(x))
        x = self.norm1(src + self.self_attn(src, mask))
        return self.norm2(x + self.feed(x))

    @staticmethod
    def unfolds(old: nn.TransformerEncoderLayer) -> bool:
        """Whether its activation is known as a layer, and its attention can be unfolded."""
        known = _activation(old.activation) is not None and UnfoldedAttention.unfolds(old.self_attn)
        return known and type(old) is nn.TransformerEncoderLayer

    def folded(self) -> nn.TransformerEncoderLayer | None:
        """The layer of torch again, which is faster; None where a matrix is no longer one of its own shape."""
        mix, feed = self.self_attn, _leaves(self.feed)
        four = [leaf for part in (mix.query, mix.key, mix.value, mix.out) for leaf in _leaves(part)]
        layers = [part for part in (*four, *feed[:1], *feed[-1:]) if isinstance(part, nn.Linear)]
        widths = {side for layer in layers[:4] for side in layer.weight.shape}
        biased = {"bias" in dict(layer.named_parameters()) for layer in layers}
        if len(feed) != 3 or [len(four), len(layers), len(widths), len(biased)] != [4, 6, 1, 1]:
            return None
        first, last = layers[4:]
        new = nn.TransformerEncoderLayer(
            widths.pop(), mix.heads, len(first.weight), dropout=0.0, activation=feed[1], batch_first=mix.batch_first,
            norm_first=self.norm_first, bias=True in biased, device="meta",
        )  # fmt: skip
        new.self_attn.in_proj_weight = _frozen(torch.cat([layer.weight for layer in layers[:3]]))
        if True in biased:
            new.self_attn.in_proj_bias = _frozen(torch.cat([layer.bias for layer in layers[:3]]))
        new.self_attn.out_proj.weight, new.self_attn.out_proj.bias = layers[3].weight, layers[3].bias
        new.linear1, new.linear2, new.norm1, new.norm2 = first, last, self.norm1, self.norm2
        return new.eval()


def refolded(module: nn.Module) -> nn.Module:
    """The module with layers of torch as themselves again, where they still are such.

    Encoder layers had been written out, and layers whose weights serve in several places had been put apart.
    """
    for part in [*module.modules()]:
        for name, child in part.named_children():
            if isinstance(child, UnfoldedEncoderLayer) and (new := child.folded()) is not None:
                setattr(part, name, new)
            if isinstance(child, Tied):
                setattr(part, name, child.inner)
    return module


def _leaves(part: nn.Module) -> list[nn.Module]:
    """Layers one after the other, as they run."""
    return [leaf for child in part for leaf in _leaves(child)] if isinstance(part, nn.Sequential) else [part]


def _frozen(weight: Tensor) -> nn.Parameter:
    return nn.Parameter(weight.detach(), requires_grad=False)


def _activation(function: object) -> nn.Module | None:
    if isinstance(function, ELEMENTWISE):
        return function
    if function is functional.relu:
        return nn.ReLU()
    return nn.GELU() if function is functional.gelu else None


def _joined(x: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
    """Both masks as one that is added to scores (n, heads, tokens, tokens)."""
    found = [_added(m, x) for m in (mask, None if padding is None else padding[:, None, None, :]) if m is not None]
    return sum(found[1:], found[0]) if found else None


def _added(mask: Tensor, x: Tensor) -> Tensor:
    """A mask of torch's attention, true where a token does not count, as numbers that are added."""
    if mask.dtype is not torch.bool:
        return mask.to(x)
    return torch.zeros(mask.shape, dtype=x.dtype, device=x.device).masked_fill(mask, -torch.inf)
