"""How sure a discovery is, in sentences: its odds, what comes back on other rows, what was done, what is proved.

The other sentences, and their order: `verdict`.
"""

from isthmus.discovery import Discovery
from isthmus.discovery.halves import RANK_KINDS
from isthmus.discovery.remedies.every_row import EveryRowHeldOut
from isthmus.discovery.remedies.remedy import Effort
from isthmus.discovery.remedies.training import OneFewer
from isthmus.reports.words import percent
from isthmus.theory import RankEstimate, Verdict

LEFT_IN_DOUBT = {Verdict.DOUBTFUL, Verdict.NO_SHARP_RANK}  # which more work may settle
_MOST_SHARES = 8  # ranks whose accuracy is told in words; `Discovery.scree` has all


def counted_ones(found: Discovery, count: int) -> str:
    """So many of what its rank counts, in words."""
    return RANK_KINDS[found.kind].counted(count)


def probability_sentence(found: Discovery) -> str:
    """How often such an answer was right on tasks of known rank."""
    known, share, ranks = found.calibration, found.probability, found.rank_set
    if known is None or share is None or not ranks:
        is_of_classes = found.task == "classification" and found.rank > 0
        return "of classes too few such tasks of known rank were measured to tell one" if is_of_classes else ""
    told = f"{percent(share)} that this is right, by {known.tasks} tasks of known rank (estimate)"
    low, high = ranks[0], ranks[-1]
    if low <= 1 < high == found.most_rank:
        return f"{told}; a set that holds the truth in 95 of 100 such tasks can leave no rank out."
    among = f"{low}" if low == high else f"among {low} to {high}"
    return f"{told}; in 95 of 100 such tasks the truth was {among}."


def accuracy_sentence(found: Discovery) -> str:
    """How many held-out classes are right through 1, 2, ... dimensions, up to the rank of the last change."""
    if "heldout_accuracy" not in found.scree or not found.scree.sizes["rank"]:
        return ""
    ranks, shares = found.scree["rank"].values.tolist(), found.scree["heldout_accuracy"].values.tolist()
    last = max((i for i in range(1, len(shares)) if shares[i] != shares[i - 1]), default=0)
    shown = min(last, _MOST_SHARES - 1) + 1
    first = f"{percent(shares[0])} of the held-out classes are right through {counted_ones(found, ranks[0])}"
    return ", ".join([first, *(f"{percent(shares[i])} through {ranks[i]}" for i in range(1, shown))])


def sureness(found: Discovery) -> str:
    """The verdict in words; what is sure for another reason than that the readings agree says no more than that."""
    if not found.runs.sizes.get("run") and found.rank == 0:
        return "confident: nothing varies that could be predicted"
    if found.verdict is Verdict.CONFIDENT and "linear_error_of_all" in found.readings:
        return "confident: linear maps tell each row from the others as well as networks do, and agree on the rank"
    read = {found.readings.get(f"{name}_rank", found.rank) for name in ("objective", "scree", "jacobian")}
    is_other = found.verdict is Verdict.CONFIDENT and read != {found.rank}
    return "confident, though not all readings agree: see why" if is_other else found.verdict.value


def accuracy_rank_sentence(found: Discovery) -> str:
    """Through how many dimensions as many classes are right as through any; another question than the rank."""
    rank, low, high = (found.readings.get(f"accuracy_rank{end}") for end in ("", "_low", "_high"))
    if rank is None or low is None or high is None or "fold_accuracy" not in found.scree:
        return ""
    rank, low, high = int(rank), int(low), int(high)
    between = f"{low}" if low == high else f"{low} to {high}"
    told = ""
    if rank in found.scree["rank"].values:
        share, error = (float(found.scree[name].sel(rank=rank)) for name in ("fold_accuracy", "fold_accuracy_error"))
        told = f": {share:.1%} +- {error:.1%}"
        if rank - 1 in found.scree["rank"].values:
            told += f", {float(found.scree['fold_accuracy'].sel(rank=rank - 1)):.1%} through one fewer"
    return (
        f"through {counted_ones(found, rank)} as many classes are right as through any, within a standard error{told}. "
        f"Each row was predicted by networks that were trained without it ({between} on 95 % of resampled rows). Few "
        "rows ask for more dimensions: this is about the prediction, the number above about the task."
    )


def stability_sentence(found: Discovery) -> str:
    """How often the rank comes back on resampled held-out rows and over the starts."""
    rows, starts = found.readings.get("resample_share"), found.readings.get("start_share")
    if rows is None or starts is None or found.rank < 1:
        return ""
    read = RANK_KINDS[found.kind].held_out_reads.format(found.rank)
    # what all rows read, where each was held out, stands among the doubts: these are those of the first split alone
    is_first = any(one["name"] == EveryRowHeldOut.name for one in found.remedies)
    which = "the rows that were held out first" if is_first else "the held-out rows"
    return (
        f"{'of the networks beside the linear map, ' if found.is_linear else ''}"
        f"the held-out error {read} in {percent(rows)} of the resamples of {which}, and "
        f"{percent(starts)} of the starts keep as many before any number is imposed."
    )


def remedies_sentence(found: Discovery) -> str:
    """What was done about doubts, in one sentence; that nothing was, where quick effort left the answer in doubt."""
    if not found.remedies:
        is_left = found.settings.get("effort") == Effort.QUICK.value and found.verdict in LEFT_IN_DOUBT
        return "quick effort works on none of them; the default effort does" if is_left and found.rank else ""
    parts = list[str]()
    for one in found.remedies:
        verdict = Verdict[str(one["verdict"])].value.partition(":")[0]
        parts.append(f"{one['words']} ({one['rank']}, {verdict})")
    was = "sure, and held against one dimension fewer" if found.remedies[0]["name"] == OneFewer.name else "in doubt"
    return f"the first answer was {was}, so the search {'; then '.join(parts)}."


def interval_sentence(estimate: RankEstimate) -> str:
    """What is proved of the network that was found."""
    lower = f"at least {estimate.lower} ({estimate.lower_reason})"
    return f"for the network found: {lower}, at most {estimate.upper} ({estimate.upper_reason})."
