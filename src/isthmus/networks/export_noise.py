"""What torch's exporters say to their own developers, kept from users: narrow filters, each with its reason.

Nothing else is silenced: a warning about the user's module passes.
"""

import io
import logging
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout

from isthmus.processes.shared_state import held_in_common, silenced

_MESSAGES = (
    # torch 2.13 copies and compares its own tree specifications through the name that it deprecates
    (FutureWarning, r".*LeafSpec.*"),
    (DeprecationWarning, r".*LeafSpec.*"),
    # the exporters of torch 2.13 and onnxscript .6 call functions that Python 3.12 and 3.13 deprecate
    (DeprecationWarning, r".*torch\.jit\.\w+.* is deprecated.*"),
    (DeprecationWarning, r".*ast\.(Str|Num|NameConstant|Bytes).*"),
)
# they log what their fallbacks did, or that torchvision is not installed
_LOGGERS = ("torch.fx", "torch.export", "torch._export", "torch.onnx", "onnxscript", "torch._dynamo")


@contextmanager
def without_deprecations() -> Generator[None]:
    """None of the exporters' own code inside the block."""
    with ExitStack() as stack:
        for category, message in _MESSAGES:
            stack.enter_context(silenced(category, message))
        yield


@contextmanager
def without_export_noise() -> Generator[None]:
    """No deprecations of the exporters' own code, no log lines and no prints inside the block."""
    with without_deprecations(), _unsaid():
        yield


@held_in_common
@contextmanager
def _unsaid() -> Generator[None]:
    loggers = _loggers_with_levels()
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        # a failing export prints the graph it had so far
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _loggers_with_levels() -> list[logging.Logger]:
    """The loggers of the exporters, and those below them that have a level of their own: the others take it from there.

    A level that is set costs a look at every logger of the process, and there are hundreds.
    """
    below = tuple(f"{name}." for name in _LOGGERS)
    known = [found for name, found in logging.Logger.manager.loggerDict.items() if name.startswith(below)]
    own = [found for found in known if isinstance(found, logging.Logger) and found.level != logging.NOTSET]
    return [*map(logging.getLogger, _LOGGERS), *own]
