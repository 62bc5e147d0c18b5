"""A linear half: which columns its directions use, and the outputs against one or two combinations of the inputs.

The tables come from `discovery.evidence.straight_halves`. Curved coordinates: `interpretation`; spectra: `spectra`.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from isthmus.discovery.evidence.straight_terms import in_words, terms_of
from isthmus.plots.style import (
    BLUE,
    GRID,
    HUES,
    INK,
    LOOKS,
    MUTED,
    ORANGE,
    SMALL,
    SURFACE,
    axes_or_new,
    in_own_settings,
    legend,
    plain_text,
    whole_numbers,
)

_FEW_ROWS, _MOST_ROWS, _MOST_LANES = 16, 24, 12
_NAME = 24  # characters
_ROW_INCHES, _AROUND_INCHES = 0.19, 0.75
_ACROSS, _UPWARDS = 46, 36  # characters along the axes
_NAMED_CLASSES = 8
_MARKERS = "osD^v<>P"
_MANY = 1000  # points
_GOLDEN = (5**0.5 - 1) / 2


@in_own_settings
def loadings(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """One row for each column of the data, one lane for each direction: bars to the right are positive loadings.

    Rows stand by the largest loading; of many columns those with the largest that take part, and a line for the rest.
    Bars of negative loadings are hatched, so that they differ without colours too.

    Args:
        dataset: of `straight_half` (dimensions "direction" and "column"; `loading`, `takes_part`, `is_logged`); `low`
            and `high`, where they are there, are drawn as whiskers.
        ax: axes to draw into; new ones, higher the more rows there are, unless given.

    Returns:
        The axes.

    >>> table = xr.Dataset(coords={"direction": [1], "column": ["a", "b"]})
    >>> table["loading"] = ("direction", "column"), [[0.8, -0.6]]
    >>> table["takes_part"], table["is_logged"] = ("column", [True, True]), ("column", [False, True])
    >>> [label.get_text() for label in plots.loadings(table).get_yticklabels()]
    ['a', 'log b']
    """
    table = dataset.isel(direction=slice(_MOST_LANES))
    order = _rows_shown(table)
    chosen = table.isel(column=order)
    values = chosen["loading"].transpose("direction", "column").values
    names = [plain_text(name, most=_NAME) for name in _row_names(chosen)]
    if rest := table.sizes["column"] - len(order):
        names.append(f"{rest} more, up to {np.abs(table['loading'].drop_isel(column=order).values).max():.2g}")
    ax = axes_or_new(ax, height=_AROUND_INCHES + _ROW_INCHES * len(names))
    reach = 1.1 * float(np.abs(values).max(initial=0.0)) or 1.0
    middles = 2 * reach * np.arange(len(values))
    for middle, row in zip(middles, values, strict=True):
        ax.axvline(middle + reach, color=GRID, linewidth=0.8, zorder=0.5)
        _bars(ax, row, middle)
    if "low" in chosen and "high" in chosen:
        low, high = (chosen[name].transpose("direction", "column").values for name in ("low", "high"))
        for middle, least, most in zip(middles, low, high, strict=True):
            ax.hlines(np.arange(len(order)), middle + least, middle + most, color=INK, linewidth=1.1, zorder=3)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(-reach, middles[-1] + reach)
    ax.grid(visible=len(values) == 1, axis="x")
    ax.set_xlabel(f"loading in the {direction_noun(dataset)}")
    if len(values) > 1:
        ax.set_xticks(middles, [str(number) for number in chosen["direction"].values])
        part = f", the first {len(values)} of {dataset.sizes['direction']}"
        hidden = part if len(values) < dataset.sizes["direction"] else ""
        ax.set_xlabel(f"{direction_noun(dataset)}{hidden}; lanes of ±{reach:.1f}")
    ax.set_ylabel(_column(dataset))
    return ax


def _bars(ax: Axes, row: np.ndarray, middle: float) -> None:
    """The loadings of one direction from the middle of its lane."""
    ax.axvline(middle, color=MUTED, linewidth=0.8, zorder=1)
    heights = np.arange(len(row))
    for sign, color, hatch in ((1, BLUE, ""), (-1, ORANGE, "//////")):
        own = np.sign(row) == sign
        ax.barh(
            heights[own], row[own], left=middle, height=0.72, color=color, hatch=hatch, edgecolor=SURFACE, linewidth=0
        )


@in_own_settings
def loading_profiles(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Loadings over the columns in their order, one line for each direction: of fields, spectra and time series.

    Args:
        dataset: as for `loadings`.
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    >>> table = xr.Dataset(coords={"direction": [1], "column": ["a", "b"]})
    >>> table["loading"] = ("direction", "column"), [[0.8, -0.6]]
    >>> plots.loading_profiles(table).get_xlabel()
    'input, counted from 1'
    """
    ax = axes_or_new(ax)
    table = dataset.isel(direction=slice(len(LOOKS)))
    places = np.arange(1, table.sizes["column"] + 1)
    for (color, marker), number in zip(LOOKS, table["direction"].values, strict=False):
        row = table["loading"].sel(direction=number).values
        every = -(-len(row) // 12)
        label = f"{direction_noun(dataset)} {number}"
        ax.plot(places, row, color=color, marker=marker, markersize=4, markevery=every, label=label)
    ax.axhline(0.0, color=INK, linewidth=0.8)
    ax.set_xlabel(f"{_column(dataset)}, counted from 1")
    ax.set_ylabel("loading")
    whole_numbers(ax)
    legend(ax)
    return ax


def has_profile(dataset: xr.Dataset) -> bool:
    """Whether more columns take part than have a row of their own in `loadings`."""
    return int(dataset["takes_part"].sum()) > _MOST_ROWS


def _rows_shown(table: xr.Dataset) -> np.ndarray:
    """Columns by their largest loading; where they are many, those that take part, as far as there is room."""
    largest = np.abs(table["loading"].transpose("direction", "column").values).max(0)
    order = np.argsort(-largest, kind="stable")
    if len(order) <= _FEW_ROWS:
        return order
    return order[: min(max(int(table["takes_part"].sum()), 1), _MOST_ROWS)]


@in_own_settings
def summary_curve(dataset: xr.Dataset, ax: Axes | None = None, *, direction: int = 1) -> Axes:
    """The outputs against one combination of the inputs; classes in rows of their own.

    Args:
        dataset: of `straight_half` (`value`, `loading`), with one `target` by "sample", a coordinate `target_name`, or
            `label` by "sample", the numbers of classes, and `class_name` by "class".
        ax: axes to draw into; new ones unless given.
        direction: which combination, counted from 1.

    Returns:
        The axes.

    >>> table = xr.Dataset(coords={"direction": [1], "column": ["a", "b"], "target_name": "price"})
    >>> table["value"], table["target"] = (("sample", "direction"), x[:, :1]), ("sample", y[:, 0])
    >>> table["loading"] = ("direction", "column"), [[0.8, -0.6]]
    >>> table["is_logged"] = "column", [False, False]
    >>> plots.summary_curve(table).get_ylabel()
    'price'
    """
    ax = axes_or_new(ax)
    values = _values(dataset, direction)
    if "label" in dataset:
        labels = dataset["label"].values.astype(int)
        names = dataset["class_name"].values
        # spread by the golden ratio, not by chance: the same picture every time
        height = labels + 0.7 * (np.arange(len(labels)) * _GOLDEN % 1 - 0.5)
        for number in range(len(names)):
            _scatter(ax, values, height, labels == number, number=number)
        ax.set_yticks(range(len(names)), [plain_text(name, most=20) for name in names])
        ax.set_ylim(-0.6, len(names) - 0.4)
        ax.set_ylabel("class")
    else:
        _scatter(ax, values, dataset["target"].values)
        ax.set_ylabel(_target_name(dataset))
    ax.set_xlabel(_axis(dataset, direction, room=_ACROSS))
    return ax


@in_own_settings
def summary_plane(dataset: xr.Dataset, ax: Axes | None = None, *, pair: tuple[int, int] = (1, 2)) -> Axes:
    """Every sample in two combinations of the inputs, coloured by the output, or by the class with its own marker.

    Args:
        dataset: as for `summary_curve`.
        ax: axes to draw into; new ones unless given.
        pair: which two combinations, counted from 1.

    Returns:
        The axes.

    >>> table = xr.Dataset(coords={"direction": [1, 2], "column": ["a", "b"], "target_name": "price"})
    >>> table["value"], table["target"] = (("sample", "direction"), x[:, :2]), ("sample", y[:, 0])
    >>> table["loading"] = ("direction", "column"), [[0.8, -0.6], [0.6, 0.8]]
    >>> table["is_logged"] = "column", [False, False]
    >>> len(plots.summary_plane(table).collections)
    1
    """
    ax = axes_or_new(ax)
    across, up = (_values(dataset, direction) for direction in pair)
    if "label" in dataset:
        labels, names = dataset["label"].values.astype(int), dataset["class_name"].values
        for number in range(len(names)):
            label = plain_text(names[number], most=20) if number < _NAMED_CLASSES else None
            _scatter(ax, across, up, labels == number, number=number, label=label)
        legend(ax)
    else:
        target = dataset["target"].values
        least, most = np.quantile(target, [0.02, 0.98])  # a few far values would leave one colour for the rest
        clipped = bool(least < most)
        points = ax.scatter(
            across, up, c=target, cmap="cividis", vmin=least if clipped else None, vmax=most if clipped else None,
            s=_size(len(across)), alpha=0.9, linewidths=0, rasterized=len(across) > _MANY,
        )  # fmt: skip
        figure = ax.get_figure()
        assert figure is not None
        bar = figure.colorbar(points, ax=ax, pad=0.02, extend="both" if clipped else "neither")
        bar.set_label(_target_name(dataset), color=INK, fontsize=SMALL)
        bar.ax.tick_params(color=MUTED, labelcolor=INK, labelsize=SMALL)
        bar.outline.set_edgecolor(MUTED)  # pyright: ignore[reportCallIssue] - typed as a list of spines, is one
    ax.set_xlabel(_axis(dataset, pair[0], room=_ACROSS))
    ax.set_ylabel(_axis(dataset, pair[1], room=_UPWARDS))
    return ax


def _is_index(dataset: xr.Dataset) -> bool:
    return dataset.attrs.get("kind", "index") == "index"


def _row_names(dataset: xr.Dataset) -> list[str]:
    """The columns, with "log" before those whose logarithm was taken."""
    pairs = zip(dataset["column"].values, dataset["is_logged"].values, strict=True)
    return [f"log {name}" if log else str(name) for name, log in pairs]


def _column(dataset: xr.Dataset) -> str:
    return "input" if _is_index(dataset) else "output"


def direction_noun(dataset: xr.Dataset) -> str:
    """What a direction of a linear half is."""
    return "combination" if _is_index(dataset) else "mode"


def _values(dataset: xr.Dataset, direction: int) -> np.ndarray:
    if direction not in dataset["direction"].values:
        raise ValueError(f"direction={direction}: needs one of 1 to {dataset.sizes['direction']}.")
    return dataset["value"].sel(direction=direction).values


def _axis(dataset: xr.Dataset, direction: int, *, room: int) -> str:
    """`1: 0.71 a + 0.69 b + 2 more`, in about so many characters."""
    loadings = dataset["loading"].sel(direction=direction).values
    terms = terms_of(dataset, most=16)
    texts = [f"{direction}: {in_words(terms, loadings, most=most)}" for most in (4, 3, 2, 1)]
    return plain_text(next((text for text in texts if len(text) <= room), texts[-1]), most=room)


def _target_name(dataset: xr.Dataset) -> str:
    return plain_text(dataset["target_name"].values.item())


def _scatter(
    ax: Axes,
    across: np.ndarray,
    up: np.ndarray,
    own: np.ndarray | None = None,
    *,
    number: int = 0,
    label: str | None = None,
) -> None:
    """Points of one class, or of all; many are smaller and fainter, as pixels, so that files stay small."""
    chosen = np.full(len(across), fill_value=True) if own is None else own
    many = len(across) > _MANY
    ax.scatter(
        across[chosen], up[chosen], s=_size(len(across)), alpha=0.35 if many else 0.7, linewidths=0, rasterized=many,
        marker=_MARKERS[number % len(_MARKERS)], label=label,
        color=HUES[number % len(HUES)] if number < _NAMED_CLASSES else MUTED,
    )  # fmt: skip


def _size(count: int) -> float:
    return 5.0 if count > _MANY else 12.0
