"""Keeps a matplotlibrc of the working folder, which is where data lie, from being read by our commands.

As a library we leave it alone: there it belongs to the user's program. Pictures are the same either way:
`plots.style.own_settings`. Modules of that folder: `__main__`, `sweeps.children`.
"""

import contextlib
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any


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
