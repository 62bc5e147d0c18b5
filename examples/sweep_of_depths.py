"""How do depth and ridge move the rank? Four runs, their numbers as a table, and later only the new ones."""

import tempfile
from dataclasses import replace
from pathlib import Path

import isthmus

PLAN = Path(__file__).with_name("depth_sweep.toml")


def main() -> None:
    plan = isthmus.Plan.read(PLAN)
    with tempfile.TemporaryDirectory() as folder:
        found = isthmus.sweep(plan, out=folder, workers=0)
        best = found["objective"].min("seed")
        print(best.to_dataframe().round(4))
        wider = replace(plan, grid={**plan.grid, "seed": [0, 1]})
        more = isthmus.sweep(wider, out=folder, workers=0)
        print(f"{more['objective'].size} runs, of which {found['objective'].size} were there already")
        print("same numbers as before:", bool((more.sel(seed=[0])["objective"] == found["objective"]).all()))


if __name__ == "__main__":
    main()
