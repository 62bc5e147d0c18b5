"""The directions in which a map changes most, in words and as a table, and where they are not those that lose least.

The numbers: `discovery.combinations`. Combinations themselves: `straight_words`.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from isthmus.discovery.evidence.straight_terms import in_words, terms_of
from isthmus.reports.tables import TableText
from isthmus.reports.words import Line, percent

TERMS, SHORT_TERMS, SHORT_NAME = 8, 4, 28
APART = np.radians(20.0)  # from which spans are said to differ, if that is also
BEYOND = 2.0  # times as far as resamples go


def has_steepest(half: xr.Dataset) -> bool:
    """Whether there are several directions, of which a search recorded the slopes."""
    return "gradient_direction" in half and half.sizes["leading"] > 1


def steepest_table(half: xr.Dataset) -> TableText:
    """One row for each direction, the steepest first."""
    terms, rows = terms_of(half), half["gradient_direction"].values
    columns: dict[str, list[str]] = {
        "direction": [str(i) for i in range(1, len(rows) + 1)],
        "share of the squared slopes": [f"{100 * share:.3g} %" for share in half["gradient_share"].values],
    }
    if "gradient_angle" in half:
        columns["the first so many uncertain by"] = [f"{np.degrees(a):.2g}°" for a in half["gradient_angle"].values]
    words = (0, len(columns))
    columns["in standardised columns"] = [in_words(terms, row, most=TERMS) for row in rows]
    return TableText(tuple(columns), tuple(zip(*columns.values(), strict=True)), words)


def steepest_notes(half: xr.Dataset) -> tuple[str, ...]:
    """What the directions are, and how they differ from the combinations through which least is lost."""
    return (
        "The same span in another order: along the first direction the output changes most, then along the second, "
        "each at right angles to those before (eigenvectors of the gradient covariance, the active subspace). Of "
        "directions with shares alike only the span is determined.",
        _against_least_loss(half),
    )


def steepest_line(half: xr.Dataset) -> Line:
    """The steepest direction and what the first few hold, for a terminal."""
    shares = half["gradient_share"].values
    terms = terms_of(half, most=SHORT_NAME)
    first = in_words(terms, half["gradient_direction"].values[0], most=SHORT_TERMS)
    sure = f" (uncertain by {np.degrees(half['gradient_angle'].values[0]):.2g}°)" if "gradient_angle" in half else ""
    sums = ", ".join(f"{percent(float(shares[:j].sum()))} along {j}" for j in _told(shares.tolist()))
    held = f"; {sums} directions" if sums else ""
    apart = f". {_against_least_loss(half)}" if _differing(half) else ""
    return Line("Slopes", f"{percent(float(shares[0]))} of the squared ones lie along {first}{sure}{held}{apart}")


def _told(shares: Sequence[float]) -> list[int]:
    """How many of the first are told of: up to where 99 % are held, at most 4."""
    held = np.cumsum(shares)
    return [j for j in range(2, min(len(shares), 4) + 1) if held[j - 2] < 0.99]


def _differing(half: xr.Dataset) -> dict[int, float]:
    """For how many first directions other ones lose least, and how far they stand apart."""
    apart = half["least_loss_angle"].values
    scatter = half["gradient_angle"].values if "gradient_angle" in half else np.zeros(len(apart))
    clear = np.nan_to_num(apart) > np.maximum(APART, BEYOND * scatter)
    return {j: float(apart[j - 1]) for j in range(1, len(apart)) if clear[j - 1]}


def _against_least_loss(half: xr.Dataset) -> str:
    """Whether fewer combinations alone would be the steepest ones."""
    if differing := _differing(half):
        listed = ", ".join(f"{np.degrees(angle):.0f}° from the first {j}" for j, angle in differing.items())
        return (
            "Steep is not what matters most here: through fewer combinations alone least is lost along others, "
            f"{listed}. What changes fast need not change much."
        )
    apart = half["least_loss_angle"].values[:-1]
    if np.isnan(apart).all():
        return ""
    if np.nanmax(apart) > APART:
        return "Whether they are those through which least is lost, these rows do not tell."
    return (
        "Through fewer combinations alone least is lost along nearly the same, at most "
        f"{np.degrees(np.nanmax(apart)):.2g}° from the steepest."
    )
