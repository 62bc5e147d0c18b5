"""Doubts about an answer that is made: what it is held against once it is there, each of which can cost its sureness.

Doubts about readings, before a rank is decided: `decision`, `row_doubts`.
"""

from dataclasses import replace

import torch

from isthmus.discovery.choices import (
    AS_READ,
    COLUMN_LOST,
    HARDLY,
    LEFT_OVER_ERROR,
    NOTHING_LEFT,
    OTHERS_LOST,
    UNLEARNT_TARGET,
    WILD,
    WILD_ROWS,
)
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.data.scaling import Scaling
from isthmus.discovery.evidence.leftovers import leftover, told_by_others
from isthmus.discovery.findings import Findings
from isthmus.discovery.halves import INDEX, RANK, RANK_KINDS, RankKind
from isthmus.discovery.result import Discovery
from isthmus.tasks.arrays import counted, listing
from isthmus.tasks.names import quoted
from isthmus.theory import Verdict
from isthmus.training.losses import weighted_mean


def against_unseen(found: Discovery, findings: Findings, sample: Sample) -> Discovery:
    """With the error on the rows that a sample left out; where it is clearly larger than on held-out rows, in doubt."""
    here, count = findings.scree.get(found.rank), int(sample.unseen.sum())
    if here is None or not count:
        return found
    family = findings.family
    unseen = sample.unseen_error(family.problem, findings.whole or family.network_of(here))
    found = replace(found, readings={**found.readings, "unseen_error": unseen})
    heldout = found.heldout_error
    if unseen <= family.problem.errors_compared.raised(heldout, AS_READ):
        return found
    return _in_doubt(
        found,
        f"On the {count:,} rows that were not searched the error is {unseen:.2%}, on held-out ones "
        f"{heldout:.2%}: the sample lacks what they hold; search more rows.",
    )


def against_short_blocks(found: Discovery, sample: Sample) -> Discovery:
    """Of a series, in doubt where held-out blocks are shorter than what resembles each other.

    Two series of 300 rows, smoothed over 30 and without anything in common, left .03 % of held-out rows: what lies
    between fitted rows is interpolated.
    """
    lag, block = sample.resemblance if sample.ordered and found.rank else (0, 0)
    if lag <= block:
        return found
    return _in_doubt(
        found,
        f"Rows resemble each other over {lag:,} rows, and blocks of {block:,} are held out: what is missed there says "
        "little, as it lies between fitted ones. Give a longer series, or several with groups.",
    )


def against_sets_of_rows(found: Discovery, sample: Sample) -> Discovery:
    """In doubt where columns keep their values together in sets of rows that stand on both sides of the split.

    Five visits of each of 60 patients, whose age and weight tell them apart: .04 of the variance was missed of visits
    held out, 1.3 of it of other patients.
    """
    sets = sample.sets if found.rank else None
    if sets is None:
        return found
    names, count = listing([quoted(name) for name in sets[0]], "column"), sets[1]
    return _in_doubt(
        found,
        f"The {names} keep their values together in {count:,} sets of rows, "
        "as of one subject, run or place each, and rows of one set are fitted and held out: of other sets more may be "
        "missed. Give groups (--groups) that name the sets.",
    )


def against_leftovers(found: Discovery, findings: Findings) -> Discovery:
    """In doubt where what an answer by squares leaves over depends on other combinations, as none should.

    Of an index rank; of a linear map also where it leaves little, and of several targets what none of its outputs
    can: a network leaves what its training does, a linear map leaves all that is bent.
    """
    family, here = findings.family, findings.scree.get(found.rank)
    problem, settings = family.problem, family.settings
    exchangeable = problem.weight is None and not settings.ordered
    is_linear = found.is_linear and findings.whole is not None
    asked = (settings.rank_kind is INDEX or is_linear) and problem.loss.is_quadratic and not problem.autoencoding
    least = NOTHING_LEFT if is_linear else LEFT_OVER_ERROR
    if here is None or not asked or not exchangeable or found.heldout_error < least:
        return found
    x, y = (torch.cat(parts).double() for parts in ((problem.x, problem.x_held), (problem.y, problem.y_held)))
    network = (findings.whole or family.written(family.network_of(here))).double()
    with torch.no_grad():
        residuals, across = y - network(x), settings.rank_kind is not INDEX
        if across:  # a bent coordinate moves along the outputs of the map
            basis = torch.linalg.qr(network.weights[-1]).Q
            residuals = residuals - residuals @ basis @ basis.mT
    rows = network.weights[0].detach().numpy()
    columns = problem.inputs.restore(x.numpy()) if is_linear else None
    other = leftover(x.numpy(), rows, residuals.numpy(), seed=settings.seed, columns=columns, across=across)
    if other is None or not other.counts:
        return found
    return _in_doubt(
        found,
        f"What {'the linear map leaves' if is_linear else 'is left'} over depends on other combinations of the inputs "
        f"too ({other.share:.1%} of it, {other.deviations:.0f} standard deviations above chance): there are more, weak "
        "ones.",
    )


def against_lost_columns(found: Discovery, findings: Findings) -> Discovery:
    """In doubt where one scale for all columns, which we chose, loses columns that tell of each other.

    Noise of pixels that hardly vary tells of nothing. Twelve columns on a curve, a hundred times as large as 28 waves
    of five other numbers in noise, were 1 dimension, sure.
    """
    family, here = findings.family, findings.scree.get(found.rank)
    problem = family.problem
    if here is None or not problem.autoencoding or family.settings.scaling != Scaling.GLOBAL.value:
        return found
    network = (findings.whole or family.written(family.network_of(here))).double()
    x, y = (torch.cat(parts).double() for parts in ((problem.x, problem.x_held), (problem.y, problem.y_held)))
    with torch.no_grad():
        left = y - network(x)
    lost = left.square().mean(0) > COLUMN_LOST * y.var(0, correction=0)
    count = int(told_by_others(left[:, lost].numpy()).sum())
    if not count:
        return found
    are, them = ("is", "it") if count == 1 else ("are", "them")
    return _in_doubt(
        found,
        f"With one scale for all columns {counted(count, 'column')} {are} lost, though others tell of {them}: where "
        f'units differ, scaling="column" (--scaling column) counts {them} too.',
    )


def against_wild_rows(found: Discovery, findings: Findings) -> Discovery:
    """In doubt where a few rows hold most of what varies and some of the others is lost: the answer is about those few.

    Of 500 rows in three dimensions one was a thousand times as large: 1, sure, and of what the other 499 vary by 2.6 %
    was lost, nearly all of it where the one is ten thousand times as large. Heavy tails of a factor leave the others.
    """
    problem, here = findings.family.problem, findings.scree.get(found.rank)
    if here is None or not problem.loss.is_quadratic:
        return found
    network = (findings.whole or findings.family.network_of(here)).double()
    x, y = (torch.cat(parts).double() for parts in ((problem.x, problem.x_held), (problem.y, problem.y_held)))
    size = (y - y.mean(0)).square().sum(1)
    most = max(round(WILD_ROWS * len(y)), 1)
    held = size.sort(descending=True).values[:most].cumsum(0) / size.sum()
    others = size.argsort()[:-most]
    with torch.no_grad():
        left = float((network(x[others]) - y[others]).square().sum())
    own = float((y[others] - y[others].mean(0)).square().sum())
    if held[-1] <= WILD or left <= OTHERS_LOST * own or own <= torch.finfo(y.dtype).eps * float(size.sum()):
        return found  # the last: the others are all the same
    lost = left / own
    few = int((held <= WILD).sum()) + 1
    who = "One row holds" if few == 1 else f"{few:,} rows hold"
    return _in_doubt(
        replace(found, readings={**found.readings, "others_lost": lost}),
        f"{who} {held[few - 1]:.1%} of what varies, and of what the others vary by {lost:.1%} is missed: the answer is "
        "about those few. Leave them out, or take logarithms.",
    )


def against_lost_targets(found: Discovery, findings: Findings) -> Discovery:
    """With the targets that are hardly predicted while others are, as a reason: their noise hides what others need.

    Four targets through two dimensions and one of noise were one dimension, .6 of the variance missed. In doubt where
    rows trained on tell far more of one than others do: of a rare event 63 % was missed, 1.6 % of those trained on, of
    a target with one wild row 22 times what it varies, and both were two dimensions, sure, for three.
    """
    problem, here = findings.family.problem, findings.scree.get(found.rank)
    if here is None or problem.targets is None or not problem.loss.is_quadratic or problem.autoencoding:
        return found
    network = (findings.whole or findings.family.network_of(here)).double()
    mean = weighted_mean(problem.y.double(), problem.weight)

    def missed(x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
        with torch.no_grad():
            lost = weighted_mean((network(x.double()) - y.double()).square(), weight)
        spread = weighted_mean((y.double() - mean).square(), weight)
        return torch.where(spread > 0, lost / spread, 0.0)

    held = missed(problem.x_held, problem.y_held, problem.weight_held)
    known = missed(problem.x, problem.y, problem.weight)
    names = [quoted(found.target_names[column]) for column in problem.targets.kept]
    unlearnt = (held - known).argmax()
    if len(names) > 1 and held[unlearnt] - known[unlearnt] > UNLEARNT_TARGET:
        unseen, seen = (100 * float(share[unlearnt]) for share in (held, known))
        found = _in_doubt(
            found,
            f"Of the target {names[int(unlearnt)]} {unseen:,.0f} % of the variance is missed on held-out rows, "
            f"{seen:.2g} % on those trained on: so little is known of it between rows that more dimensions may matter "
            "there; more rows would tell.",
        )
    lost = [f"{name} ({share:.0%})" for name, share in zip(names, held.tolist(), strict=True) if share > HARDLY]
    if not lost or len(lost) == len(names):
        return found
    are, them = ("is", "it") if len(lost) == 1 else ("are", "them")
    text = (
        f"The {listing(lost, 'target')} {are} hardly predicted, by the share of the variance that is missed on "
        f"held-out rows: without {them} more dimensions may show."
    )
    return replace(found, reasons=(*found.reasons, text))


def in_order(found: Discovery) -> Discovery:
    """The ranks of one task held against their order; where it is broken, who may be wrong says so and is in doubt.

        rank <= min(index rank, mode rank)

    An answer that was sure stays so where the other was not. How much the least of the other ranks is stands among the
    readings of the rank, so that its own answer is known beside `Discovery.ranks`. A search that found nothing which
    predicts bounds nothing: one of 3 dimensions, proved of its network, had been held against 0 combinations.
    """
    everything = {found.kind: found, **found.others}
    own = everything.get(RANK.name)
    straight = {kind: one for kind, one in everything.items() if kind != RANK.name and one.is_counted}
    if own is None or not straight:
        return found
    bound = min(one.rank for one in straight.values())
    told = {RANK.name: replace(own, readings={**own.readings, "bound": bound})}
    for kind, one in straight.items():
        if own.rank > one.rank:
            text = against_bound(own.rank, RANK_KINDS[kind], one.rank, proved=own.interval.lower)
            told[RANK.name] = _in_doubt(told[RANK.name], text)
            if own.verdict is Verdict.CONFIDENT or one.verdict is not Verdict.CONFIDENT:
                told[kind] = _in_doubt(one, text)
    others = {kind: told.get(kind, one) for kind, one in found.others.items()}
    return replace(told.get(found.kind, found), others=others)


def against_bound(own: int, kind: RankKind, bound: int, *, proved: int) -> str:
    """What to say where the rank was read larger than one that bounds it.

        rank <= min(index rank, mode rank), for a half that is linear is one that may be curved

    Args:
        own: the rank as its own search read it.
        kind: which of the others is less,
        bound: and how much it is.
        proved: directions that the network behind `own` surely has.
    """
    sure = f", {proved} of them proved of its network" if proved > bound else ""
    return (
        f"With both halves curved {RANK.counted(own)} were found{sure}, with one linear {kind.counted(bound)}: no more "
        "can be needed where both may be curved, so one of the two answers is wrong, as a rule the larger one."
    )


def _in_doubt(found: Discovery, text: str) -> Discovery:
    """With one more reason; of what spoke for an answer that was sure nothing is left."""
    sure = found.verdict is Verdict.CONFIDENT
    reasons = (text,) if sure else (*found.reasons, text)
    return replace(found, reasons=reasons, verdict=Verdict.DOUBTFUL if sure else found.verdict)
