"""The data of a diagnosis: one tensor, a tuple or a mapping of tensors, cut into batches along the first axis."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from torch.utils.data import Dataset

from isthmus.errors import DataError, ShapeError
from isthmus.networks.arguments import as_array, check_finite, tensor_argument
from isthmus.networks.devices import CPU

_MASKS = {"attention_mask": False, "padding_mask": True, "key_padding_mask": True, "src_key_padding_mask": True}
# of torch: what every token may see, (tokens, tokens), for all samples alike
_OF_TOKENS = ("mask", "src_mask", "tgt_mask", "memory_mask", "attn_mask")
TARGETS = ("labels",)  # of which modules of transformers make a loss

Inputs: TypeAlias = Tensor | tuple[Tensor, ...] | Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Samples:
    """Positional and named inputs with a common number of rows.

    Attributes:
        positional: what the module takes in order.
        named: what it takes by name.
        num: number of samples.
        shared: names of inputs that are the same for all samples, as a mask of what every token may see.
    """

    positional: tuple[Tensor, ...]
    named: Mapping[str, Tensor]
    num: int
    shared: frozenset[str] = frozenset()

    @classmethod
    def of(cls, x: object, *, least: int = 2) -> "Samples":
        """The samples in `x`, at least so many.

        Raises:
            DataError: NaN or infinity, complex numbers, fewer than 2 rows. ShapeError: numbers of rows that differ.
            TypeError: something that is no tensor.
        """
        call = "diagnose(module, x)"
        entries = x.items() if isinstance(x, Mapping) else enumerate(x, 1) if isinstance(x, tuple) else [("", x)]
        found = {k: _tensor(v, k) for k, v in entries if k not in TARGETS}
        named = {str(k): t for k, t in found.items()} if isinstance(x, Mapping) else {}
        positional = () if isinstance(x, Mapping) else tuple(found.values())
        tensors = [*positional, *named.values()]
        if not tensors:
            raise TypeError(f"{call}: needs x as a tensor, or a tuple or dict of tensors; got nothing.")
        shared = _shared(named, tensors)
        lengths = {len(t) for t in (*positional, *(t for k, t in named.items() if k not in shared)) if t.ndim}
        if len(lengths) > 1:
            shapes = [tuple(t.shape) for t in tensors]
            raise ShapeError(f"{call}: needs inputs with one number of rows; got shapes {shapes}. Samples are rows.")
        num = lengths.pop() if lengths else 0
        for t in tensors:
            tensor_argument(t, call)
            if num < least:
                raise DataError(f"{call}: needs at least {least} rows of finite numbers, got shape {tuple(t.shape)}.")
        for t in (*positional, *(_unhidden(t) if k in shared or k in _MASKS else t for k, t in named.items())):
            check_finite(t, call)
        return cls(positional, named, num, shared)

    def at(self, rows: slice | Tensor, dtype: torch.dtype | None, device: torch.device) -> "Samples":
        """Some rows, numbers in `dtype` (None: as they are) on `device`; integers stay integers.

        They share no memory with these, since a module may overwrite what it is given.
        """

        def taken(t: Tensor, *, whole: bool = False) -> Tensor:
            part = (t if whole or not t.ndim else t[rows]).detach()
            own = dtype if dtype is not None and part.dtype.is_floating_point else part.dtype
            is_fresh = t.ndim > 0 and not whole and isinstance(rows, Tensor)
            return part.to(device, own, copy=not is_fresh)

        named = {name: taken(t, whole=name in self.shared) for name, t in self.named.items()}
        num = len(rows) if isinstance(rows, Tensor) else len(range(*rows.indices(self.num)))
        return Samples(tuple(taken(t) for t in self.positional), named, num, self.shared)

    def first(self, num: int) -> "Samples":
        """The first so many rows, as they are."""
        named = {name: t[:num] if t.ndim and name not in self.shared else t for name, t in self.named.items()}
        positional = tuple(t[:num] if t.ndim else t for t in self.positional)
        return Samples(positional, named, min(num, self.num), self.shared)

    def behind(self, num: int) -> "Samples":
        """All but the first so many rows, as they are."""
        named = {name: t[num:] if t.ndim and name not in self.shared else t for name, t in self.named.items()}
        positional = tuple(t[num:] if t.ndim else t for t in self.positional)
        return Samples(positional, named, max(self.num - num, 0), self.shared)

    def is_like(self, other: "Samples") -> bool:
        """Whether the rows of both make one table: the same inputs, of the same shapes but for their number."""
        return self.named.keys() == other.named.keys() and [_kind(t) for t in self.tensors] == [
            _kind(t) for t in other.tensors
        ]

    def with_rows(self, other: "Samples") -> "Samples":
        """These and those of another batch below them.

        Raises:
            ShapeError: they do not fit.
        """
        if not self.is_like(other):
            shapes = [[tuple(t.shape) for t in part.tensors] for part in (self, other)]
            raise ShapeError(f"diagnose(module, data): needs batches of one kind of row; got {shapes[0]}, {shapes[1]}.")
        named = {
            k: t if k in self.shared or not t.ndim else torch.cat([t, other.named[k]]) for k, t in self.named.items()
        }
        pairs = zip(self.positional, other.positional, strict=True)
        positional = tuple(torch.cat([a, b]) if a.ndim else a for a, b in pairs)
        return Samples(positional, named, self.num + other.num, self.shared)

    @property
    def num_bytes(self) -> int:
        """What they take."""
        return sum(t.numel() * t.element_size() for t in self.tensors)

    @property
    def real_tokens(self) -> Tensor | None:
        """Which tokens are no padding, (n, tokens), as a named mask says; None without one."""
        for name, marks_padding in _MASKS.items():
            mask = self.named.get(name)
            if mask is None or mask.ndim != 2:
                continue
            if marks_padding and mask.dtype.is_floating_point and bool(((mask == 0) | (mask == -torch.inf)).all()):
                return mask == 0  # what is added to the scores of attention
            if bool(((mask == 0) | (mask == 1)).all()):
                return (mask == 0) if marks_padding else (mask == 1)
        return None

    def without_padding(self, output: Tensor) -> Tensor:
        """What the module gave for these samples, 0 where a token is padding: nobody reads what padding becomes."""
        real = self.real_tokens
        if real is None or output.shape[:2] != real.shape:
            return output
        return output * real.to(output.device).reshape(*real.shape, *[1] * (output.ndim - 2))

    def numbers_in(self, output: Tensor, size: int) -> int:
        """Numbers per sample in what the module gave for `size` samples; of tokens those that any sample has."""
        numbers, real = output.numel() // max(size, 1), self.real_tokens
        if real is None or output.shape[:2] != (size, real.shape[1]):
            return numbers
        return numbers // real.shape[1] * int(real.any(0).sum())

    @property
    def num_inputs(self) -> int | None:
        """Numbers per sample that enter, those of padding and masks left out; None where tokens do."""
        entering = [*self.positional, *self._named_numbers()]
        if not all(t.dtype.is_floating_point and t.ndim for t in entering):
            return None
        return sum(self.numbers_in(t, self.num) for t in entering)

    @property
    def tensors(self) -> list[Tensor]:
        """All that the module takes."""
        return [*self.positional, *self.named.values()]

    def by_rows(self) -> list[Tensor]:
        """All that has a row for each sample."""
        return [t for t in (*self.positional, *(t for k, t in self.named.items() if k not in self.shared)) if t.ndim]

    def floats(self) -> list[Tensor]:
        """The inputs of which derivatives can be taken; a mask is none."""
        return [t for t in (*self.positional, *self._named_numbers()) if t.dtype.is_floating_point and t.ndim]

    def _named_numbers(self) -> list[Tensor]:
        return [t for name, t in self.named.items() if name not in _MASKS and name not in self.shared]


def _shared(named: Mapping[str, Tensor], tensors: list[Tensor]) -> frozenset[str]:
    """Names of square masks of as many tokens as another input has; "mask" alone may also be one of rows."""
    found: set[str] = set()
    for name in _OF_TOKENS:
        mask = named.get(name)
        if mask is None or mask.ndim != 2 or mask.shape[0] != mask.shape[1]:
            continue
        others = [t for t in tensors if t is not mask and t.ndim > 1]
        if any(t.shape[1] == len(mask) for t in others) and (name != "mask" or len(mask) != len(others[0])):
            found.add(name)
    return frozenset(found)


def _unhidden(mask: Tensor) -> Tensor:
    """A mask with 0 where -inf hides a token: no number is missing there."""
    return mask.masked_fill(mask == -torch.inf, 0) if mask.is_floating_point() else mask


def _kind(t: Tensor) -> tuple[torch.Size, torch.dtype, torch.device]:
    return t.shape[1:], t.dtype, t.device


def row_ranges(num: int, size: int) -> list[tuple[int, int]]:
    """(first, end) of batches of so many rows; a single one left over goes with the batch before.

    Batch norms without running statistics normalise no single row.
    """
    starts = [start for start in range(0, num, size) if start == 0 or size == 1 or num - start > 1]
    return [*zip(starts, [*starts[1:], num], strict=True)]


def masks_nothing(name: str, mask: object) -> bool:
    """Whether an input of this name is a mask that marks no padding, and may as well be left out."""
    if name not in _MASKS or not isinstance(mask, Tensor):
        return False
    return bool((mask == (0 if _MASKS[name] else 1)).all())


def _tensor(x: object, entry: object = "") -> Tensor:
    if isinstance(x, Tensor):
        return x
    try:
        return torch.as_tensor(as_array(x), device=CPU)
    except (TypeError, ValueError, RuntimeError):
        several = isinstance(x, list | Dataset)
        is_text = isinstance(x, str) or (isinstance(x, list | tuple) and any(isinstance(part, str) for part in x))
        advice = " Of several batches give a DataLoader, or iter(batches)." if several else ""
        raise TypeError(
            f"diagnose(module, x): needs x as a tensor, or a tuple or dict of tensors; got {type(x).__name__}"
            f"{f' as its entry {entry!r}' if entry else ''}."
            f"{' It holds text: leave it out, or give what the module takes for it.' if is_text else advice}"
        ) from None
