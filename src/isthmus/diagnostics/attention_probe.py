"""Which split into heads a module computes with, found by writing other numbers into what it attends to.

What may be tried: `attention_splits`. What is read of the heads: `attention_heads`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from isthmus.diagnostics.attention_splits import Candidates, HeadRows, HeadSplit
from isthmus.diagnostics.listener import Listener, Reading

SHARPNESS = 3.0  # spread of the queries and keys that are written, so that heads look elsewhere
TELLS = 0.05  # of the largest: a mean of numbers in [.5, 1.5] that moves by more is another; bfloat16 rounds by .4 %
MEETS = 0.5  # of what turning one round moves, at most, where both are turned round: they meet in a product
# of passes over a few samples, one for each of the TURNS; where modules do not say how many heads they have, or take
# all samples at once
MOST_ROUNDS, FEW_ROUNDS = 16, 3
Evaluate = Callable[[Listener], object]
FoundSplit = tuple[HeadSplit, Mapping[int, Tensor]]  # and the matrices of its calls


@dataclass(frozen=True, slots=True)
class _Turn:
    """What is written otherwise than in the first pass: parts of every other head turned round, or other values."""

    roles: tuple[str, ...] = ()
    values: int = 0


TURNS = (_Turn(), _Turn(("query",)), _Turn(("key",)), _Turn(("query", "key")), _Turn(values=1))


class _Written(Listener):
    """Writes queries, keys and values of its own, and keeps what the output projections get.

    The value of feature j at token t is w(t) r(j), so that a head gives r(j) times one mean of w: the same for all of
    its features, and another where the head's own queries or keys are.
    """

    def __init__(self, splits: Mapping[int, HeadSplit], turn: _Turn) -> None:
        self.turn, self.got, self.matrices = turn, dict[int, Tensor](), dict[int, Tensor]()
        self.weights: dict[int, Tensor] = {}
        self._outs = dict(splits)
        self._calls = 0
        self._parts: dict[int, list[tuple[str, HeadSplit]]] = {}
        for split in splits.values():
            for role in ("query", "key", "value"):
                self._parts.setdefault(getattr(split, role).call, []).append((role, split))

    def produced(self, z: Tensor) -> Tensor | None:
        """What goes on in place of z."""
        parts = self._parts.get(self._calls, [])
        chance = torch.Generator().manual_seed(2 * self._calls)
        self._calls += 1
        if not parts:
            return None
        noise = SHARPNESS * torch.randn(z.shape, generator=chance, dtype=torch.float64)
        weights = 0.5 + torch.rand(2, *z.shape[:-1], generator=chance, dtype=torch.float64)[self.turn.values]
        out = z.clone()
        for role, split in parts:
            rows: HeadRows = getattr(split, role)
            if role == "value":
                self.weights[split.out.call] = weights
                self._put(out, rows.numbers, weights[..., None] * sizes(z.shape[-1]))
                continue
            self._put(out, rows.numbers, noise)
            if role in self.turn.roles:  # the other way, which a normalisation over all heads does not tell
                self._put(out, rows.numbers[split.turned(role)], -noise)
        return out

    def called(self, reading: Reading) -> None:
        """Keep what enters an output projection, and the matrices of all parts."""
        if reading.index in self._outs or reading.index in self._parts:
            self.matrices[reading.index] = reading.call.matrix
        if reading.index in self._outs:
            self.got[reading.index] = reading.enters.detach().double().cpu()

    def means(self, out: int) -> Tensor | None:
        """What the heads of an attention made of w, (.., heads, size), by feature."""
        entered, split = self.got.get(out), self._outs[out]
        if entered is None or not bool(entered.isfinite().all()):
            return None
        return entered[..., split.out.numbers] / sizes(int(split.value.numbers.max()) + 1)[split.value.numbers]

    def _put(self, out: Tensor, numbers: Tensor, values: Tensor) -> None:
        numbers = numbers.flatten()
        out[..., numbers.to(out.device)] = values[..., numbers].to(out)


def sizes(count: int) -> Tensor:
    """r, by the number of the row: in [1, 2], no two alike."""
    return 1 + torch.arange(count, dtype=torch.float64) * 0.618034 % 1


def true_splits(tried: Mapping[int, Candidates], evaluate: Evaluate, *, is_dear: bool = False) -> dict[int, FoundSplit]:
    """The first split of each attention that its answers bear out, by the call of the output projection.

    Args:
        tried: what may be tried, likewise.
        evaluate: passes some samples through the module while a listener hears.
        is_dear: whether it takes all samples at once, so that little is tried.
    """
    found: dict[int, FoundSplit] = {}
    waiting = {out: [*known.splits] for out, known in tried.items()}
    for number in range(FEW_ROUNDS if is_dear else MOST_ROUNDS):
        taken = set[int]().union(*(split.calls for split, _ in found.values()))
        now: dict[int, HeadSplit] = {}
        for out, splits in waiting.items():
            if number >= FEW_ROUNDS and not tried[out].is_named:
                continue
            waiting[out] = splits = [s for s in splits if not s.calls & taken]
            if out not in found and splits and not any(splits[0].calls & other.calls for other in now.values()):
                now[out] = splits.pop(0)
        if not now:
            break
        found |= _borne_out(now, evaluate)
    return found


def _borne_out(splits: Mapping[int, HeadSplit], evaluate: Evaluate) -> dict[int, FoundSplit]:
    """Those that hold; each by itself where the module does not take what is written into all of them."""
    written = [_Written(splits, turn) for turn in TURNS]
    try:
        for listener in written:
            evaluate(listener)
    except Exception:  # noqa: BLE001 - what a foreign module makes of numbers that are not its own
        alone = [{out: split} for out, split in splits.items()] if len(splits) > 1 else []
        return {out: known for one in alone for out, known in _borne_out(one, evaluate).items()}
    return {out: (split, written[0].matrices) for out, split in splits.items() if _holds(split, out, written)}


def _holds(split: HeadSplit, out: int, written: list[_Written]) -> bool:
    """Whether heads of several tokens, each with one mean for all of its features, are told by its split alone.

    A head, and no other, has another mean where its own queries or keys are turned round, and about the same where both
    are: they meet in a product. A mean is of several tokens: no share of the token's own w.
    """
    means = [one.means(out) for one in written]
    if any(m is None for m in means):
        return False
    first, *others = [m for m in means if m is not None]
    tells, heads = TELLS * float(first.abs().max()), first.mean(-1)
    if tells == 0 or float((first - heads[..., None]).abs().max()) > tells:
        return False
    by_query, by_key, by_both = (_most(other.mean(-1) - heads) for other in others[:-1])
    moves = [torch.equal(m > tells, split.turned(role)) for m, role in ((by_query, "query"), (by_key, "key"))]
    turned = split.turned("query") & split.turned("key")
    meets = bool((by_both <= MEETS * torch.minimum(by_query, by_key))[turned].all())
    own, new = (one.weights[out].flatten() for one in (written[0], written[-1]))
    if len(own) == heads.flatten(0, -2).shape[0]:
        shares = heads.flatten(0, -2) / own[:, None], others[-1].mean(-1).flatten(0, -2) / new[:, None]
        if bool((_most(shares[1] - shares[0]) <= TELLS * float(shares[0].abs().max())).all()):
            return False
    return all(moves) and meets


def _most(values: Tensor) -> Tensor:
    """The largest size over all tokens, by head."""
    return values.abs().flatten(0, -2).amax(0)
