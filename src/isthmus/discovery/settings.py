"""Everything that fixes the result of a discovery besides the data: one frozen record, saved with the run."""

import dataclasses
from dataclasses import dataclass
from enum import StrEnum

from isthmus.discovery.halves import RANK, Half, RankKind, Side, rank_kind

SEEDS = 2**63  # that a generator takes
CONNECTED = "connected"  # the kind of network that is trained unless another is asked for


class StartKind(StrEnum):
    """Where the initial weights of a start come from."""

    LINEAR = "linear"
    RANDOM = "random"
    RAISED = "raised"  # another start, one rank added: never chosen, kept where that lowered the objective


def start_kinds(kind: RankKind, count: int | None) -> tuple[StartKind, ...]:
    """The starts at each ridge: as many as were asked for, or as are usual for this rank; none if fewer than one."""
    count = kind.usual_starts if count is None else count
    first = StartKind.LINEAR if kind.starts_linear else StartKind.RANDOM
    return (first, *[StartKind.RANDOM] * (count - 1)) if count > 0 else ()


@dataclass(frozen=True, slots=True)
class Settings:
    """Numbers of a discovery; the defaults were fixed on random teachers and on Kuramoto-Sivashinsky data.

    Attributes:
        seed: of the split, the starts and nothing else.
        ridges: coefficients of the penalty, largest first; each trained cold (continuation from a large ridge keeps the
            network at a clean but false rank). Training begins in the middle, so few of them are trained.
        starts: kinds of the starts at each ridge.
        relu_layers: ReLU layers before and after the middle.
        linear_layers: linear layers in the middle, the depth knob.
        width: of the ReLU layers.
        linear_width: of the linear layers, the largest rank that can be found. Where the objective reads it, it is
            widened, and the ReLU layers with it.
        widest: width of the linear layers that is not exceeded by widening.
        adam_steps: of a random start; a linear start takes a third of the rate, and twice as many but in residual
            networks.
        lbfgs_evaluations: gradient evaluations of L-BFGS in each start.
        polish_evaluations: gradient evaluations after each truncation.
        raise_evaluations: gradient evaluations after a rank was added to the best start.
        refine_evaluations: gradient evaluations of each point of the scree curve.
        refine_ridge: ridge at which the halves of the scree curve are refined, relative to the chosen one.
        patience: ridges on each side of the one with the least held-out error that are trained too, if there are any.
        heldout: share of rows held out.
        scaling: "column" or "global".
        ordered: whole blocks of rows are held out.
        network: name of a kind, see `kinds`.
        stream_layers: layers or blocks of a residual network, whose depth knob it is for "resnet".
        stream_width: of its stream, more where the data are wider.
        effective_depth: Lt, the depth knob of a leaky network.
        encoder_side, decoder_side: "curved", or "linear" for a half without ReLU layers.
    """

    seed: int = 0
    ridges: tuple[float, ...] = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4)
    starts: tuple[str, ...] = start_kinds(RANK, None)
    relu_layers: int = 3
    linear_layers: int = 4
    width: int = 64
    linear_width: int = 24
    widest: int = 96
    adam_steps: int = 200
    lbfgs_evaluations: int = 300
    polish_evaluations: int = 250
    raise_evaluations: int = 125
    refine_evaluations: int = 150
    refine_ridge: float = 0.1
    patience: int = 1
    heldout: float = 0.2
    scaling: str = "column"
    ordered: bool = False
    network: str = CONNECTED
    stream_layers: int = 16
    stream_width: int = 24
    effective_depth: float = 8.0
    encoder_side: str = Side.CURVED
    decoder_side: str = Side.CURVED

    def __post_init__(self) -> None:
        if not self.ridges or min(self.ridges) <= 0 or sorted(self.ridges, reverse=True) != list(self.ridges):
            raise ValueError(f"discover(ridge={self.ridges}): needs positive ridges, largest first.")
        if not self.starts:
            raise ValueError("discover(starts=0): needs at least one start.")
        if self.linear_layers < 1:
            curved = self.encoder.layers + self.decoder.layers
            raise ValueError(
                f"discover(depth={curved + self.linear_layers + 1}): needs at least {curved + 2}, so that there is at "
                f"least one linear middle layer between {curved} curved ones and the last."
            )
        if self.stream_layers < 2:
            raise ValueError(f"discover(depth={self.stream_layers}): needs at least 2 residual layers, for a middle.")
        if not 0 < self.heldout < 1:
            raise ValueError(f"discover: needs a held-out share between 0 and 1, got {self.heldout}.")

    @property
    def encoder(self) -> Half:
        """What lies before the linear layers."""
        return self._half(self.encoder_side)

    @property
    def decoder(self) -> Half:
        """What lies behind them."""
        return self._half(self.decoder_side)

    def _half(self, side: str) -> Half:
        return Half(0 if side == Side.LINEAR else self.relu_layers, self.width)

    @property
    def rank_kind(self) -> RankKind:
        """Which rank is asked for."""
        return rank_kind(self.encoder_side, self.decoder_side)

    @property
    def depth(self) -> int:
        """Number of weight matrices of the network."""
        return self.encoder.layers + self.linear_layers + self.decoder.layers + 1

    @property
    def start_evaluations(self) -> int:
        """Gradient evaluations of a linear start, which takes most."""
        return self.linear_steps + self.lbfgs_evaluations

    @property
    def linear_steps(self) -> int:
        """Steps of Adam of a linear start."""
        return self.adam_steps * (2 if self.network == CONNECTED else 1)

    @property
    def handed_evaluations(self) -> int:
        """Those of L-BFGS of a start that goes on from a warm-up: trying a rank more polishes it further."""
        return 2 * self.lbfgs_evaluations // 3

    @property
    def descent_steps(self) -> int:
        """Steps of Adam after a rank was taken away in a depth path."""
        return 5 * self.adam_steps // 2

    @property
    def descent_evaluations(self) -> int:
        """Gradient evaluations of L-BFGS after them: data in sheets are unrolled late in training."""
        return 5 * self.lbfgs_evaluations

    def seed_of(self, number: int) -> int:
        """That of what is drawn as number `number`, from 0 to 999, of its kind."""
        return (1000 * self.seed + number) % SEEDS

    def wider(self, most: int) -> "Settings":
        """A middle at least twice as wide; at once for rank `most` if that is up to three times.

        The ReLU layers grow by two neurons a dimension, which carry it, one for each sign; those that bend stay.
        """
        wanted = most if most <= 3 * self.linear_width else 2 * self.linear_width
        linear_width = min(wanted, self.widest)
        width = self.width + 2 * (linear_width - self.linear_width)
        return dataclasses.replace(self, linear_width=linear_width, width=width)

    def longer(self, times: int) -> "Settings":
        """So many times the evaluations of L-BFGS, half as many times those of a polish, which begins near its end."""
        polish, rise = (max(times // 2, 1) * n for n in (self.polish_evaluations, self.raise_evaluations))
        lbfgs = times * self.lbfgs_evaluations
        return dataclasses.replace(self, lbfgs_evaluations=lbfgs, polish_evaluations=polish, raise_evaluations=rise)

    def scaled_to(self, evaluations: int) -> "Settings":
        """The same proportions with at most `evaluations` gradient evaluations in each start."""
        share = min(evaluations / self.start_evaluations, 1.0)
        names = ("adam_steps", "lbfgs_evaluations", "polish_evaluations", "raise_evaluations", "refine_evaluations")
        return dataclasses.replace(self, **{name: max(int(share * getattr(self, name)), 1) for name in names})

    @property
    def stamp(self) -> str:
        """All of it as text, by which unfinished work knows its own: as it was before halves could be linear."""
        text = str(self)
        return text if self.rank_kind is not RANK else text.partition(", encoder_side=")[0] + ")"

    def as_dict(self) -> dict[str, object]:
        """Plain Python, for JSON."""
        return dataclasses.asdict(self)


def with_sides(settings: Settings, kind: RankKind, starts: int | None) -> Settings:
    """The settings for another rank, with as many starts as were asked for or as its networks usually have."""
    kinds = start_kinds(kind, starts)
    return dataclasses.replace(settings, encoder_side=kind.encoder, decoder_side=kind.decoder, starts=kinds)
