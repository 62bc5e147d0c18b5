"""Leaky residual networks (LEAKY-01): a stream that forgets at rate Lt and is rebuilt by every layer.

What their momenta and Hamiltonian say: `diagnostics.leaky_diagnosis`. Formulas: `theory.leaky`. The step sizes:
`networks.leaky_steps`. Moves that keep their function: `networks.leaky_moves`.
"""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from isthmus.networks.arguments import check_fits
from isthmus.networks.devices import drawn_on_cpu
from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.layers import LayerState, check_features
from isthmus.networks.leaky_steps import SCHEMES, check_leak, step_sizes
from isthmus.networks.network import check_numbers_of
from isthmus.networks.residual_rewriting import Map, chained, narrowed
from isthmus.networks.residual_stream import ResidualStream
from isthmus.theory.inputs import Real, check_finite
from isthmus.theory.representation_costs import lifted

MAPS = ("fixed", "learned")


class LeakyResNet(ResidualStream):
    """Leaky residual network of `depth` layers between an input and an output map.

        A_0 = x E^T;   A_l = (1 - rho_l Lt) A_{l-1} + rho_l sigma(A_{l-1}) W_l^T;   f(x) = A_L U^T
        sigma(A) = [relu(A), 1];   the bias of W_l = [V_l, b_l] is its last column, and is penalised
        penalty = (1 / (2 Lt)) sum rho_l |W_l|_F^2  (+ 1/2 |E|^2 + 1/2 |U|^2 where the maps are learned)

    Lt = 0 is a plain ResNet, whose penalty has 1/2 in place of 1 / (2 Lt); rho_l Lt = 1 in every layer a fully
    connected network with weights rho_l W_l.

    Exponential Euler makes the leak exact: it is the same network with steps (1 - exp(-rho_l Lt)) / Lt.

    Args:
        d_in: number of input features, at most `width`.
        d_out: number of outputs, at most `width`.
        width: width of the stream.
        depth: number of layers L, not counting the two maps.
        effective_depth: Lt >= 0, the strength of the leak.
        steps: "equidistant", "irregular" (longer in the middle), "adaptive" (equidistant until `fit` moves them), or a
            tensor of `depth` positive numbers with sum 1.
        irregularity: a in [0, 1] of irregular steps, rho_l ~ 1 + a (1/4 - |p_l - 1/2|); 0 is equidistant.
        maps: "fixed" (random, semi-orthogonal, no parameters) or "learned" (the same at the start, penalised).
        bias: whether layers have a bias.
        scheme: "euler" (needs rho_l Lt <= 1) or "exponential".
        seed: seed of the initial weights: V = Lt (I + noise of variance 1/(4 width)), at Lt = 0 the noise alone, zero
            biases, and of the maps.
        dtype: parameter type, torch's default unless given.

    Attributes:
        smoothing: eps of (t + sqrt(t^2 + eps^2)) / 2, which stands for the relu while a solver follows eps to its end.
        waist: leads the stream through a few dimensions behind one layer; None unless `narrow` put one there.

    Raises:
        ValueError: effective_depth < 0, depth < 1, width below a data dimension, steps that are negative or do not sum
            to 1, rho_l Lt > 1 with "euler", an unknown word.

    >>> net = isthmus.LeakyResNet(4, 2, width=6, depth=3, effective_depth=2.0, seed=0)
    >>> net(torch.zeros(5, 4)).shape
    torch.Size([5, 2])
    """

    smoothing: Tensor
    steps: Tensor

    @drawn_on_cpu
    def __init__(  # noqa: PLR0913 - the arguments are a public contract
        self,
        d_in: int,
        d_out: int,
        *,
        width: int,
        depth: int,
        effective_depth: Real,
        steps: str | Tensor = "equidistant",
        irregularity: Real = 1.0,
        maps: str = "fixed",
        bias: bool = True,
        scheme: str = "euler",
        seed: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_numbers_of("LeakyResNet", d_in=d_in, d_out=d_out, width=width, depth=depth, seed=seed, dtype=dtype)
        _check_leaky(d_in, d_out, width, depth, maps, scheme)
        check_finite("LeakyResNet", "effective_depth", effective_depth, least=0.0)
        Lt = float(effective_depth)
        self.d_in, self.d_out, self.width, self.matrices_per_layer = d_in, d_out, width, 1
        self.effective_depth, self.maps, self.has_bias, self.scheme = Lt, maps, bias, scheme
        check_fits(Lt, f"LeakyResNet(effective_depth={Lt:g})", dtype, squared=True)
        sizes = step_sizes(steps, depth, irregularity=irregularity)
        self.adaptive = isinstance(steps, str) and steps == "adaptive"
        check_leak(sizes, Lt, scheme)
        dtype = dtype or torch.get_default_dtype()
        self.register_buffer("steps", sizes.to(dtype))
        self.register_buffer("smoothing", torch.zeros((), dtype=dtype))
        generator = torch.Generator().manual_seed(torch.seed() % 2**63 if seed is None else seed)
        noise = torch.randn(depth, width, width, generator=generator, dtype=dtype) / (2 * width**0.5)
        V = Lt * (torch.eye(width, dtype=dtype) + noise) if Lt else noise
        b = V.new_zeros(depth, width, 1 if bias else 0)
        self.weights = nn.Parameter(torch.cat([V, b], -1))
        # row by row, as files keep them: other strides take other kernels, and a copy differs in its last bit
        E = torch.linalg.qr(torch.randn(width, d_in, generator=generator, dtype=dtype)).Q.contiguous()
        U = torch.linalg.qr(torch.randn(width, d_out, generator=generator, dtype=dtype)).Q.mT.contiguous()
        learned = maps == "learned"
        self.embedding = nn.Parameter(E, requires_grad=learned)
        self.unembedding = nn.Parameter(U, requires_grad=learned)
        self.waist = None

    @property
    def depth(self) -> int:
        """Number of layers L, without the two maps."""
        return len(self.weights)

    @property
    def norm_divisor(self) -> float:
        """What the squared norms are divided by in the penalty, besides 2: Lt, or 1 without a leak."""
        return self.effective_depth or 1.0

    def layer_steps(self) -> Float[Tensor, " depth"]:
        """The step of explicit Euler that each layer makes: rho_l, or (1 - exp(-rho_l Lt)) / Lt if exponential."""
        Lt = self.effective_depth
        return self.steps if self.scheme == "euler" or not Lt else -torch.expm1(-self.steps * Lt) / Lt

    def layer_states(self, x: Float[Tensor, "n d_in"]) -> list[LayerState]:
        """See `isthmus.walk`: input map, L layers, output map; the activation of layer l is the stream A_l.

        The preactivation is what the layer adds per unit of time, sigma(A_{l-1}) W_l^T.
        """
        check_features("LeakyResNet(x)", x, self.d_in)
        a = self.behind(0, x @ self.embedding.mT)
        states = [LayerState(1, a, a, self.embedding, None, "embedding")]
        eps, Lt = float(self.smoothing), self.effective_depth
        for l, (W, rho) in enumerate(zip(self.weights.unbind(), self.layer_steps().tolist(), strict=True)):
            z = lifted(a, bias=self.has_bias, smoothing=eps) @ W.mT
            a = self.behind(l + 1, torch.add(z * rho, a, alpha=1 - rho * Lt))
            bias = W[:, -1] if self.has_bias else None
            states.append(LayerState(l + 2, z, a, W[:, : self.width], bias, f"weights.{l}"))
        y = a @ self.unembedding.mT
        return [*states, LayerState(self.depth + 2, y, y, self.unembedding, None, "unembedding")]

    def penalty(self) -> Float[Tensor, ""]:
        """(1 / (2 Lt)) sum rho_l |W_l|^2, and half the squared norms of learned maps; `ridge` multiplies it."""
        layers = (self.layer_steps() * self.weights.square().sum((1, 2))).sum() / (2 * self.norm_divisor)
        if self.maps == "fixed":
            return layers
        return layers + (self.embedding.square().sum() + self.unembedding.square().sum()) / 2

    def as_fully_connected(self) -> FullyConnected:
        """See `isthmus.networks.as_fully_connected`."""
        if float(self.smoothing):
            raise ValueError(
                f"as_fully_connected: needs a LeakyResNet with an exact relu; its smoothing is "
                f"{float(self.smoothing):g}. Train it to the end with PreconditionedLBFGS(smoothing=(..., 0.0))."
            )
        W, width, Lt = self.weights.detach().double(), self.width, self.effective_depth
        eye = torch.eye(width, dtype=torch.float64)
        maps: list[Map] = [(self.embedding.detach().double(), eye.new_zeros(width))]
        for weight, rho in zip(W, self.layer_steps().double().tolist(), strict=True):
            kept = (1 - rho * Lt) * eye
            bias = rho * weight[:, width] if self.has_bias else eye.new_zeros(width)
            maps.append((torch.cat([kept + rho * weight[:, :width], -kept], 1), bias))
        end = self.unembedding.detach().double()
        parts = [torch.cat([eye, -eye]) for _ in maps]
        return chained(
            narrowed(maps, self.waist), [(p, p.new_zeros(len(p))) for p in parts],
            (torch.cat([end, -end], 1), end.new_zeros(self.d_out)), linear=False,
        )  # fmt: skip

    def description(self) -> dict[str, object]:
        """See `Network`."""
        self.check_storable()
        return {
            "dimensions": [self.d_in, self.width, self.d_out],
            "depth": self.depth,
            "class": "LeakyResNet",
            "effective_depth": self.effective_depth,
            "maps": self.maps,
            "bias": self.has_bias,
            "scheme": self.scheme,
        }

    @classmethod
    def from_description(
        cls, description: Mapping[str, Any], tensors: Mapping[str, Tensor], name: str
    ) -> "LeakyResNet":
        """See `Network`."""
        d_in, width, d_out = cls.check_maps(description, tensors, name)
        depth, bias = int(description["depth"]), bool(description["bias"])
        if tuple(tensors["weights"].shape) != (depth, width, width + bias):
            raise ValueError(f"{name}: weights of shape {tuple(tensors['weights'].shape)} do not fit depth {depth}")
        network = cls(
            d_in, d_out, width=width, depth=depth, effective_depth=float(description["effective_depth"]),
            steps=tensors["steps"], maps=description["maps"], bias=bias, scheme=description["scheme"], seed=0,
            dtype=tensors["embedding"].dtype,
        )  # fmt: skip
        network.load_state_dict(dict(tensors))
        return network

    def extra_repr(self) -> str:
        """Dimensions, depth and leak."""
        return (
            f"dimensions={(self.d_in, self.width, self.d_out)}, depth={self.depth}, "
            f"effective_depth={self.effective_depth}, maps={self.maps}, scheme={self.scheme}, bias={self.has_bias}"
        )


def _check_leaky(d_in: int, d_out: int, width: int, depth: int, maps: str, scheme: str) -> None:
    if min(d_in, d_out) < 1:
        raise ValueError(f"LeakyResNet: needs d_in, d_out >= 1; got {d_in} and {d_out}.")
    if width < max(d_in, d_out):
        raise ValueError(
            f"LeakyResNet(width={width}): needs width >= {max(d_in, d_out)}, the larger of d_in={d_in} and "
            f"d_out={d_out}: a narrower stream is a bottleneck of its own. Raise width."
        )
    if depth < 1:
        raise ValueError(f"LeakyResNet(depth={depth}): needs depth >= 1; depth counts layers without the two maps.")
    if maps not in MAPS:
        raise ValueError(f"LeakyResNet(maps={maps!r}): needs one of {', '.join(map(repr, MAPS))}.")
    if scheme not in SCHEMES:
        raise ValueError(f"LeakyResNet(scheme={scheme!r}): needs one of {', '.join(map(repr, SCHEMES))}.")
