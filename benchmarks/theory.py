"""Question: how much do the costs and bounds of `isthmus.theory` add to the SVD or matrix product they rest on?

Answer: at 10,000 Jacobians 50 x 50 little: .8 to 1.1 times the SVD, 1.1 to 1.8 times the products. None exceeds 2. The
machine was shared (the SVD itself took 1.0 to 4.1 s); at 500 Jacobians and less load the ratios are 1.0 to 1.2, and 1.7
for `idempotency_defect`.
Intel Xeon, one thread of two busy cores, torch 2.13.0 CPU, November 2026, 3 interleaved pairs.

Each row times a function and its bare kernel in turn, in one process and thread, and gives the median of the ratios.
`--quick` takes 500 Jacobians instead of 10,000.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from isthmus import theory

SIDE, DEPTH = 50, 8
Job = tuple[str, str, Callable[[], object], Callable[[], object]]


def seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def jobs(num: int) -> list[Job]:
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    jacobians = normal(num, SIDE, SIDE)
    weights = [normal(SIDE, SIDE) / SIDE**0.5 for _ in range(DEPTH)]
    patterns = [(normal(num, SIDE) > 0).double() for _ in range(DEPTH - 1)]
    suffix = theory.suffix_jacobians(weights, patterns)
    activations = [normal(num, SIDE) for _ in range(DEPTH)]

    def svd() -> object:
        return torch.linalg.svdvals(jacobians)

    def products(num_products: int) -> object:
        product = weights[-1].expand(num, SIDE, SIDE).contiguous()
        for weight in weights[:num_products]:
            product = product @ weight
        return product

    def squares() -> object:
        return [torch.linalg.vecdot(j.flatten(1), j.flatten(1)) for j in suffix]

    lam = {"residual_weight": 0.1}
    return [
        ("linear_cost", "svdvals", svd, lambda: theory.linear_cost(jacobians, depth=DEPTH)),
        ("linear_cost_expansion", "svdvals", svd, lambda: theory.linear_cost_expansion(jacobians)),
        ("schatten_lower_bound", "svdvals", svd, lambda: theory.schatten_lower_bound(jacobians, depth=DEPTH)),
        ("regularity_lower_bound", "svdvals", svd, lambda: theory.regularity_lower_bound(jacobians, rank=5, depth=8)),
        ("log_pseudo_determinant", "svdvals", svd, lambda: theory.log_pseudo_determinant(jacobians, rank=5)),
        ("stable_rank_nuclear", "svdvals", svd, lambda: theory.stable_rank_nuclear(jacobians)),
        (
            "jacobian_rank_lower_bound",
            "svdvals",
            svd,
            lambda: theory.jacobian_rank_lower_bound(jacobians, tolerance=0.1),
        ),
        (
            "spectral_penalty, 1 matrix",
            "svdvals",
            svd,
            lambda: theory.spectral_penalty(jacobians, block_depth=1, **lam),
        ),
        (
            "spectral_penalty, 2, depth 9",
            "svdvals",
            svd,
            lambda: theory.spectral_penalty(jacobians, depth=9, block_depth=2, **lam),
        ),
        (
            "resnet_jacobian_lower_bound",
            "svdvals",
            svd,
            lambda: theory.resnet_jacobian_lower_bound(jacobians, depth=9, block_depth=1, **lam),
        ),
        ("curvature_lower_bound", "svdvals", svd, lambda: theory.curvature_lower_bound(jacobians, depth=DEPTH)),
        (
            "spectral_gap_rank + svdvals",
            "svdvals",
            svd,
            lambda: theory.spectral_gap_rank(torch.linalg.svdvals(jacobians)),
        ),
        (
            "trailing bound + svdvals",
            "svdvals",
            svd,
            lambda: theory.trailing_singular_value_bound(torch.linalg.svdvals(jacobians), penalty=1e4, depth=DEPTH),
        ),
        ("idempotency_defect", "matmul", lambda: jacobians @ jacobians, lambda: theory.idempotency_defect(jacobians)),
        ("suffix_jacobians", "6 matmuls", lambda: products(6), lambda: theory.suffix_jacobians(weights, patterns)),
        ("piecewise_jacobian", "7 matmuls", lambda: products(7), lambda: theory.piecewise_jacobian(weights, patterns)),
        ("tangent_kernel_trace", "squares", squares, lambda: theory.tangent_kernel_trace((activations, suffix))),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Costs and bounds against the bare SVD or product they rest on.")
    parser.add_argument("--quick", action="store_true", help="500 Jacobians instead of 10,000")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    num = 500 if arguments.quick else 10_000
    print(f"{num} Jacobians {SIDE} x {SIDE}, float64, one thread, median of {arguments.repeats} interleaved pairs")
    print(f"{'function':32}{'kernel':>12}{'kernel ms':>12}{'ours ms':>12}{'ratio':>8}")
    for name, kernel, bare, ours in jobs(num):
        bare(), ours()
        pairs = [(seconds(bare), seconds(ours)) for _ in range(arguments.repeats)]
        below, above = (1e3 * statistics.median(side) for side in zip(*pairs, strict=True))
        ratio = statistics.median(o / b for b, o in pairs)
        print(f"{name:32}{kernel:>12}{below:12.1f}{above:12.1f}{ratio:8.2f}", flush=True)


if __name__ == "__main__":
    main()
