"""Groups as plain text: `Pi_1 = rho U D / mu`. Escaping for pages and pictures: `reports`, `plots.style`."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from isthmus.tasks.names import shown

DIGITS = 3  # of exponents before rounding
HELD = 1e-9  # off a whole exponent, by rounding alone
_PLAIN = re.compile(r"[^\W\d]\w{0,59}")


def group_in_words(group: Mapping[str, int | Fraction]) -> str:
    """A product of powers: `rho U D / mu`, `y^2 U / (nu x)`, `T (g / l)^(1/2)`; 1 where no column takes part.

    Whole powers stand first, then roots, those of one degree under one; a division reaches up to the end of the
    parenthesis, or of the text. Names that are no words stand in double quotes.

    Args:
        group: column -> exponent, in the order in which columns are written.
    """
    exponents = {name: Fraction(exponent) for name, exponent in group.items() if exponent}
    whole = {name: exponent for name, exponent in exponents.items() if exponent.denominator == 1}
    degrees = sorted({exponent.denominator for exponent in exponents.values()} - {1})
    above = [_power(name, exponent) for name, exponent in whole.items() if exponent > 0]
    below = [_power(name, -exponent) for name, exponent in whole.items() if exponent < 0]
    for degree in degrees:
        rooted = {name: entry for name, entry in exponents.items() if entry.denominator == degree}
        above += [_root(rooted, degree)]
    return _ratio(above, below)


def _root(rooted: Mapping[str, Fraction], degree: int) -> str:
    """`D^(3/2)`, `(g / l)^(1/2)`."""
    if len(rooted) == 1:
        name, exponent = next(iter(rooted.items()))
        return f"{named(name)}^({exponent})"
    return f"({group_in_words({name: exponent * degree for name, exponent in rooted.items()})})^(1/{degree})"


def _ratio(above: Sequence[str], below: Sequence[str]) -> str:
    over = " ".join(above) or "1"
    if not below:
        return over
    return f"{over} / {below[0]}" if len(below) == 1 else f"{over} / ({' '.join(below)})"


def _power(name: str, exponent: Fraction) -> str:
    return named(name) if exponent == 1 else f"{named(name)}^{exponent}"


def named(column: str) -> str:
    """The name of a column as one word of a formula: in double quotes where it is not a word, without line breaks."""
    if _PLAIN.fullmatch(column):
        return column
    return '"' + shown(column).replace('"', "'") + '"'


def groups_in_words(groups: Sequence[Mapping[str, int | Fraction]], *, symbol: str = "Pi") -> list[str]:
    """One line for each group: `Pi_1 = rho U D / mu`, `Pi_2 = k / D`."""
    return [f"{symbol}_{number} = {group_in_words(group)}" for number, group in enumerate(groups, start=1)]


def measured_in_words(columns: Sequence[str], measured: Iterable[float], *, digits: int = DIGITS) -> str:
    """Exponents before rounding: `rho^0.998 U D^1.01 mu^-0.997`; what rounds to 0 is left out, 1 is not written."""
    rounded = [round(float(exponent), digits) for exponent in measured]
    powers = [
        named(name) if exponent == 1 else f"{named(name)}^{exponent:g}"
        for name, exponent in zip(columns, rounded, strict=True)
        if exponent
    ]
    return " ".join(powers) or "1"


def before_rounding(
    group: Mapping[str, int | Fraction],
    columns: Sequence[str],
    measured: Sequence[float],
    interval: tuple[Sequence[float], Sequence[float]] | None = None,
) -> str:
    """What was measured of a group, for a parenthesis: `before rounding y U^0.499 nu^-0.5, +- 0.004`.

    Exponents that round to those of the group are not written again; of a group whose exponents are all held, since
    groups are determined up to powers and products only, there is nothing to say.

    Args:
        group: column -> exponent.
        columns: the inputs, in the order of what follows.
        measured: their exponents before rounding, those at the pivots held.
        interval: the least and the largest of each exponent over resamples.
    """
    reach = 0.0
    if interval is not None:
        gaps = [max(high - m, m - low) for m, low, high in zip(measured, *interval, strict=True)]
        reach = max([gap for gap in gaps if math.isfinite(gap)], default=0.0)
    within = f", +- {reach:.2g}" if reach >= 10.0**-DIGITS else ""
    wanted = [float(group.get(name, 0)) for name in columns]
    off = max((abs(was - is_) for was, is_ in zip(measured, wanted, strict=True)), default=0.0)
    if off < 10.0**-DIGITS / 2:
        return f"the same before rounding{within}" if within or off > HELD else ""
    return f"before rounding {measured_in_words(columns, measured)}{within}"


def made_dimensionless(target: str, columns: Sequence[str], exponents: Sequence[Fraction]) -> str:
    """The target over the powers of the inputs that have its unit: `F / (rho U^2 D^2)`.

    Args:
        target: the column that is predicted.
        columns: the inputs.
        exponents: of `dimensional_analysis.target_exponents`.
    """
    powers = {name: -exponent for name, exponent in zip(columns, exponents, strict=True)}
    return group_in_words({target: Fraction(1), **powers})
