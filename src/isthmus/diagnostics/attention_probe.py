"""Which split into heads a module computes with, found by writing other numbers into what it attends to.

What may be tried: `attention_splits`. What is read of the heads: `attention_heads`.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from isthmus.diagnostics.attention_splits import Candidates, HeadRows, HeadSplit
from isthmus.diagnostics.listener import Listener, Reading

SHARPNESS = 3.0  # spread of the queries and keys that are written, so that heads look elsewhere
TELLS = 0.05  # of the largest: a mean of numbers in [0, 1] that moves by more is another; bfloat16 rounds by .4 %
MOST_ROUNDS = 48  # passes over two samples, three each
TURNS = ("", "query", "key")  # what of every other head is turned round in each
Evaluate = Callable[[Listener], object]
FoundSplit = tuple[HeadSplit, Mapping[int, Tensor]]  # and the matrices of its calls


class _Written(Listener):
    """Writes queries, keys and values of its own, and keeps what the output projections get.

    The value of feature j at token t is w(t) r(j), so that a head gives r(j) times one mean of w: the same for all of
    its features, another for each head, and another where the head's own queries or keys are.
    """

    def __init__(self, splits: Mapping[int, HeadSplit], turned: str) -> None:
        self.turned, self.got, self.matrices = turned, dict[int, Tensor](), dict[int, Tensor]()
        self._outs = {out: split for out, split in splits.items()}
        self._calls = 0
        self._parts: dict[int, list[tuple[str, HeadSplit]]] = {}
        for split in splits.values():
            for role in ("query", "key", "value"):
                self._parts.setdefault(getattr(split, role).call, []).append((role, split))

    def produced(self, z: Tensor) -> Tensor | None:
        """What goes on in place of z."""
        parts = self._parts.get(self._calls, [])
        chance = torch.Generator().manual_seed(self._calls)
        self._calls += 1
        if not parts:
            return None
        out = z.clone()
        for role, split in parts:
            rows: HeadRows = getattr(split, role)
            if role == "value":
                weights = torch.rand(z.shape[:-1], generator=chance, dtype=torch.float64)
                self._put(out, rows.numbers, weights[..., None] * sizes(z.shape[-1]))
                continue
            noise = SHARPNESS * torch.randn(z.shape, generator=chance, dtype=torch.float64)
            self._put(out, rows.numbers, noise)
            if role == self.turned:  # the other way, which a normalisation over all heads does not tell
                self._put(out, rows.numbers[every_other(rows)], -noise)
        return out

    def called(self, reading: Reading) -> None:
        """Keep what enters an output projection, and the matrices of all parts."""
        if reading.index in self._outs or reading.index in self._parts:
            self.matrices[reading.index] = reading.call.matrix
        if reading.index in self._outs:
            self.got[reading.index] = reading.enters.detach().double().cpu()

    def _put(self, out: Tensor, numbers: Tensor, values: Tensor) -> None:
        numbers = numbers.flatten()
        out[..., numbers.to(out.device)] = values[..., numbers].to(out)

    def means(self, out: int) -> Tensor | None:
        """What the heads of an attention made of w, (.., heads, size), by feature."""
        entered, split = self.got.get(out), self._outs[out]
        if entered is None or not bool(entered.isfinite().all()):
            return None
        return entered[..., split.out.numbers] / sizes(int(split.value.numbers.max()) + 1)[split.value.numbers]


def sizes(count: int) -> Tensor:
    """r, by the number of the row: in [1, 2], no two alike."""
    return 1 + torch.arange(count, dtype=torch.float64) * 0.618034 % 1


def every_other(rows: HeadRows) -> Tensor:
    """Which heads have rows that are turned round: those of every other group that shares its rows, or of the one."""
    _, group = rows.numbers[:, 0].unique(return_inverse=True)
    return group % 2 == 1 if int(group.max()) else torch.ones(len(group), dtype=torch.bool)


def true_splits(tried: Mapping[int, Candidates], evaluate: Evaluate) -> dict[int, FoundSplit]:
    """The first split of each attention that its answers bear out, by the call of the output projection.

    Args:
        tried: what may be tried, likewise.
        evaluate: passes some samples through the module while a listener hears.
    """
    found: dict[int, FoundSplit] = {}
    waiting = {out: [*known.splits] for out, known in tried.items()}
    for _ in range(MOST_ROUNDS):
        taken = set[int]().union(*(split.calls for split, _ in found.values()))
        now: dict[int, HeadSplit] = {}
        for out, splits in waiting.items():
            waiting[out] = splits = [s for s in splits if not s.calls & taken]
            if out not in found and splits and not any(splits[0].calls & other.calls for other in now.values()):
                now[out] = splits.pop(0)
        if not now:
            break
        written = [_Written(now, turned) for turned in TURNS]
        for listener in written:
            evaluate(listener)
        for out, split in now.items():
            if _holds(split, [w.means(out) for w in written]):
                found[out] = split, written[0].matrices
    return found


def _holds(split: HeadSplit, means: list[Tensor | None]) -> bool:
    """Whether all features of a head have one mean, neighbouring heads others, and each its own queries and keys."""
    first, by_query, by_key = means
    if first is None or by_query is None or by_key is None:
        return False
    tells = TELLS * float(first.abs().max())
    heads = first.mean(-1)
    differ = _most(heads.diff(dim=-1).abs()) > tells
    if tells == 0 or float((first - heads[..., None]).abs().max()) > tells or not bool(differ.all()):
        return False
    moved = [_most((other.mean(-1) - heads).abs()) > tells for other in (by_query, by_key)]
    return all(torch.equal(m, every_other(r)) for m, r in zip(moved, (split.query, split.key), strict=True))


def _most(values: Tensor) -> Tensor:
    """The largest over all tokens, by head."""
    return values.flatten(0, -2).amax(0)
