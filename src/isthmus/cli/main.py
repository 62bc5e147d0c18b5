"""The entry point `isthmus`: signals heard before anything is imported, errors as one line, an end without loose ends.

Nothing but the standard library is imported here at once: a signal is to find its handler. The subcommands: `commands`;
errors in words: `complaints`; exit codes: `interrupts`.
"""

import atexit
import contextlib
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from isthmus.cli.complaints import complaint
from isthmus.cli.interrupts import ExitCode, ignore_signals, leave_on_signals
from isthmus.errors import DataError
from isthmus.writing.shown import harmless


class _Elsewhere(SourceFileLoader):
    """Matplotlib while it is imported from its own folder, where no matplotlibrc is."""

    def exec_module(self, module: ModuleType) -> None:
        # the file is looked for in the working folder first, whatever the environment says. Relative paths of other
        # threads would go astray meanwhile, so the folder is left only where there is such a file
        away = os.path.dirname(self.path)  # noqa: PTH120 - no pathlib: nothing heavy before a command
        with contextlib.chdir(away) if os.path.lexists("matplotlibrc") else contextlib.nullcontext():
            super().exec_module(module)


class _Finder:
    """Finds matplotlib as Python does, and has it loaded by `_Elsewhere`."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """What Python asks for every module."""
        found = PathFinder.find_spec(name, path, target) if name == "matplotlib" else None
        if found is not None and type(found.loader) is SourceFileLoader:
            found.loader = _Elsewhere(found.loader.name, found.loader.path)
        return found


def keep_matplotlib_out() -> None:
    """From now on matplotlib, when it is imported, reads no settings of the working folder."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


# on import, not in `main`: workers load the script of the process that started them, and this file with it
keep_matplotlib_out()


def run(arguments: Sequence[str]) -> int:
    """Run one command line; whatever is thrown becomes one line on stderr. Returns the exit code."""
    try:
        _check_working_folder()
        if "\0" in "".join(arguments):  # from a call in Python; some versions of typer end in a traceback
            raise DataError("an argument holds a NUL byte. No file and no name has one.")
        from isthmus.cli.commands import commands

        code = commands.main(args=list(arguments), prog_name="isthmus", standalone_mode=False)
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison] - where it was closed from the start
            sys.stdout.flush()
        return code if isinstance(code, int) else ExitCode.DONE
    except BaseException as error:  # everything ends here: see `complaints`
        if os.environ.get("ISTHMUS_DEBUG") and not isinstance(error, SystemExit):
            import traceback

            traceback.print_exception(error)
        text, code = complaint(error)
        if text:
            with suppress(OSError, ValueError, AttributeError):  # stderr may be full or closed
                print(harmless(f"isthmus: {text}"), file=sys.stderr, flush=True)
        return code


def _check_working_folder() -> None:
    """Refuse to begin in a folder that was removed: libraries that ask for it end the process in words of their own."""
    try:
        os.getcwd()  # noqa: PTH109 - no pathlib: nothing heavy before a command
    except FileNotFoundError:
        raise DataError("the working directory was removed. Change into one that is there.") from None


def main() -> None:
    """The console script.

    Leaving goes through Python's own end (threads joined, temporary folders removed) and then straight to the operating
    system: destructors of C++ libraries, run while a thread of theirs was still starting, aborted one exit in some
    hundred ("terminate called without an active exception").
    """
    ended: list[int] = []
    atexit.register(_leave, ended)  # registered first, so that it is called last
    leave_on_signals()
    _open_what_is_closed()
    _take_any_text()
    ended.append(run(sys.argv[1:]))
    ignore_signals()  # all is said and saved
    sys.exit(ended[0])


def _leave(ended: list[int]) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # a failure was said already
            stream.flush()
    os._exit(ended[0] if ended else ExitCode.BUG)


def _open_what_is_closed() -> None:
    """Let no file of ours get the number of a closed stdin, stdout or stderr, where libraries would write into it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # takes the lowest free number; writing into it fails, as it should
            if number == 1:
                sys.stdout = open(1, "w", closefd=False)  # noqa: PTH123, SIM115 - a descriptor, open to the end


def _take_any_text() -> None:
    """Let both streams escape what their encoding lacks: a folder with an odd name must not end a finished search."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
