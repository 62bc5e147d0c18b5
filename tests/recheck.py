"""`python tests/recheck.py WITNESSES.json`: the independent program of the package, run by its path alone."""

import runpy
from pathlib import Path

if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).parents[1] / "src" / "isthmus" / "recheck.py"), run_name="__main__")
