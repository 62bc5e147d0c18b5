"""How the rows of weight matrices may be split into heads of attention: what numbers and sizes of layers allow.

Names of layers are not asked: modules of one name pack query, key and value in three orders. Which split is true:
`attention_probe`. What is read of it: `attention_heads`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, permutations, product

import torch
from torch import Tensor, nn

from isthmus.diagnostics.listener import Reading

NUMBERS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "nhead", "heads")  # of the field, for how many
WIDTHS = ("head_dim", "attention_head_size", "head_size", "key_value_proj_dim")  # and for how wide
BEHIND = 6  # calls before an output projection among which query, key and value are looked for
NEAR = 2  # names from the module that holds an attention to its layers
MOST_TRIED = 12  # splits of one attention


@dataclass(frozen=True, slots=True)
class HeadRows:
    """Rows of the matrix of one call, or columns of an output projection, by head.

    Attributes:
        call: number of the reading.
        numbers: (heads, size).
    """

    call: int
    numbers: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class HeadSplit:
    """The heads of one attention: a key and a value that several heads share stand for each of them.

    Attributes:
        query, key, value: rows of what is computed of the tokens.
        out: columns of what takes the values of all heads.
    """

    query: HeadRows
    key: HeadRows
    value: HeadRows
    out: HeadRows

    @property
    def calls(self) -> set[int]:
        """Numbers of its readings."""
        return {part.call for part in (self.query, self.key, self.value, self.out)}

    def turned(self, role: str) -> Tensor:
        """Of every other head or group of heads that share a key, or of the only one, the query or the key: a mask.

        Where one key serves all, queries are turned of every other head.
        """
        _, key = self.key.numbers[:, 0].unique(return_inverse=True)
        if int(key.max()):
            return key % 2 == 1
        count = len(self.key.numbers)
        return torch.arange(count) % 2 == 1 if role == "query" and count > 1 else torch.ones(count, dtype=torch.bool)

    @classmethod
    def of(cls, query: tuple[int, Tensor], key: tuple[int, Tensor], value: tuple[int, Tensor], out: int, width: int,
           count: int) -> "HeadSplit | None":  # fmt: skip
        """From calls and the numbers of their rows, head after head; None where they do not fit so many heads."""
        size, own = len(query[1]) // count, width // count  # a head of values may be of a size of its own
        shared = len(key[1]) // max(size, 1)
        fits = len(query[1]) == count * size and len(key[1]) == shared * size and len(value[1]) == shared * own
        if min(size, own) < LEAST_SIZE or not shared or count % shared or not fits:
            return None

        def by_head(rows: Tensor) -> Tensor:
            return rows.reshape(shared, -1).repeat_interleave(count // shared, 0)

        columns = torch.arange(width).reshape(count, own)
        return cls(
            HeadRows(query[0], query[1].reshape(count, size)), HeadRows(key[0], by_head(key[1])),
            HeadRows(value[0], by_head(value[1])), HeadRows(out, columns),
        )  # fmt: skip


LEAST_SIZE = 2  # numbers of a head: of one each, nothing tells heads from any product by entries


@dataclass(frozen=True, slots=True)
class Candidates:
    """What may be tried for one attention.

    Attributes:
        splits: the most likely first.
        is_named: whether a number of heads stands under a name of the field; else any number of the module is tried.
        owner: name of the module that holds the output projection, where this says how many heads it has; else None.
    """

    splits: list[HeadSplit]
    is_named: bool
    owner: str | None = None


def candidates(module: nn.Module, readings: Sequence[Reading]) -> dict[int, Candidates]:
    """What may be tried, by the call of the output projection; nothing where no module around it has a number of heads.

    Query, key and value are called in the module that holds the output projection; where none is, in the one around it.

    Args:
        module: whose layers these are.
        readings: the calls of its matrices, in their order.
    """
    places = dict(module.named_modules())
    found: dict[int, Candidates] = {}
    for reading in readings:
        if reading.call.convolution is not None:
            continue
        width, parent = reading.call.matrix.shape[1], _parent(reading.name)
        counts, is_named = _counts(places, parent, width)
        before = readings[max(0, reading.index - BEHIND) : reading.index]
        before = [r for r in before if r.call.convolution is None and not _are_beside(r, reading)]
        inside = [r for r in before if _is_near(r.name, parent)]
        around = [] if inside else [r for r in before if _is_near(r.name, _parent(parent))]
        near = inside or around
        tried = (
            split
            for count in counts
            for split in (*_packed(near, reading.index, width, count), *_apart(near, reading.index, width, count))
        )
        if known := [*islice(tried, MOST_TRIED)]:
            says = parent in places and any(name in vars(places[parent]) for name in (*NUMBERS, *WIDTHS))
            found[reading.index] = Candidates(known, is_named, parent if says and inside else None)
    return found


def _are_beside(first: Reading, second: Reading) -> bool:
    """Whether the very same tensor enters both, so that neither is fed by the other."""
    return second.twin is not None and second.twin in (first.index, first.twin)


def _parent(name: str) -> str:
    return name.split("#")[0].split("[")[0].rpartition(".")[0]


def is_within(name: str, place: str) -> bool:
    """Whether a name is that of a part of a module, whose own name is empty for the whole."""
    return not place or name.startswith(f"{place}.")


def _is_near(name: str, place: str) -> bool:
    """Whether it is a part of a module, or of a part of it: "self.query" of "attention", no layer of its blocks."""
    return is_within(name, place) and name.removeprefix(f"{place}.").count(".") < NEAR


def _counts(places: dict[str, nn.Module], parent: str, width: int) -> tuple[list[int], bool]:
    """Numbers of heads of modules around a layer, and whether under names of the field: if not, any of its own."""
    around = [places[p] for p in dict.fromkeys((parent, parent.rpartition(".")[0])) if p in places]
    around = [part for place in around for part in (place, *place.children())]
    numbers = _whole_numbers(around, NUMBERS)
    numbers += [width // size for size in _whole_numbers(around, WIDTHS) if not width % size]
    named = [n for n in dict.fromkeys(numbers) if not width % n]
    own = [n for n in vars(places[parent]).values() if type(n) is int] if parent in places else []
    return named or [n for n in dict.fromkeys(own) if n > 0 and not width % n], bool(named)


def _whole_numbers(places: Sequence[object], names: Sequence[str]) -> list[int]:
    """What modules keep under some names, themselves or in their settings."""
    places = [*places, *(config for place in places if (config := _attribute(place, "config")) is not None)]
    found = [_attribute(place, name) for place in places for name in names]
    return [number for number in found if isinstance(number, int) and number > 0]


def _attribute(place: object, name: str) -> object:
    try:
        return getattr(place, name, None)
    except Exception:  # noqa: BLE001 - a foreign property
        return None


def _packed(before: Sequence[Reading], out: int, width: int, count: int) -> Iterator[HeadSplit]:
    """One matrix for query, key and value: in blocks, head by head, entry by entry, or in groups that share a key."""
    size = width // count
    for reading in reversed(before):
        rows = torch.arange(len(reading.call.matrix))
        shared = (len(rows) - width) // (2 * size)
        if shared < 1 or len(rows) != width + 2 * shared * size or count % shared:
            continue
        each = count // shared
        blocks = rows.split([width, shared * size, shared * size])
        groups = rows.reshape(shared, each + 2, size).split([each, 1, 1], 1)
        entries = rows.reshape(shared, size, each + 2).movedim(2, 1).split([each, 1, 1], 1)
        for first, order in product(range(3), (blocks, groups, entries)):
            query, key, value = ((reading.index, order[(first + i) % 3].reshape(-1)) for i in range(3))
            if split := HeadSplit.of(query, key, value, out, width, count):
                yield split


def _apart(before: Sequence[Reading], out: int, width: int, count: int) -> Iterator[HeadSplit]:
    """A matrix each, in any order; query and key of one size are not told apart, nor have they other products."""
    for three in combinations(reversed(before), 3):
        found: list[tuple[int, ...]] = []
        for roles in permutations(range(2, -1, -1)):
            query, key, value = ((three[i].index, torch.arange(len(three[i].call.matrix))) for i in roles)
            if (roles[1], roles[0], roles[2]) in found and len(query[1]) == len(key[1]):
                continue
            if split := HeadSplit.of(query, key, value, out, width, count):
                found.append(roles)
                yield split
