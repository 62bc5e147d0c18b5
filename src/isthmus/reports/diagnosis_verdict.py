"""What a diagnosis says, in words: the rank with its interval, and what the layers have to say about it.

The page and the command line show these sentences. Those of a discovery: `verdict`.
"""

import numpy as np
import xarray as xr

from isthmus.diagnostics import Diagnosis
from isthmus.reports.words import Line, VerdictText, dimensions, numbered, percent, sentence
from isthmus.tasks.arrays import counted
from isthmus.theory import RankEstimate

NEAR_IDENTITY = 0.1
ALL_OUTPUTS = "number of outputs"
# bounds that are no place inside the network, and how it is said that a number is one
SIZES = {ALL_OUTPUTS: "as many as it has outputs", "number of inputs": "as many as it has inputs"}
NOWHERE = "No narrow place: "
ONE_OUTPUT_LOSES = (0.01, 0.05, 0.1)  # of its spread, the first of these at which the rows tell what it needs
MUCH_LOST = 0.1  # of the output's spread: through a rank that loses more the network does not work


def verdict_of_diagnosis(found: Diagnosis) -> VerdictText:
    """The rank of a network and its evidence, as a headline and labelled sentences."""
    rank = found.rank
    texts = {
        "Interval": _interval(rank),
        "Cuts": _cuts(found),
        "Jacobian": _jacobian(rank),
        "Layers": _layers(found),
        "Agreement": _agreement(found),
        "Near identity": _near_identity(found),
        "Loss": _loss(found),
        "Hamiltonian": _hamiltonian(found),
    }
    lines = tuple(Line(label, sentence(text)) for label, text in texts.items() if text)
    return VerdictText(_headline(found), lines)


def _headline(found: Diagnosis) -> str:
    """The rank with what a cut there loses; without a rank that of the cuts, beside what the readings suggest."""
    rank, cuts = found.rank, found.cuts
    if _has_one_output(rank):
        return _of_one_output(found)
    said, k = _suggested(rank, is_cut=cuts is not None), _number(found)
    if cuts is None or k is None:
        here = _of_cuts(found) if cuts is not None else None
        return _lost_sentence(*here) if here else said
    lost = _lost_through(k, cuts)
    told = bool(np.isfinite(lost).any())
    least = float(np.nanmin(lost)) if told else np.nan
    if rank.estimate is not None and told and least <= MUCH_LOST:
        inside = [share for i, share in enumerate(lost) if share <= MUCH_LOST and _is_narrow(found, i, k)]
        if _is_all(rank) and not inside:
            return said
        said = said.removeprefix(NOWHERE).rstrip(".") if inside else said.rstrip(".")
        ending = "" if inside else f", where {counted(int(cuts['width'][int(np.nanargmin(lost))]), 'number')} pass"
        lost_there = f"{_percent(min(inside, default=least))} of the output is lost there{ending}."
        return f"{said[:1].upper()}{said[1:]}: {lost_there}"
    suggested = f"{dimensions(k)}, {SIZES[rank.upper_reason] if _is_size(rank, k) else 'which its readings suggest'},"
    through = f"through {suggested} {_percent(least)}"
    if here := _of_cuts(found):
        if here[0] == k:
            elsewhere = f"; behind another layer {_percent(least)} is" if told and least < here[1] else ""
            return f"Through {suggested} {_percent(here[1])} of the output is lost{elsewhere}."
        sentence = _lost_sentence(*here)
        return f"{sentence.rstrip('.')}; {through} is." if told else sentence
    return f"No narrow place: {through} of the output is lost." if told else said


def _number(found: Diagnosis) -> int | None:
    """The rank, or what the readings suggested before a cut judged it; None without either."""
    if found.rank.estimate is not None or found.cuts is None:
        return found.rank.estimate
    suggested = found.cuts.attrs.get("suggested", np.nan)
    return None if np.isnan(suggested) else int(suggested)


def _lost_through(k: int, cuts: xr.Dataset) -> np.ndarray:
    """What is lost behind every layer that was cut through so many dimensions, NaN where nobody has tried."""
    is_suggested = cuts.attrs.get("suggested", k) == k
    lost = cuts["lost_at_suggested"].values if is_suggested else np.full(cuts.sizes["place"], np.nan)
    return np.where(cuts["stands"].values == k, cuts["lost"].sel(loss=0.01).values, lost) if "stands" in cuts else lost


def _suggested(rank: RankEstimate, *, is_cut: bool) -> str:
    """What is known of the rank, without what a cut there loses."""
    sure = "works" if rank.lower == rank.upper else "seems to work"
    if rank.is_at_least:
        return f"The network {sure} through {dimensions(rank.lower)} or more."
    if rank.estimate is None:
        is_nowhere = is_cut and rank.upper_reason in SIZES
        what = "No narrow place" if is_nowhere else "No number of dimensions stands out"
        return f"{what}: {rank.missing}; at most {rank.upper:,}, {rank.upper_reason}."
    if _is_all(rank):
        return f"{NOWHERE}the network {sure} through {dimensions(rank.estimate)}, {SIZES[ALL_OUTPUTS]}."
    return f"The network {sure} through {dimensions(rank.estimate)}."


def _of_one_output(found: Diagnosis) -> str:
    """What the one output needs inside the network: it is one dimension itself."""
    nothing = (
        "The network has one output, so it works through 1 dimension at most; no cut inside has judged what that needs."
    )
    inside = _inside(found)
    if inside is None:
        return nothing
    for loss in ONE_OUTPUT_LOSES:
        ranks, lost = (inside[name].sel(loss=loss).values for name in ("rank", "lost"))
        if np.isfinite(ranks).any():
            place = int(np.nanargmin(ranks))
            behind = f"behind layer {int(inside['layer'][place])}, the narrowest place that was cut"
            needed = f"The one output needs {dimensions(int(ranks[place]))} {behind}"
            return f"{needed}: {_percent(float(lost[place]))} of it is lost there."
    return (
        "The network has one output, so it works through 1 dimension at most; no cut inside has judged what that needs."
    )


def _inside(found: Diagnosis) -> xr.Dataset | None:
    """The cuts, but for that of a layer which is the one output; None without any."""
    if found.cuts is None:
        return None
    is_output = (found.cuts["width"].values == 1) & (found.cuts["layer"].values == found.layers.sizes["layer"])
    return found.cuts.isel(place=~is_output) if (~is_output).any() else None


def _has_one_output(rank: RankEstimate) -> bool:
    return rank.upper == 1 and rank.upper_reason == ALL_OUTPUTS


def _is_size(rank: RankEstimate, k: int) -> bool:
    return k == rank.upper and rank.upper_reason in SIZES


def _is_all(rank: RankEstimate) -> bool:
    return rank.estimate == rank.upper and rank.upper_reason == ALL_OUTPUTS


def _of_cuts(found: Diagnosis) -> tuple[int, float] | None:
    """The fewest dimensions through which a cut loses little, and the least that one does, where that is narrow."""
    rank, cuts = found.rank, found.cuts
    assert cuts is not None
    ranks = cuts["rank"].sel(loss=MUCH_LOST).values
    most = rank.upper if rank.upper_reason in SIZES else np.inf  # as many as go in or come out are no narrow place
    lost = cuts["lost"].sel(loss=MUCH_LOST).values
    narrow = [(int(k), float(lost[i])) for i, k in enumerate(ranks) if k < most and _is_narrow(found, i, int(k))]
    return min(narrow, default=None)


def _lost_sentence(k: int, share: float) -> str:
    return f"Through {dimensions(k)} {_percent(share)} of the output is lost."


def _is_narrow(found: Diagnosis, place: int, rank: int) -> bool:
    """Whether so few directions are a bottleneck: half of this layer's, or of the widest's, width."""
    assert found.cuts is not None
    width, layer = int(found.cuts["width"][place]), int(found.cuts["layer"][place])
    is_last = layer == found.layers.sizes["layer"]
    return rank <= width / 2 or (not is_last and rank <= width <= found.cuts.attrs["widest"] / 2)


def _percent(share: float) -> str:
    return "less than 0.01 %" if share < 1e-4 else percent(share)


def _cuts(found: Diagnosis) -> str:
    cuts = _inside(found) if _has_one_output(found.rank) else found.cuts
    if cuts is None:
        return ""
    ranks = cuts["rank"]
    least = [(float(loss), ranks.sel(loss=loss).min()) for loss in cuts["loss"].values]
    said = [f"{int(k)} at {100 * loss:g} % lost" for loss, k in least if not bool(k.isnull())]
    judged = f"on {cuts.attrs['judges']} rows that had no say{_not_tried(cuts.attrs['left_out'])}"
    if not said:
        return f"behind no layer do fewer directions than the rows can tell keep the output within 10 %, {judged}"
    return f"directions that the output needs behind the best layer: {', '.join(said)}, {judged}"


def _not_tried(names: list[str]) -> str:
    """Layers that a cut was too dear for, the first of them by name."""
    if not names:
        return ""
    others = f" and {counted(len(names) - 1, 'other')}" if len(names) > 1 else ""
    return f"; too wide to be cut: {names[0]}{others}"


def _interval(rank: RankEstimate) -> str:
    if "jacobian_gap" not in rank.evidence:
        return f"at most {rank.upper}: {rank.upper_reason}; {rank.lower_reason}"
    lower = f"at least {rank.lower}: {rank.lower_reason}, counting those above {rank.tolerance:.1g} of the largest"
    return f"{lower}; at most {rank.upper}: {rank.upper_reason}"


def _jacobian(rank: RankEstimate) -> str:
    if rank.is_at_least:
        return f"of many outputs, or of few rows, it cannot show more than {dimensions(rank.lower)}"
    if "jacobian_gap" not in rank.evidence:
        return ""
    gap = rank.evidence["jacobian_gap"]
    if gap is None:
        return "the median singular values of df/dx fall without a gap that stands out"
    return f"the median singular values of df/dx have their largest gap after {gap}"


def _layers(found: Diagnosis) -> str:
    gaps = _column(found, "dimension_activation")
    known = gaps[np.isfinite(gaps)]
    if not gaps.size:
        return ""
    if not known.size:
        return "the spectra of the centred activations fall without a gap: no number of directions stands out"
    least = int(known.min())
    where = numbered("layer", [int(i) + 1 for i in (gaps == least).nonzero()[0]])
    most = f", up to {int(known.max())} elsewhere" if known.max() > least else ""
    num = gaps.size - known.size
    without = f"; {num} {'has' if num == 1 else 'have'} none" if num else ""
    return f"the centred activations have their largest gap after {least} in {where} of {len(gaps)}{most}{without}"


def _agreement(found: Diagnosis) -> str:
    gaps, jacobian = _column(found, "dimension_activation"), found.rank.evidence.get("jacobian_gap")
    known = gaps[np.isfinite(gaps)]
    if not known.size or jacobian is None or found.rank.is_at_least:
        return ""
    least = int(known.min())
    if least == jacobian:
        return "the Jacobian and the narrowest layer give the same number"
    same = [int(i) + 1 for i in (gaps == int(str(jacobian))).nonzero()[0]]
    if same:  # a wide layer may have its largest gap behind a few strong directions, and use them all
        return f"the Jacobian and {numbered('layer', same)} give the same number"
    if least > int(str(jacobian)):
        return (
            "the layer with the fewest directions shows more than the Jacobian: a curved representation spans more "
            "directions than it has dimensions, and a Jacobian is that of one point"
        )
    where = numbered("layer", [int(i) + 1 for i in (gaps == least).nonzero()[0]])
    return (
        f"{where} may seem to have fewer directions than the Jacobian: the largest gap of a spectrum may stand before "
        "weaker directions that the output still uses, and rows may be tokens or pixels"
    )


def _near_identity(found: Diagnosis) -> str:
    defect, impact = _column(found, "identity_defect"), _column(found, "nonlinearity_impact")
    if not defect.size or defect.shape != impact.shape:
        return ""
    near = ((defect <= NEAR_IDENTITY) & (np.nan_to_num(impact) <= NEAR_IDENTITY)).nonzero()[0]
    if not len(near):
        return f"no layer is within {percent(NEAR_IDENTITY)} of an identity on what enters it"
    where = numbered("layer", [int(i) + 1 for i in near])
    verb = "only rotates" if len(near) == 1 else "only rotate"
    return f"{where} of {len(defect)} {verb} what enters, within {percent(NEAR_IDENTITY)}"


def _loss(found: Diagnosis) -> str:
    attributes = found.layers.attrs
    if "data_loss" not in attributes:
        return ""
    text = f"data loss {attributes['data_loss']:.4g} (per sample)"
    return text + (f", objective {attributes['objective']:.4g}" if "objective" in attributes else "")


def _hamiltonian(found: Diagnosis) -> str:
    values = _column(found, "hamiltonian")
    values = values[np.isfinite(values)]
    return f"between {values.min():.4g} and {values.max():.4g} over depth" if values.size else ""


def _column(found: Diagnosis, name: str) -> np.ndarray:
    return np.asarray(found.layers[name].values, dtype=np.float64) if name in found.layers else np.empty(0)
