"""How results show themselves: one line, text, a dictionary, pictures, a card in a notebook. In which words: `reports`.

The words and pictures of each kind of result stand in one table, `reports.looks`, which is looked up on first use:
results are made in rooms that know nothing of words.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import isthmus

_LOOKS = "looks of results"


@dataclass(frozen=True, slots=True)
class Look:
    """How one kind of result is shown.

    Attributes:
        line: it in one line.
        lines: labels and sentences below it.
        facts: its numbers and words by name, as plain values and arrays.
        pictures: by name what draws each of its pictures and returns the axes.
        first: names of the pictures that stand for it, those that it has.
    """

    line: Callable[[Any], str]
    lines: Callable[[Any], list[tuple[str, str]]]
    facts: Callable[[Any], dict[str, object]]
    pictures: Callable[[Any], Mapping[str, Callable[[], Any]]] = lambda _result: {}
    first: tuple[str, ...] = ()


class Shown:
    """A result that shows itself, in the words of its `Look`."""

    __slots__ = ()

    @property
    def plot(self) -> "Plots":
        """Pictures: `result.plot()` draws the first, `result.plot.NAME()` the one of that name; both return axes.

        A notebook shows `result.plot().figure`. Functions of `isthmus.plots` draw tables of a result into other axes.
        """
        return Plots(self)

    def summary(self) -> str:
        """What was found, in sentences."""
        look = _look_of(self)
        return "\n".join([look.line(self), *(f"{label}: {text}" for label, text in look.lines(self))])

    def to_dict(self) -> dict[str, Any]:
        """Numbers and words by name: lists, texts, numbers, None; what is not finite is None."""
        return {name: plain_value(value) for name, value in _look_of(self).facts(self).items()}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {_look_of(self).line(self)}>"

    def _repr_html_(self) -> str:
        return isthmus.provided(_LOOKS).card(self, _look_of(self))


@dataclass(frozen=True, slots=True)
class Plots:
    """The pictures of a result: called, the first of them; as attributes, each by its name."""

    result: Shown

    @property
    def _by_name(self) -> Mapping[str, Callable[[], Any]]:
        return _look_of(self.result).pictures(self.result)

    def __call__(self, name: str | None = None) -> Any:  # noqa: ANN401 - axes of a library that is not imported here
        """Draw the picture of that name, or the first one, and return its axes.

        Raises:
            ValueError: the result has no such picture.
        """
        known = self._by_name
        chosen = (
            name
            if name is not None
            else next((one for one in (*_look_of(self.result).first, *known) if one in known), "")
        )
        draw = known.get(chosen)
        if draw is None:
            raise ValueError(f"plot({chosen!r}): there is {', '.join(known) or 'no picture'}.")
        return draw()

    def __getattr__(self, name: str) -> Callable[[], Any]:
        if name.startswith("_") or name not in self._by_name:
            raise AttributeError(f"no picture is called {name!r}; there is {', '.join(self._by_name) or 'none'}.")

        def draw(*given: object, **named: object) -> Any:  # noqa: ANN401 - axes, as above
            if given or named:
                where = f"isthmus.plots.{name}(table, ax) draws a table of the result into axes of yours"
                raise TypeError(f"plot.{name}(): takes nothing; {where}.")
            return self._by_name[name]()

        return draw

    def __dir__(self) -> list[str]:
        return [*self._by_name]


def _look_of(result: Shown) -> Look:
    return isthmus.provided(_LOOKS).look_of(result)


def plain_value(value: object) -> object:
    """A value in terms of JSON: arrays as lists, enumerations by name unless they are text, None for not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain_value(inner) for key, inner in value.items()}
    if isinstance(value, Enum) and not isinstance(value, str):
        return value.name
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_value(inner) for inner in value]
    listed = getattr(value, "tolist", None)  # arrays and tensors, without importing their libraries
    return plain_value(listed()) if callable(listed) else str(value)


_TURNED = {
    chr(n): "?" for n in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
}  # they change the order of what is read
_OBEYED = {chr(n): "?" for n in (*range(32), *range(127, 160)) if chr(n) not in "\n\t"}
_HARMLESS = str.maketrans(_TURNED | _OBEYED)


def harmless(text: str) -> str:
    """The text with a ? for each character that a terminal obeys: names and settings may be those of somebody else."""
    return text.translate(_HARMLESS)
