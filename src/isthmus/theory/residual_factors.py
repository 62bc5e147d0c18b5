"""Linear residual networks as their weights: product, norm, and the weights that attain `resnet_cost`.

Only the linear networks of the closed forms; trainable ones are `networks.ResNet`.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.theory.inputs import Real, check_block_depth, check_depth, check_positive, check_tensor
from isthmus.theory.residual_costs import resnet_growth
from isthmus.theory.spectra import kept_singular_values


@dataclass(frozen=True, slots=True)
class ResnetFactors:
    """Weights of a linear residual network, x -> W_u (I + B_L) ... (I + B_1) W_e x.

    Attributes:
        embedding: W_e, shape (width, d_in).
        blocks: one tuple of matrices per block, inner matrix first: (W,) with B = W, or (W_1, W_2) with B = W_2 W_1.
        unembedding: W_u, shape (d_out, width).
    """

    embedding: Tensor
    blocks: tuple[tuple[Tensor, ...], ...]
    unembedding: Tensor

    def product(self) -> Float[Tensor, "d_out d_in"]:
        """The map that the network computes (RES-01, RES-02)."""
        state = self.embedding
        for block in self.blocks:
            state = state + (block[0] @ state if len(block) == 1 else block[1] @ (block[0] @ state))
        return self.unembedding @ state

    def cost(self, *, residual_weight: Real) -> Float[Tensor, ""]:
        """The norm that `resnet_cost` minimises: 1/2 |W_u|^2 + 1/2 |W_e|^2 + the block term (RES-01, RES-02).

        Block term: lam L sum_i |W_i|^2 for blocks of one matrix, (lam/2) sum_i |W_i1|^2 + |W_i2|^2 for blocks of two.

        Raises:
            ValueError: `residual_weight` <= 0.
        """
        check_positive("ResnetFactors.cost", "residual_weight", residual_weight)
        ends = (self.unembedding.square().sum() + self.embedding.square().sum()) / 2
        if not self.blocks:
            return ends
        weight = residual_weight * (len(self.blocks) if len(self.blocks[0]) == 1 else 0.5)
        return ends + weight * torch.stack([w.square().sum() for block in self.blocks for w in block]).sum()


def optimal_resnet_factors(
    matrix: Float[Tensor, "d_out d_in"],
    *,
    residual_weight: Real,
    depth: int,
    block_depth: int,
    width: int | None = None,
) -> ResnetFactors:
    """Weights of a linear residual network with product `matrix` and norm `resnet_cost` (*exact*).

        A = U diag(s) V^T:   W_u = U diag(sqrt(s (1 + alpha/L)^(-L))),  W_e its mirror image on V^T;
        W_i = diag(alpha/L) for blocks of one matrix, W_i1 = W_i2 = diag(sqrt(alpha/L)) for blocks of two

    Args:
        matrix: the map A; singular values at the rounding of the SVD are dropped.
        residual_weight: lam > 0, as in `resnet_cost`.
        depth: number of residual blocks L, at least 1.
        block_depth: weight matrices per block, 1 or 2.
        width: width of the residual stream, at least rank A; by default rank A (and at least 1).

    Returns:
        The weights; all minimisers are these up to an orthogonal change of the residual basis.

    Raises:
        ValueError: `residual_weight` <= 0, `depth` < 1, block depth not 1 or 2, `width` < rank A, NaN or infinity.
        TypeError: complex or integer tensor. ShapeError: not a matrix.

    Accuracy: product and norm to 1e-12 relative. Source: Boix-Adsera 2025, Lemma 2.6. Test: RES-04.

    >>> len(theory.optimal_resnet_factors([[4.0]], residual_weight=0.1, depth=3, block_depth=1).blocks)
    3
    """
    call = "optimal_resnet_factors"
    check_tensor(call, "matrix", matrix, ndim=2)
    check_positive(call, "residual_weight", residual_weight)
    check_depth(call, depth)
    check_block_depth(call, block_depth)
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    num = int(kept_singular_values(call, matrix)[1].sum())
    width = max(num, 1) if width is None else width
    if width < num:
        raise ValueError(f"{call}(width={width}): needs width >= {num}, the rank of the matrix; got {width}. Widen it.")
    s = values[:num]
    growth = resnet_growth(s, residual_weight=residual_weight, depth=depth, block_depth=block_depth)
    carried = s.sqrt() * torch.exp(-depth / 2 * torch.log1p(growth / depth))
    embedding = torch.cat([carried[:, None] * right[:num], s.new_zeros(width - num, matrix.shape[1])])
    unembedding = torch.cat([left[:, :num] * carried, s.new_zeros(matrix.shape[0], width - num)], 1)
    per_block = growth / depth if block_depth == 1 else (growth / depth).sqrt()
    weight = torch.diag(torch.cat([per_block, s.new_zeros(width - num)]))
    return ResnetFactors(embedding, ((weight,) * block_depth,) * depth, unembedding)
