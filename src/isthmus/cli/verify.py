"""`isthmus verify RUN_DIR`: the certificates of a run, checked by a program apart. The checks: `isthmus.recheck`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.interrupts import ExitCode
from isthmus.cli.voice import tell


def verify(run_dir: Annotated[Path, typer.Argument(help="Folder that discover wrote.")]) -> int:
    """Check every certificate of a run again, without the code that made it.

    Reads the stored weights and witnesses only. Exit codes: 0 all proved, 2 no such run or a damaged one, 3 refused.
    """
    from isthmus.cli.terminal import terminal
    from isthmus.errors import DataError
    from isthmus.recheck import check_run

    if not os.path.lexists(run_dir / "result.json"):
        raise DataError(f"{run_dir}: holds no finished run (no result.json). Give the folder that discover wrote.")
    try:
        checked = check_run(run_dir)
    except KeyError as error:
        raise DataError(f"{run_dir}: its files lack {error}, so nothing can be checked. Run discover again.") from error
    # of a crafted file anything may be of another type than it is of a run
    except (OSError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
        raise DataError(
            f"{run_dir}: cannot be checked ({' '.join(str(error).split())}). Run discover again."
        ) from error
    tell(certificates=[{"kind": c.kind, "claim": c.claim, "refusal": c.refusal} for c in checked])
    for line in checked:
        terminal().print(str(line), soft_wrap=True)
    return ExitCode.DOUBTFUL if any(line.refusal is not None for line in checked) else ExitCode.DONE
