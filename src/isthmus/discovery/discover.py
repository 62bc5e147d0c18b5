"""`discover`: the rank of a task, with evidence, from data alone."""

import os
import shutil
from collections.abc import Sequence
from concurrent.futures import Executor

import torch
from numpy.typing import ArrayLike

from isthmus.discovery.asked import Asked
from isthmus.discovery.data.scaling import Scaling
from isthmus.discovery.remedies.remedy import Effort
from isthmus.discovery.result import Discovery
from isthmus.discovery.work.unit import ProgressListener
from isthmus.networks.devices import made_on_cpu, with_gradients
from isthmus.tasks.input_columns import InputColumn
from isthmus.training import Limits
from isthmus.training.losses import Loss
from isthmus.writing.atomic import remove_leftovers
from isthmus.writing.folder_lock import folder_made, only_writer


@made_on_cpu
@with_gradients
def discover(  # noqa: PLR0913 - the arguments are a public contract
    x: object,
    y: object = None,
    *,
    encoder: str | None = None,
    decoder: str | None = None,
    log: str | Sequence[str] | None = None,
    units: object = None,
    ranks: bool = False,
    network: str | None = None,
    loss: str | Loss | None = None,
    depth: int | None = None,
    ridge: float | Sequence[float] | None = None,
    starts: int | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ordered: bool = False,
    scaling: str | Scaling = Scaling.AUTO,
    effort: str | Effort = Effort.DEFAULT,
    rows: int | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: ProgressListener | None = None,
    control: bool = False,
    depth_path: bool = False,
    workers: int | None = None,
    executor: Executor | str | None = None,
    device: torch.device | str | None = None,
    columns: Sequence[InputColumn] | None = None,
) -> Discovery:
    """How many dimensions the task x -> y needs, which ones, and how sure that is.

        found = isthmus.discover(x, y)     # arrays, tensors, tables; without y: of the data themselves
        found.rank, found.verdict          # how many, and how sure
        print(found.summary())             # why
        found.transform(x)                 # the coordinates of the samples

    Several starts are trained to minima of  data_loss + ridge * |theta|^2  along a path of ridges. At the ridge with
    the least held-out error, and at its neighbours, the middle of the best network is truncated to every rank r and
    polished; the rank is the least r whose objective is close to the full one (`choices.SLACK`). Held-out error through
    r coordinates and the Jacobian's spectrum are read beside it, and a verdict compares the three. The middle has room
    for 24 dimensions at first and is widened, up to 96, where the objective asks for all of them.

    Args:
        x: inputs (n, d_in): array, tensor, data frame (pandas, polars), xarray or sparse matrix of real numbers; or a
            torch Dataset or DataLoader of rows, or of pairs, which brings the targets. More dimensions are flattened.
        y: targets (n, d_out), or class labels (n,) with loss="cross_entropy"; None: y = x, the dimension of the data.
        encoder: "curved"; or "linear": the least number of linear combinations of the inputs that the targets depend
            on, the index rank or structural dimension. None: curved, but linear of one target or two classes, whose
            bottleneck rank is 1 whatever they depend on, unless an option needs curved halves.
        decoder: "curved"; or "linear": the least dimension of an affine space that holds what is predicted, the mode
            rank. With inputs autoencoded, a linear encoder asks how many linear sensors suffice, a linear decoder is
            PCA by curved scores.
        log: "all" takes the natural logarithm of positive inputs that span more than a decade; or names of inputs and
            targets. Combinations of logarithms are products of powers, see `Discovery.groups`.
        units: of the inputs and the targets, as a file, a mapping or a record (`discovery.groups`): columns with a
            unit get a logarithm, only powers without one are combined, and each target is divided by powers of the
            inputs that have its unit. Classes have none.
        ranks: also find the other ranks of the task, see `Discovery.ranks` and `Discovery.others`: of combinations of
            the inputs, of curved coordinates and, of several targets, of their modes.
        network: None, "connected" or "fully-connected": ReLU layers around linear ones, the stand-in for a very deep
            network; "leaky" or "resnet": a `LeakyResNet` (Lt = 8) or `ResNet` whose stream is led through r dimensions
            in its middle layer instead, as is that of any kind registered in `networks.kinds`. Of a leaky one the
            readings tell cost of identity and Hamiltonian besides.
        loss: by name or as an object of `training.losses`; None: "squared". Classes are predicted by "cross_entropy".
            With "gaussian" the rank counts what moves the mean of the targets or their spread.
        depth: number of weight matrices; more depth prefers fewer, more curved coordinates. Default 11. Of residual
            networks the number of layers or blocks, default 16.
        ridge: one ridge or several; default 1e-1 ... 3e-4, for targets of total variance 1.
        starts: starts at each ridge, the first from the linear map, the others random; with a linear half all random.
            Default 2, with a linear half 3.
        sample_weight: a weight >= 0 for each row, in losses and errors, up to a common factor; the columns are scaled
            without it. Rows of weight 0 are left out.
        groups: a label per row; rows of one label are held out together. None: rows of equal inputs and
            other targets are (no design of few values), and sets of rows that are equal in at least half the columns
            or hardly differ, far from each other.
        ordered: rows are a time series: whole blocks are held out.
        scaling: "column" gives every column variance 1, "global" keeps the relative scale of the columns; "auto" is the
            first, and tries the second on columns of one kind, such as pixels, where the answer is in doubt.
        effort: work that doubts are worth, beyond the first answer: "quick", none; "default", up to ten times as many
            gradients, of more than some 4,000 rows fewer; "thorough", four times that. What was done:
            `Discovery.remedies`.
        rows: to search at most, the others check the answer; None: 10,000, or ten for each column. Where a sample
            leaves doubts, four times as many are searched.
        seed: same seed, machine and threads: same numbers.
        limits: seconds for everything; gradient evaluations for each training run (about three times as many where a
            depth path takes a dimension away).
        out: folder for the result; also keeps the work as it goes, so that the same call goes on after a stop.
        progress: hears `Progress` events.
        control: also run on Gaussian data of the same covariance, which has no rank beyond its spectrum.
        depth_path: also train each rank at several depths: the rank of a shallow and of a deep answer, and where they
            switch. Takes two to six times as long as the rest.
        workers: trainings side by side; None: one for each core, or each worker of an executor of yours. The numbers do
            not depend on it.
        executor: where they run: "threads", "processes", or any `concurrent.futures.Executor`, as dask's
            `client.get_executor()`; the numbers do not depend on it either. None: what is faster here,
            mostly processes; the one that they are forked from stays, with some 200 MiB, until the program ends.
        device: where networks are trained: "cpu", which None means, "cuda", "cuda:1", or "auto" for a GPU where there
            is one. Ranks are read and files written on the CPU; a run may be resumed on any device; rounding differs
            between them.
        columns: how each column of `x` was made from a table, kept so that `isthmus apply` finds them in another one;
            the columns of an array are called so. None: as they stand in `x`.

    Returns:
        The rank, its verdict and evidence, encoder and decoder. Constant targets give rank 0.

    Raises:
        DataError: data that cannot be used (says which rows or columns), `out` holds another run, or another process
            works there.
        ValueError: an unknown option, or a device that torch does not see.

    >>> quick = isthmus.Limits(evaluations=40)
    >>> found = isthmus.discover(x, y, ridge=1e-2, starts=1, effort="quick", limits=quick)
    >>> found.interval.lower <= found.rank, "heldout_error" in found.scree
    (True, True)
    """
    request = Asked(
        encoder=encoder, decoder=decoder, log=log, units=units, ranks=ranks, network=network, loss=loss,
        depth=depth, ridge=ridge, starts=starts, sample_weight=sample_weight, groups=groups, ordered=ordered,
        scaling=scaling, effort=effort, rows=rows, seed=seed, limits=limits, out=out, progress=progress,
        control=control, depth_path=depth_path, workers=workers, executor=executor, device=device, columns=columns,
    ).request(x, y)  # fmt: skip
    folder = request.folder
    if folder is None:
        return request.answered()
    with folder_made(folder, "discover(out=...)"), only_writer(folder):
        for place in (folder, folder / "work"):
            if place.is_dir():
                remove_leftovers(place)
        result = request.answered()
        result.save(folder)
        shutil.rmtree(folder / "work", ignore_errors=True)
    return result
