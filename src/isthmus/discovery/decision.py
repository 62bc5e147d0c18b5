"""From the readings to a rank and a verdict with reasons: pure functions, no training.

Three readings of the rank (objective curve, scree curve, Jacobian gap) are compared with each other, along the ridge,
and with a linear baseline; what rows leave open: `row_doubts`. What all that means: docs/notes/decision.md.
"""

import math
from collections import Counter

from isthmus.discovery.choices import (
    AS_LINEAR,
    AS_READ,
    CLEAR_MARGIN,
    FEW_FOR_EACH,
    FEW_ROWS,
    FILLED,
    LOST_UNSEEN,
    MAPPED,
    NOTHING_LEFT,
    OUTVOTES,
    SHARP,
)
from isthmus.discovery.evidence.baseline import (
    curves_are_of_use,
    is_exactly_linear,
    linear_maps_do_as_well,
    linear_maps_tell,
    networks_come_near_linear,
)
from isthmus.discovery.findings import Decision, Readings
from isthmus.discovery.row_doubts import by_luck, hidden_by_noise, of_a_handful, unevenly_lost, unlearnt
from isthmus.tasks.arrays import counted
from isthmus.theory import Verdict


def decide(readings: Readings) -> Decision:
    """The rank that most readings give, or a clear held-out error where the objective is blunt; and how sure it is.

    Confident: the three readings agree, the objective rises sharply (`SHARP`) one rank below, the scree curve bends
    clearly, the reading is the same at neighbouring ridges, and the error is no worse than a linear map's of that rank.
    Too few data: nothing predicts held-out rows better than the mean, of so few rows (`FEW_ROWS`) that more may.
    No sharp rank: the reading moves between neighbouring ridges and is not sharp at either; or classes are read at
    ranks between which the minima that were found cannot tell. Else doubtful.
    Where linear maps that every row was held out of predict as well, theirs is the answer if networks leave a doubt.
    """
    decision = _by_networks(readings)
    if _answered_by_linear_maps(readings, decision):
        return _of_linear_maps(readings, decision)
    return _held_against_linear_maps(decision, readings) if _is_sure(decision) else decision


def _is_sure(decision: Decision) -> bool:
    return decision.verdict is Verdict.CONFIDENT


def _by_networks(readings: Readings) -> Decision:
    rank = _most_common(readings)
    shown = [] if is_exactly_linear(readings, rank) else [*_disagreements(readings, rank), *_weaknesses(readings, rank)]
    doubts = [*shown, *readings.complaints]
    if doubts and _has_too_few_rows(readings, rank):
        return Decision(rank, Verdict.TOO_FEW_DATA, tuple(doubts))
    if blurs := [*_moving(readings), *_blurred_classes(readings, rank)]:
        return Decision(rank, Verdict.NO_SHARP_RANK, (*blurs, *doubts))
    if doubts:
        return Decision(rank, Verdict.DOUBTFUL, tuple(doubts))
    return Decision(rank, Verdict.CONFIDENT, _agreement(readings, rank))


def told_by_linear_maps(readings: Readings) -> bool:
    """Whether the answer is theirs: networks leave a doubt, or are sure of another rank."""
    return _answered_by_linear_maps(readings, _by_networks(readings))


def _answered_by_linear_maps(readings: Readings, by_networks: Decision) -> bool:
    mapped = readings.mapped
    if mapped is None or not _is_sure(by_networks):
        return linear_maps_tell(readings)
    if mapped.rank == by_networks.rank or not mapped.is_clear:
        return False
    fewer = mapped.rank < by_networks.rank and linear_maps_do_as_well(readings)
    return fewer or linear_maps_tell(readings)


def _held_against_linear_maps(decision: Decision, readings: Readings) -> Decision:
    """A sure rank, in doubt where much is missed that linear maps through more dimensions miss as well.

    80 rows of 6 columns, two targets that are two combinations in noise, read 1, sure; .18 was missed.
    """
    mapped = readings.mapped
    if mapped is None or mapped.rank <= decision.rank or not linear_maps_do_as_well(readings):
        return decision
    if (missed := min(readings.heldout_error)) <= LOST_UNSEEN:
        return decision
    return decision.in_doubt(
        f"Linear maps through {counted(mapped.rank, readings.noun)} predict all rows as well, and {missed:.0%} of the "
        f"variance is missed: more rows would tell whether {decision.rank}, curved, would do."
    )


def _of_linear_maps(readings: Readings, by_networks: Decision) -> Decision:
    """What they read, in doubt where that is not clear, much is missed, or networks are sure of another rank.

    50 rows of 3 columns, one target of one combination in noise, read 3, sure.
    """
    mapped = readings.mapped
    assert mapped is not None  # they tell
    doubts: list[str] = []
    if _is_sure(by_networks):
        doubts.append(
            f"Networks read {by_networks.rank} without a doubt; linear maps, which predict as well, {mapped.rank} of "
            "all rows, each held out of them once: more rows would tell."
        )
    if not mapped.is_clear:
        counted_ones = f"{mapped.least} to {readings.kind.counted(mapped.most)}"
        doubts.append(
            f"Linear maps predict all rows about as well through {counted_ones}, within two standard errors or "
            f"{AS_LINEAR - 1:.0%} of what they miss: more rows may tell."
        )
    if mapped.error > MAPPED:
        doubts.append(
            f"Linear maps, which predict as well as networks, miss {mapped.error:.2g} of the variance: noise, or what "
            "is curved; more rows would tell."
        )
    if doubts := [*doubts, *readings.complaints]:
        return Decision(mapped.rank, Verdict.DOUBTFUL, tuple(doubts))
    text = (
        f"Linear maps through {counted(mapped.rank, readings.noun)} miss {mapped.error:.2g} of the variance of rows "
        "that were held out of them, each row once; through more they miss no less, through fewer clearly more, and "
        "networks do no better. The task is linear as far as these rows show, and that map is returned."
    )
    return Decision(mapped.rank, Verdict.CONFIDENT, (text,))


def _has_too_few_rows(readings: Readings, rank: int) -> bool:
    few = readings.rows is not None and readings.rows < max(FEW_ROWS, FEW_FOR_EACH * (readings.columns or 0))
    return few and (rank == 0 or readings.heldout_error[min(rank, len(readings.heldout_error) - 1)] >= 1)


def _most_common(readings: Readings) -> int:
    scree, objective, best = readings.scree, readings.objective, readings.objectives
    exact = sum(error > NOTHING_LEFT for error in readings.linear_error)
    if exact in {readings.jacobian_rank, objective.rank, scree.rank} and is_exactly_linear(readings, exact):
        return exact
    if 0 < scree.rank < min(objective.rank, len(best)):
        blunt = scree.sharpness >= OUTVOTES and readings.compared.rise(best[scree.rank], best[-1]) < SHARP
        if blunt or _fits_noise(readings):  # more hardly pay, and predict nothing, or pay for noise
            return scree.rank
    rank, count = Counter([readings.jacobian_rank, objective.rank, scree.rank]).most_common(1)[0]
    # all three differ: the Jacobian gap alone was right on 93 of 93 teachers with the ridge chosen by held-out error
    return rank if count > 1 else readings.jacobian_rank


def _fits_noise(readings: Readings) -> bool:
    """Whether networks of as many dimensions as the objective reads predict clearly worse than those of a clear bend.

    A sine in noise, 1,000 rows of 50 columns, loses .39 of held-out rows through 1 combination, .73 through the 10 that
    the objective reads, which leave .001 of the training rows. Classes lose more through more where they are too sure.
    """
    errors, scree = readings.heldout_error, readings.scree
    if readings.classes or scree.sharpness < CLEAR_MARGIN:
        return False
    most = errors[min(readings.objective.rank, len(errors) - 1)]
    return most > readings.errors_compared.raised(errors[scree.rank], AS_READ)


def _agreement(readings: Readings, rank: int) -> tuple[str, ...]:
    linear: list[str] = []
    if networks_come_near_linear(readings, rank):
        is_exact = readings.linear_error[rank] <= NOTHING_LEFT
        left = (
            f"leaves {readings.linear_error[rank]:.3g} of the variance of held-out rows, less than networks of as many"
        )
        does = "is exact on held-out rows" if is_exact else left
        linear = [
            f"A linear map through {counted(rank, readings.noun)} {does}, and one "
            f"through fewer leaves {readings.linear_error[rank - 1]:.3g}: the task is linear, and that map is returned."
        ]
    if is_exactly_linear(readings, rank):
        read = {readings.objective.rank, readings.scree.rank, readings.jacobian_rank} - {rank}
        other = " and ".join(map(str, sorted(read)))
        ended = f"Networks only come near it; what they read, {other}, is how they ended."
        return (*linear, *([ended] if read else []))
    below = f"one {readings.noun} fewer raises the objective by {readings.compared.said(readings.objective.sharpness)}"
    counted_ones = readings.counted_neighbours
    ridges = [f"{ridge:g}" for ridge, _ in sorted(counted_ones)]
    where = f"ridge{'s' * (len(ridges) > 1)} {' and '.join(ridges)}"
    worse: dict[int, list[str]] = {}
    for ridge, reading in readings.neighbours:
        if (ridge, reading) not in counted_ones and (reading.rank != rank or not ridges):
            worse.setdefault(reading.rank, []).append(f"{ridge:g}")
    hidden = [
        f"At ridge{'s' * (len(at) > 1)} {' and '.join(at)}, where networks predict clearly worse, it is {other}."
        for other, at in worse.items()
    ]
    return (
        f"The objective curve, the held-out error and the Jacobian all read {rank}.",
        f"At ridge {readings.ridge:g} {below}." if math.isfinite(readings.objective.sharpness) else "Nothing is below.",
        *([f"The reading is the same at the neighbouring {where}."] if ridges else []),
        *hidden,
        *linear,
    )


def _disagreements(readings: Readings, rank: int) -> list[str]:
    doubts: list[str] = []
    if readings.objective.rank != rank:
        doubts.append(f"The objective curve at ridge {readings.ridge:g} reads {readings.objective.rank}, not {rank}.")
    if readings.scree.rank != rank:
        reads, elsewhere = readings.kind.held_out_reads, readings.kind.held_out_elsewhere
        doubts.append(f"The held-out error {reads.format(readings.scree.rank)}, not {elsewhere.format(rank)}.")
    if readings.jacobian_rank != rank:
        doubts.append(
            f"The Jacobian has {readings.jacobian_rank} direction{'s' * (readings.jacobian_rank != 1)}, not {rank}."
        )
    for ridge, reading in readings.counted_neighbours:
        if reading.rank != readings.objective.rank:
            same = ", as the held-out error does" if reading.rank == readings.scree.rank else ""
            doubts.append(f"At the neighbouring ridge {ridge:g} the objective curve reads {reading.rank}{same}.")
    return doubts


def _weaknesses(readings: Readings, rank: int) -> list[str]:
    doubts: list[str] = []
    if not readings.neighbours:
        doubts.append(f"Only the ridge {readings.ridge:g} counts: whether the reading is stable along it is not known.")
    if not readings.is_sharp:
        rise = readings.compared.said(readings.objective.sharpness)
        doubts.append(f"One {readings.noun} fewer than {readings.objective.rank} raises the objective by {rise} only.")
    if rank == readings.scree.rank == 0:
        doubts.append("Nothing predicts held-out rows better than their mean; more data would tell if anything can.")
    elif not readings.bends_clearly:
        doubts.append(f"The held-out error {readings.kind.held_out_blunt}; more data would sharpen it.")
    most = len(readings.linear_error) - 1 if readings.most is None else readings.most
    if rank >= readings.widest > 1 and rank == readings.objective.rank and readings.widest < most:
        doubts.append(_largest_tried(readings))
    doubts += [*of_a_handful(readings), *hidden_by_noise(readings, rank), *by_luck(readings, rank)]
    if networks_come_near_linear(readings, rank):
        return doubts
    if readings.columns is not None and readings.deep is not None and readings.deep < rank < readings.columns:
        doubts.append(
            f"Networks with a deeper middle keep {counted(readings.deep, 'coordinate')}: {rank} flat ones may be "
            "fewer, curved."
        )
    return doubts + unlearnt(readings, rank) + unevenly_lost(readings, rank) + _against_simpler_maps(readings, rank)


def _largest_tried(readings: Readings) -> str:
    if not readings.straight:
        return f"The rank is the largest that was tried ({readings.widest}): it may be larger."
    return f"{counted(readings.widest, readings.noun)} are the most that were tried: there may be more."


def _against_simpler_maps(readings: Readings, rank: int) -> list[str]:
    """What the mean and linear maps do as well."""
    if not 0 < rank < len(readings.heldout_error):
        return []
    mine, linear = readings.heldout_error[rank], min(readings.linear_error[: rank + 1])
    if mine >= 1 and mine < readings.heldout_error[0]:
        return ["More is missed of held-out rows than the rows trained on vary: give more data."]
    if mine >= 1:
        return ["The held-out error is no smaller than that of the mean: give more data."]
    if rank == readings.columns:  # the identity is a linear map through all of them
        return [] if readings.straight else _against_fewer_curved(readings, rank)
    if rank < len(readings.linear_error) and mine > readings.errors_compared.raised(linear, AS_LINEAR):
        if linear <= NOTHING_LEFT and curves_are_of_use(readings, rank):
            return [
                f"A linear map through {counted(rank, readings.noun)} is exact, but through one fewer networks lose "
                f"{readings.heldout_error[rank - 1]:.2g}, linear maps {readings.linear_error[rank - 1]:.2g}: some may "
                "be functions of others."
            ]
        map_name = "reduced-rank regression" if readings.columns is None else "principal components"
        return [
            f"A linear map through at most {counted(rank, readings.noun)} predicts better (relative error "
            f"{linear:.3g}, here {mine:.3g}): take that map ({map_name}), or give more data or starts."
        ]
    return []


def is_linear(readings: Readings, rank: int) -> bool:
    """Whether a linear map through as many dimensions is the answer: networks come near it, or are worse."""
    if told_by_linear_maps(readings):
        return readings.mapped is not None and rank == readings.mapped.rank
    return networks_come_near_linear(readings, rank)


def _against_fewer_curved(readings: Readings, columns: int) -> list[str]:
    """What a deeper network might do, or does, where a shallow one keeps all columns."""
    kept = "The one column is kept" if columns == 1 else f"All {columns} columns are kept"
    if readings.deep is None:
        return [
            f"{kept}, so no dimension is saved. Whether fewer, curved coordinates do, the rank "
            "as a function of depth says (depth_path=True, --depth-path)."
        ]
    if readings.deep < columns and not readings.deep_sure:
        return [
            f"{kept}, but deeper networks may do with {readings.deep}, curved; the rows lie too far apart to tell "
            "whether these cut the data open."
        ]
    if readings.deep < columns:
        return [f"{kept}, but deeper networks do with {readings.deep}: their coordinates are curved."]
    # not to find fewer proves nothing, as a band with ten half twists shows
    if not readings.local >= columns - FILLED:
        seem = f"; around each, the rows seem {readings.local:.1f}-dimensional" if readings.local > 0 else ""
        return [f"{kept} at every depth tried{seem}. Fewer coordinates, curved further, are not excluded."]
    return []


def _moving(readings: Readings) -> list[str]:
    """The sentence on a reading that moves with the ridge and is not sharp, if it does."""
    beside = [r for _, r in readings.counted_neighbours if r.rank != readings.objective.rank and r.sharpness < SHARP]
    if not beside or readings.is_sharp:
        return []
    parts = [(readings.ridge, readings.objective), *readings.neighbours]
    listed = ", ".join(f"{reading.rank} at ridge {ridge:g}" for ridge, reading in sorted(parts, key=lambda p: -p[0]))
    return [f"The reading moves with the ridge ({listed}) and one {readings.noun} fewer costs little at each."]


def _blurred_classes(readings: Readings, rank: int) -> list[str]:
    """Why classes have no sharp rank, if they have none; nothing where they are not learnt, or the constant is best.

    Once all training rows are told apart, only the size of the weights tells ranks apart, and the minima that training
    finds scatter in it: on digits by 8 to 20 %, where one rank more changes 3 to 7 %.
    """
    read = sorted({readings.objective.rank, readings.scree.rank, readings.jacobian_rank})
    useless = readings.heldout_error[min(rank, len(readings.heldout_error) - 1)] >= 1
    if not readings.classes or not readings.objectives or readings.objective.rank == 0 or useless:
        return []
    if len(read) == 1:  # the least may yet be that of one dimension more
        read = [rank, rank + 1]
    if len(read) == 3:
        listed = ", ".join(map(str, read))
        return [f"The three readings of these classes have nothing in common ({listed})."]
    low, high = (readings.objectives[min(r, len(readings.objectives) - 1)] for r in read)
    apart, said = readings.compared.rise(low, high), readings.compared.said
    if apart > readings.spread or readings.spread < SHARP:
        return []
    return [
        f"Through {read[0]} and through {read[1]} {readings.noun}s the objective differs by {said(apart)}, the minima "
        f"that training found by {said(readings.spread)}: which rank the least has is not known."
    ]
