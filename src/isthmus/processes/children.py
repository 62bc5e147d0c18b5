"""How processes of ours start Python again: no file of the working folder is a module to it.

Who starts them: `pool`, `sweeps.schedulers`, `sweeps.slurm`, `figures.processes`. Only `--factory` searches that
folder, and says so.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager

_VARIABLE = "PYTHONSAFEPATH"
SAFE_LINE = f"export {_VARIABLE}=1"  # the same in a job's script


@contextmanager
def safe_path() -> Generator[None]:
    """While it lasts, Python that this process starts leaves the working folder out of its path.

    multiprocessing starts workers as `python -c`, which searches that folder first: a `socket.py` beside the data ran
    in each of them. The variable goes again with the block, as the rest of the user's program may want another.
    """
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_VARIABLE, None)
        else:
            os.environ[_VARIABLE] = before
