"""Question: is training as fast as its matrix products, and does `fit` reach the lower branch that the recipe misses?

Tables by name: `steps` (times over bare products and over eager torch), `graphs` (the same on a GPU), `growth` (the
same as N, L, w grow), `lbfgs` (its time beyond gradients), `pairs` (what its memory is good for), `W1`, `W1-small`,
`W2`, `W2-small` (gradients to pass the final objective of the papers' recipe, Adam at 1e-3 for 20,000 steps and
gradient descent for 10,000; five initialisations, one start each), `culling` (starts given up early), `raising` (starts
that ended too low), `memory`, `import`. All times are CPU seconds of one thread.

    python benchmarks/training.py [--quick] [--only steps growth lbfgs pairs W1-small ...]

Answer (an Intel Xeon of 2.5 GHz, one thread, a load of 5 to 17 on two cores, torch 2.13.0, November 2026; goals in
brackets). Steps, four runs: W1 takes 0.83 to 0.91 times its bare products by oneDNN [1.5], which is the slower library
there, 1.23 to 1.29 times those by torch.mm, and 0.58 to 0.62 of eager torch [0.65]. W2 (leaky, L = 50, width 200, 1000
rows) takes 1.13, 1.19, 1.25, 1.36 times its products by oneDNN [1.2, met in two of four], 1.20 to 1.53 times those by
torch.mm, and 0.70 to 0.80 of eager torch [0.55, missed: the products by torch.mm alone are 0.50 to 0.66 of it].
Growth of a gradient over its products as N, L, w grow tenfold: 0.82, 0.71, 0.62 of what it was,
leaky 0.69, 0.77, 0.34 [at most 1.1]. L-BFGS takes beyond its gradients 0.91 of their time on W1, 1.12 on W1-small, 0.67
on W2-small, 0.83 on a network of discover at N = 500 [0.2, missed: two passes over the pairs at the speed of memory,
docs/notes/training.md].

W1-small (true rank 5, ridge 0.05/9), each of five initialisations: fit passes the recipe's final objective after 2,331
to 2,362 gradients, 0.078 to 0.079 of its own [0.1], and ends after 3,204 at rank 5 with 0.34903 to 0.34996, where the
recipe ends at rank 6 with 0.35770 to 0.35817: lower by 2.16 to 2.54 %; 8 to 11 s of CPU for 92 to 166. Raising: three
starts of the network of discover, truncated to rank 4 of 5 and minimised with 300 gradients, end at rank 4 and within
0.06 % of each other with a rank added and polished (0.40579, 0.41469, 0.41004) as with as many gradients again
(0.40570, 0.41492, 0.40991): nothing was gained there. W1, three of five initialisations: the recipe ends at rank 6 with
0.36362 to 0.36382 after 270 to 309 s of CPU, fit passes that after 0.046 to 0.079 of its gradients and ends at rank 5
with 0.34694 to 0.34965 after 38 to 47 s, lower by 3.87 to 4.64 % [2.5]. Culling, eight starts of W1-small of which
three are too small: those three are given up after 1,200 gradients and the best is the same; 19,620 gradients for
22,492, 72.3 s of CPU for 74.8 (what was given up collapses, and would have stopped early). Pairs, on W1-small after
1,200 gradients: 3 pairs 0.35665, 5 0.35330, 8 0.35134, 12 0.35205, 20 0.35076, 40 0.35164, in 3.6, 3.3, 3.4, 4.0, 4.2,
5.6 ms a gradient. W2-small, the first initialisation, by Adam and plain L-BFGS: past the recipe (0.09576) after 1,060
gradients, 0.035 of its own [0.1]; 0.09168 after 3,000, 4.26 % below [20 %].

On an NVIDIA H100 (`graphs`, torch 2.11, one process): W1 takes 0.43 ms a gradient as a CUDA graph, 1.60 kernel by
kernel, 0.24 its bare products as a graph; a step 0.57 ms, eager torch 3.75. W2 2.00, 5.72, 1.46; 2.15 and 12.4. With 20
times as many rows 0.79, 1.24, 0.51; 0.90 and 3.14, and 12.5, 13.4, 9.2; 12.8 and 16.1.

Memory beyond what was in use over that of activations, parameters and state [1.3]: W1 with 20,000 rows 1.25 by Adam and
1.14 by L-BFGS; W2 1.89 and 1.10; W1 with width 1000 1.61 and 1.11. Where the parameters are most of it, Adam has four
vectors of their length, and the fit one more for a second attempt and others for a moment. Imports: `import isthmus`
takes 0.01 of import torch, `from isthmus import fit` 1.55. Not measured at full size: W2, pairs beyond W1-small.
"""

import argparse

import torch

from training_tables.footprint import print_imports, print_memory
from training_tables.lbfgs import print_overhead, print_pairs
from training_tables.search import searches
from training_tables.starts import print_culling, print_raising
from training_tables.steps import print_graphs, print_growth, print_steps

TABLES = {
    "steps": print_steps, "graphs": print_graphs, "growth": print_growth, "lbfgs": print_overhead,
    "pairs": print_pairs, **searches(),
    "culling": print_culling, "raising": print_raising, "memory": print_memory, "import": print_imports,
}  # fmt: skip


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, few repetitions: whether it runs")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES), help="tables to print")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    for name in arguments.only:
        TABLES[name](arguments.quick)


if __name__ == "__main__":
    main()
