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
        axes = [f"depth {one['depth']}, ridge {one['ridge']}" for one in plan.settings]
        print(found[["objective", "rank", "outcome"]].assign_coords(run=axes).to_dataframe().round(4))
        wider = replace(plan, settings=[{**one, "seed": seed} for seed in (0, 1) for one in plan.settings])
        more = isthmus.sweep(wider, out=folder, workers=0)
        print(f"{more.sizes['run']} runs, of which {found.sizes['run']} were there already")
        print("same numbers as before:", bool((more["objective"].values[:4] == found["objective"].values).all()))
        spread = abs(more["objective"].values[4:] / more["objective"].values[:4] - 1).max()
        print("another start ends at the same objective:", bool(spread < 1e-6))


if __name__ == "__main__":
    main()
