"""What all threads of a process share, changed by blocks of several threads at once and left as it was found.

`warnings.catch_warnings` and its kin save on entry and restore on exit: of two that overlap in two threads the later
one restores what the earlier one had changed, for good. Here warnings are silenced, raised or heard in the thread of
the block alone, and what can only be changed for all is changed by the first who enters and put back by the last who
leaves. Threads inside torch: `training.threads`.
"""

import functools
import re
import threading
import warnings
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any, Literal, ParamSpec

_P = ParamSpec("_P")
Told = tuple[type[Warning], str]


def held_in_common(block: Callable[_P, AbstractContextManager[Any]]) -> Callable[_P, AbstractContextManager[None]]:
    """A block that the first of those who are in it enters, with these arguments, and the last one leaves.

    Args:
        block: makes it; what it gives reaches nobody. Its arguments can be hashed.
    """
    lock, inside = threading.Lock(), dict[object, tuple[int, ExitStack]]()

    @contextmanager
    def shared(*arguments: _P.args, **named: _P.kwargs) -> Generator[None]:
        key = (arguments, *sorted(named.items()))
        with lock:
            count, stack = inside.get(key, (0, ExitStack()))
            if not count:
                stack.enter_context(block(*arguments, **named))
            inside[key] = count + 1, stack
        try:
            yield
        finally:
            with lock:
                count, stack = inside.pop(key)
                if count > 1:
                    inside[key] = count - 1, stack
                else:
                    stack.close()

    return functools.wraps(block)(shared)


class _HeededKind(type):
    """Of the category of a filter: another is a kind of it where its heed says so."""

    heed: "_Heed"

    def __subclasscheck__(cls, subclass: type) -> bool:
        return cls.heed.takes(subclass)


class _Heed:
    """Stands in `warnings.filters`, as text and by its kind, for warnings of one thread; to others it matches nothing.

    Python asks a filter `match` for the text first, then whether the category is a subclass of its own. Others copy
    filters (scikit-learn those of its caller): they want a `pattern` and a class.
    """

    def __init__(self, category: type[Warning], message: str, heard: list[Told] | None) -> None:
        self.thread, self.text, self.is_over = threading.get_ident(), "", False
        self.category, self.message, self.heard = category, re.compile(message, re.IGNORECASE), heard
        self.pattern = message
        self.kind = _HeededKind("Heeded", (Warning,), {"heed": self})

    def match(self, text: str) -> bool:
        if not self._is_here():
            return False
        self.text = text
        return self.message.match(text) is not None

    def takes(self, category: type) -> bool:
        matches = self._is_here() and issubclass(category, self.category)
        if not matches or self.heard is None:
            return matches
        text, self.text = self.text, ""
        if text:  # else it was a copy of this filter that was asked: nobody knows what there would be to hear
            self.heard.append((category, text))
        return bool(text)

    def _is_here(self) -> bool:
        return not self.is_over and self.thread == threading.get_ident()


@contextmanager
def _heeded(action: Literal["ignore", "error"], heed: _Heed, *, last: bool = False) -> Generator[None]:
    filters: Any = warnings.filters  # a list, which its type does not promise
    whole = (action, heed, heed.kind, None, 0)
    warnings.simplefilter(action, heed.kind)  # so what was told once is told again
    with suppress(ValueError):
        filters.remove((action, None, heed.kind, None, 0))
    filters.insert(len(filters) if last else 0, whole)
    try:
        yield
    finally:
        heed.is_over = True
        for place in (filters, warnings.filters):  # another thread may have put a copy there, or the list itself back
            with suppress(ValueError):
                place.remove(whole)  # pyright: ignore[reportAttributeAccessIssue]


def silenced(category: type[Warning] = Warning, message: str = "") -> AbstractContextManager[None]:
    """No such warning of this thread is shown inside the block.

    Args:
        category: of the warnings.
        message: a regular expression of how their texts begin.
    """
    return _heeded("ignore", _Heed(category, message, None))


def raised(category: type[Warning]) -> AbstractContextManager[None]:
    """Such warnings of this thread are errors inside the block."""
    return _heeded("error", _Heed(category, "", None))


@contextmanager
def heard(*, unless_filtered: bool = False) -> Generator[list[Told]]:
    """Categories and texts of the warnings of this thread inside the block, which reach nobody else.

    Args:
        unless_filtered: only those about which no filter of the caller's says anything.
    """
    told: list[Told] = []
    with _heeded("ignore", _Heed(Warning, "", told), last=unless_filtered):
        yield told
