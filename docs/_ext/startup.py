"""Run by the kernel of each page before its first cell: `%%bash` as a terminal whose words come in one piece.

IPython's own hands them on as they come, and what is merged afterwards has breaks in the middle of words.
"""

import os
import subprocess
import sys

from IPython.core.magic import register_cell_magic

COLOURS = ("FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PY_COLORS")  # which ipykernel asks for


@register_cell_magic
def bash(_line: str, cell: str) -> None:
    """Run the cell; a command that fails ends it, and the build."""
    environment = {name: value for name, value in os.environ.items() if name not in COLOURS}
    done = subprocess.run(["bash", "-e", "-c", cell], env=environment, capture_output=True, text=True, check=False)
    sys.stdout.write(done.stdout.strip("\n") + "\n")
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr}")
