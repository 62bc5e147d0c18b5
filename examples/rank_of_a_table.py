"""How many combinations of the inputs does a table need? Discover it, look at the evidence, use the coordinates."""

import isthmus
from isthmus import tasks


def main() -> None:
    task = tasks.teacher(2, d_in=12, d_out=6, latent_dim=4, num_samples=240, noise=0.02, seed=1)
    found = isthmus.discover(task.x, task.y, ridge=3e-3, starts=1, limits=isthmus.Limits(evaluations=240))
    print(f"{found.rank} dimensions: {found.verdict.value}")
    for reason in found.reasons:
        print("-", reason)
    print("certified:", found.interval.lower, "to", found.interval.upper)
    print("coordinates of the first row:", found.transform(task.x[:1]).round(2))


if __name__ == "__main__":
    main()
