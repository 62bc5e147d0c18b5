"""What a discovery or a diagnosis says, in words that a scientist understands: pure functions to sentences.

The command line prints these sentences and the page shows them; how the verdict is reached: `discovery`; how sure it
is, in words: `sureness_words`.
"""

import math
from collections.abc import Mapping, Sequence

import xarray as xr
from numpy.typing import ArrayLike

from isthmus.diagnostics import Diagnosis
from isthmus.discovery import Discovery
from isthmus.discovery.data.scaling import HELD, Scaling
from isthmus.discovery.evidence.straight_halves import straight_halves
from isthmus.discovery.findings import CUT_SHORT
from isthmus.discovery.groups.group_words import before_rounding, groups_in_words
from isthmus.discovery.halves import INDEX, RANK, RANK_KINDS
from isthmus.networks import FullyConnected
from isthmus.reports.depth_words import depth_sentence
from isthmus.reports.diagnosis_verdict import verdict_of_diagnosis
from isthmus.reports.steepest_words import has_steepest, steepest_line
from isthmus.reports.straight_words import short_line
from isthmus.reports.sureness_words import (
    accuracy_rank_sentence,
    accuracy_sentence,
    counted_ones,
    interval_sentence,
    probability_sentence,
    remedies_sentence,
    stability_sentence,
    sureness,
)
from isthmus.reports.words import Line, VerdictText, dimensions, percent, sentence
from isthmus.theory import Verdict
from isthmus.theory.linear_costs import least_kept_variance

ENDS = ("measured", "low", "high")  # of an exponent
_SAME = 1.02
_NO_RATIO = 1e4  # from here on hardly anything is lost through the rank, and what is lost through one fewer is said
_OF_TARGETS = {"index": "combinations of the inputs", "rank": "curved coordinates", "mode": "modes of the outputs"}
LIKELY = 0.5  # probability from which an answer is called probable
FAR = 1e-3  # relative stationarity beyond which energies are rough


def verdict_of(result: Discovery | Diagnosis, x: ArrayLike | None = None, y: ArrayLike | None = None) -> VerdictText:
    """The verdict of a discovery or a diagnosis in words.

    Where rows are known, combinations and modes are those of standardised columns.

    Args:
        result: what `discover` or `diagnose` returned.
        x: samples of a discovery in the user's units.
        y: their targets.
    """
    if isinstance(result, Discovery):
        return _verdict_of_discovery(result, [half for _, half in straight_halves(result, x, y)])
    return verdict_of_diagnosis(result)


def _verdict_of_discovery(found: Discovery, halves: Sequence[xr.Dataset]) -> VerdictText:
    lines = [Line("How sure", sureness(found)), Line("Why", " ".join(found.reasons))]
    if found.verdict not in {Verdict.NO_SHARP_RANK, Verdict.TOO_FEW_DATA}:  # of tasks that have a rank and showed it
        lines.append(Line("Probability", probability_sentence(found)))
    lines.append(Line("Ranks", ranks_sentence(found)))
    lines += map(short_line, halves)
    lines += [steepest_line(half) for half in halves if has_steepest(half)]
    lines.append(Line("Limit", _limit(found)))
    lines.append(Line("Groups", _groups(found)))
    lines.append(Line("Error", _error(found)))
    lines.append(Line("Scaling", _scaling(found)))
    lines.append(Line("Rows", _rows(found)))
    lines.append(Line("Accuracy", accuracy_sentence(found)))
    lines.append(Line("For accuracy", accuracy_rank_sentence(found)))
    lines.append(Line("One fewer", _one_fewer(found)))
    lines.append(Line("How stable", stability_sentence(found)))
    lines.append(Line("PCA" if found.task == "autoencoding" else "Linear maps", _linear(found)))
    lines.append(Line("Energies", energies_of(found.readings)))
    lines.append(Line("Proved", interval_sentence(found.interval)))
    if found.depth_path is not None:
        lines.append(Line("Depth", depth_sentence(found.depth_path)))
    lines.append(Line("Doubts", remedies_sentence(found)))
    if found.control is not None:
        lines.append(Line("Control", _control(found.control)))
    return VerdictText(_headline(found), tuple(Line(line.label, sentence(line.text)) for line in lines if line.text))


def _headline(found: Discovery) -> str:
    kind = RANK_KINDS[found.kind]
    if found.verdict is Verdict.TOO_FEW_DATA:
        return f"Too few data: no {kind.noun} was found that helps on held-out rows; give more of them."
    if found.verdict is Verdict.NO_SHARP_RANK:
        return f"No sharp rank: no number of {kind.noun}s stands out (best single reading: {found.rank})."
    if found.verdict is Verdict.DOUBTFUL and found.rank == 0:
        if bend := int(found.readings.get("scree_rank") or 0):
            through = counted_ones(found, bend)
            return (
                f"Probably no {kind.noun}, but this is doubtful: held-out data are predicted better through {through}."
            )
        return f"No {kind.noun} was found to help on held-out data, but this is doubtful."
    if found.rank == 0:
        return f"{counted_ones(found, 0)}: the targets do not depend on the inputs."
    counted = counted_ones(found, found.rank)
    if found.verdict is not Verdict.DOUBTFUL:
        return f"This task needs {counted}."
    if "others_lost" in found.readings:
        return f"{counted} for the few rows that hold most of what varies, but the others may need more."
    if CUT_SHORT in found.warnings:
        return f"So far {counted}, but this is doubtful: the time was over before the search was."
    is_likely = found.probability is None or found.probability >= LIKELY
    return f"{'Probably' if is_likely else 'Perhaps'} {counted}, but this is doubtful."


def ranks_sentence(found: Discovery) -> str:
    """The ranks of a task in one sentence; nothing where only one was asked for."""
    if not found.others:
        return ""
    ranks, everything = found.ranks, {found.kind: found, **found.others}
    known = {kind: one for kind, one in everything.items() if one.is_counted}
    parts = [f"depend on {RANK_KINDS['index'].counted(ranks['index'])}"] if "index" in known else []
    if "rank" in known:
        curved = "" if known["rank"].is_linear else "curved "
        parts.append(f"act through {ranks['rank']} {curved}{'coordinate' if ranks['rank'] == 1 else 'coordinates'}")
    if "mode" in known:
        parts.append(f"move in {RANK_KINDS['mode'].counted(ranks['mode'])}")
    unsure = [RANK_KINDS[kind].title for kind, one in known.items() if one.verdict is not Verdict.CONFIDENT]
    doubt = f" (not sure: {', '.join(unsure)})" if unsure else ""
    told = [f"the targets {', '.join(parts)}{doubt}."] if parts else []
    lost = [many for kind, many in _OF_TARGETS.items() if kind in everything and kind not in known]
    if lost:
        each = f"{', '.join(lost[:-1])} and {lost[-1]}" if lost[1:] else lost[0]
        told.append(
            f"{each[0].upper()}{each[1:]} could not be counted: no network through them predicts held-out data."
        )
    return " ".join(told)


def _limit(found: Discovery) -> str:
    """What no data could have changed: a map to so many targets has no larger rank."""
    count = len(found.target_names)
    if found.kind == INDEX.name and count - (found.task == "classification") == 1:
        what = "one target" if found.task == "regression" else "two classes"
        if parts := found.loss.words.parts:
            most = f"the rank of its {parts} is at most {found.loss.per_target} by construction"
            return f"{what}: {most}, so the combinations of the inputs that these depend on were counted."
        return f"{what}: its rank is 1 by construction, so the combinations of the inputs it depends on were counted."
    if found.kind != RANK.name:
        return ""
    if found.task != "regression" or not 0 < count * found.loss.per_target == found.rank:
        return ""
    targets = "the one target that was given" if count == 1 else f"the {count} targets that were given"
    return (
        f"the rank cannot exceed the number of {_outputs(found)}, so {targets} could not show more than "
        f"{dimensions(found.rank)}, however many combinations of the inputs "
        f"{'it depends' if count == 1 else 'they depend'} on."
    )


def _outputs(found: Discovery) -> str:
    """What there are as many of as the rank may be."""
    parts = found.loss.words.parts
    return f"outputs, {parts} of each target" if parts else "targets"


def _groups(found: Discovery) -> str:
    """The products of powers that the combinations of logarithms are, with their exponents before rounding."""
    table = found.combinations
    if not found.groups or table is None:
        return ""
    parts = list[str]()
    for row, words in enumerate(groups_in_words(found.groups)):
        of = {end: table[f"exponent_{end}"].values[row].tolist() for end in ENDS if f"exponent_{end}" in table}
        interval = (of["low"], of["high"]) if len(of) == len(ENDS) else None
        was = before_rounding(found.groups[row], found.input_names, of["measured"], interval)
        parts.append(f"{words} ({was})" if was else words)
    return f"{'; '.join(parts)}. Groups are found up to powers and products of each other."


def _error(found: Discovery) -> str:
    if found.rank not in found.scree["rank"].values:
        return ""
    error = found.heldout_error
    if not math.isfinite(error):
        return ""
    text = f"through {counted_ones(found, found.rank)}, {percent(error)} of {found.loss.words.left} on held-out data"
    if found.kind == RANK.name:
        return f"{text}{_too_weak(found, error)}."
    if found.kind != INDEX.name or not found.loss.is_quadratic or not 0 < error < 1:
        return f"{text}."
    # E |y - f|^2 >= E Var(y | A x) for every f, so that more combinations cannot save more than all of the error
    return f"{text}; no other combination of the inputs does more than that, and some that do less may be missing."


def _scaling(found: Discovery) -> str:
    """By which units columns count: of data that are autoencoded, else where it is not the usual one."""
    one_scale, columns = found.settings.get("scaling") == Scaling.GLOBAL.value, len(found.target_names)
    if columns < 2 or not found.loss.standardised:
        return ""
    if not one_scale:
        alike = "each column was given variance 1, so that all count alike"
        return f"{alike}, however little one varies." if found.task == "autoencoding" else ""
    what, text = ("columns" if found.task == "autoencoding" else "targets"), ""
    if holding := found.readings.get("columns_holding"):
        text = f": {int(holding):,} of {columns:,} hold {percent(HELD)} of the variance, the others hardly count"
    return f"all {what} were divided by one number, so that those count that vary most{text}."


def _too_weak(found: Discovery, error: float) -> str:
    """What is not counted however surely it is there: a dimension that costs more than it saves of what is missed."""
    if not found.loss.is_quadratic or found.is_linear or not isinstance(found.network, FullyConnected):
        return ""
    ridge = float(found.readings.get("ridge") or 0.0)
    columns = found.encoder.dimensions[0] if found.task == "autoencoding" else None
    least = least_kept_variance(ridge, found.network.depth, columns=columns)
    if not 0 < least < 2 * error:
        return ""
    what = f"a further dimension that saves less than about {percent(least)}"
    return f"; {what} would cost more than that at ridge {ridge:g}"


def _rows(found: Discovery) -> str:
    """How many rows were searched, and what the others say, where they were too many."""
    searched, left = found.settings.get("rows"), found.settings.get("unseen_rows")
    error = found.readings.get("unseen_error")
    if not isinstance(searched, int) or not isinstance(left, int) or error is None:
        return ""
    in_all = found.settings.get("rows_in_all", searched + left)
    others = f"{left:,} of the others, between held-out ones" if found.settings.get("ordered") else "the others"
    return (
        f"{searched:,} of {in_all:,} were searched; on {others}, on which nothing was fitted or chosen, "
        f"the error is {percent(error)}."
    )


def _one_fewer(found: Discovery) -> str:
    ratio = found.readings.get("one_fewer")
    if ratio is None or not math.isfinite(ratio) or found.rank < 1:
        return ""
    fewer = counted_ones(found, found.rank - 1) if found.rank > 1 else "none"
    if ratio < _SAME:
        return f"with {fewer} the error is not larger."
    if ratio > _NO_RATIO:
        return f"with {fewer} {percent(ratio * found.heldout_error)} of {found.loss.words.left}."
    return f"with {fewer} the error is {_times(ratio)} as large."


def _linear(found: Discovery) -> str:
    if "linear_rank" not in found.readings:
        return ""
    words = found.loss.words
    name = words.autoencoder if found.task == "autoencoding" else words.linear
    needed = found.readings["linear_rank"]
    if found.is_linear:
        return f"{name} does as well as networks through {counted_ones(found, found.rank)}, and is what is returned."
    if needed is None:
        most = counted_ones(found, int(found.scree["rank"].max()))
        return f"{name} does not reach this error with any rank tried, up to {most}."
    return f"{name} needs {counted_ones(found, int(needed))} for the same error."


def energies_of(readings: Mapping[str, float | int | None]) -> str:
    """What the energies of a leaky network say, in one sentence; nothing for other networks."""
    below, above = readings.get("hamiltonian_rank"), readings.get("identity_rank")
    if above is None:
        return ""
    text = f"the cost of identity of the leaky network is at least {above:.2f}"
    if below is None:
        return f"{text}."
    far = readings.get("leaky_stationarity") or 0.0
    text = (
        f"at effective depth {readings['effective_depth']:g} the Hamiltonian of the leaky network stands for "
        f"{below:.2f} dimensions and its least cost of identity is {above:.2f}; both close in on the rank with depth"
    )
    return f"{text}." if far <= FAR else f"{text} (read off the critical point, relative stationarity {far:.2g})."


def _control(control: Discovery) -> str:
    words = {
        Verdict.NO_SHARP_RANK: f"no sharp rank (best single reading: {control.rank}), as it should be",
        Verdict.DOUBTFUL: f"a doubtful {control.rank}",
        Verdict.TOO_FEW_DATA: "nothing, as it should be",
        Verdict.CONFIDENT: f"a confident {control.rank}, so the rank above may come from the covariance alone",
    }
    return f"random data of the same covariance, through the same steps, give {words[control.verdict]}."


def verdict_of_control(control: Discovery) -> VerdictText:
    """What the search reads on data made to have nothing to find: no claim about a task, no probability, no bounds."""
    evidence = {"How sure", "Why", "Error", "One fewer", "How stable"}
    lines = tuple(line for line in _verdict_of_discovery(control, []).lines if line.label in evidence)
    return VerdictText(sentence(_control(control)), lines)


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 10 else f"{ratio:.0f} times"
