"""Rows of the ledger that rest on the layers of a network at the samples: kernels, representations, leaky streams."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from isthmus.theory.bottleneck import activation_norm_bound, bottleneck_certificate, representation_tail_bound
from isthmus.theory.enclosures import rounded_up
from isthmus.theory.leaky_bounds import layer_gamma
from isthmus.theory.leaky_stability import negative_energy_fraction
from isthmus.theory.ledger_entries import (
    Entry,
    certain_rank,
    jacobians_of,
    needs_layers,
    needs_rank,
    needs_stream,
    of_full_rank,
    witness,
)
from isthmus.theory.ledger_jacobians import layers_of, rounding_of_layers
from isthmus.theory.linearisation import suffix_jacobians
from isthmus.theory.narrow_kernels import narrow_kernel_bound
from isthmus.theory.network_facts import NetworkFacts
from isthmus.theory.norm_bounds import spectral_gap_bound
from isthmus.theory.representation_costs import cost_of_identity, features
from isthmus.theory.representations import nonlinearity_impact, spectral_gap_ratios
from isthmus.theory.scales import norm
from isthmus.theory.spectra import log_pseudo_determinant, stable_rank_nuclear
from isthmus.theory.tangent_kernels import Layers, sharpness, tangent_kernel, tangent_kernel_trace

GRAM = 2000  # side of the largest tangent Gram matrix whose eigenvalues are taken
BALANCED = 1e-6  # relative difference of a neuron's squared norms that is no imbalance
HALF = 0.5  # share of the layers that FC-40 is said of


def _kernel_layers(found: NetworkFacts) -> Layers:
    layers = layers_of(found)
    return layers.enters, suffix_jacobians(layers.weights, layers.derivatives)


def _over_layers(found: NetworkFacts, of_layers: Callable[..., Tensor]) -> Tensor:
    """A sum over the layers: of those with a bias, and of those without."""
    enters, suffix = _kernel_layers(found)
    parts: list[Tensor] = []
    for biased in (True, False):
        chosen = [l for l, bias in enumerate(layers_of(found).biases) if (bias is not None) is biased]
        if chosen:
            parts.append(of_layers(([enters[l] for l in chosen], [suffix[l] for l in chosen]), bias=biased))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _traces(found: NetworkFacts) -> Tensor:
    return _over_layers(found, tangent_kernel_trace)


def _sharpness(found: NetworkFacts) -> Tensor:
    return sharpness(_over_layers(found, tangent_kernel))


def _small(found: NetworkFacts) -> str:
    side = len(jacobians_of(found)) * jacobians_of(found).shape[1]
    return "" if side <= GRAM else f"needs at most {GRAM} samples times outputs; there are {side}"


def _balanced(found: NetworkFacts) -> str:
    layers = layers_of(found)
    for weight, bias, after in zip(layers.weights, layers.biases, layers.weights[1:], strict=False):
        into = weight.square().sum(1) + (0.0 if bias is None else bias.square())
        out = after.square().sum(0)
        if bool(((into - out).abs() > BALANCED * into.maximum(out)).any()):
            return "needs balanced neurons: isthmus.rebalance"
    return ""


def _biases(found: NetworkFacts) -> str:
    every = all(bias is not None for bias in layers_of(found).biases)
    return "" if every else "is proved with biases of every layer in the tangent kernel"


def _activation_bounds(found: NetworkFacts) -> Tensor:
    """B(x) of FC-39 at the samples of full rank."""
    layers, k, rows = layers_of(found), certain_rank(found), of_full_rank(found)
    logs = log_pseudo_determinant(jacobians_of(found)[rows], rank=k)
    scale = float(_traces(found)[rows].max()) / layers.depth * _price_of_imbalance(layers.weights)
    return activation_norm_bound(logs, rank=k, excess=layers.penalty - k * layers.depth, tangent_scale=scale)


def _price_of_imbalance(weights: Sequence[Tensor]) -> float:
    """What B(x) of FC-39 is more where balance is not exact: q^(-L).

    Theorem 7 takes from balance that |W_l| does not fall with l, so that the mean of the first l of |W_i|^2 is at most
    that of all. Where it falls by a factor q = min_{i < j} |W_j|^2 / |W_i|^2 < 1, the mean of the first l is at most
    1/q times that of all, and (1 + c1 / (k L))^l at most q^(-L) times as large.
    """
    squares = torch.stack([weight.double().square().sum() for weight in weights])
    least = float((squares / squares.cummax(0).values).min())
    rounding = 2 * (max(weight.numel() for weight in weights) + 4) * torch.finfo(torch.float64).eps
    return math.exp(-len(weights) * (math.log(least) + math.log1p(-rounding))) * (1 + rounding)


def _tails(found: NetworkFacts) -> Tensor:
    layers, i = layers_of(found), witness(found)
    pattern = [derivative[i] for derivative in layers.derivatives]
    bound = bottleneck_certificate(layers.weights, layers.biases, pattern, rank=certain_rank(found)).bound
    return representation_tail_bound(
        _activation_bounds(found), certificate_bound=bound, depth=layers.depth, fraction=HALF
    )


def _non_negative_slope(found: NetworkFacts) -> str:
    return "" if layers_of(found).negative_slope >= 0 else "needs a slope >= 0"


def _all_full(found: NetworkFacts) -> str:
    full = len(of_full_rank(found)) == len(jacobians_of(found))
    return "" if full else f"needs Jacobians of rank {certain_rank(found)} at every sample"


def _hidden(found: NetworkFacts) -> str:
    return "" if layers_of(found).preactivations else "needs a hidden layer"


def _gap(found: NetworkFacts) -> float:
    return min(spectral_gap_ratios(z, rank=1)[0] for z in layers_of(found).enters[1:] if min(z.shape) > 1)


def _gap_bound(found: NetworkFacts) -> float:
    assert found.x is not None
    assert found.values is not None
    norms = torch.stack([rounded_up(norm(weight), weight.numel()) for weight in layers_of(found).weights])
    error = rounding_of_layers(found)[-1]
    return spectral_gap_bound(found.x, found.values, weight_norms=norms, error=error).ratio


def _narrow_layers(found: NetworkFacts) -> range:
    """Places of the longest run of layers of one neuron behind a code that is >= 0 on the hull of the samples."""
    layers, best = layers_of(found), range(0)
    relus = [layers.negative_slope == 0 and activated for activated in layers.activated]
    scalar = [w.numel() == 1 and float(w) > 0 and (b is None or not bool(b.any()))
              for w, b in zip(layers.weights, layers.biases, strict=True)]  # fmt: skip
    for first, enters in enumerate(layers.enters):
        code = bool((enters >= 0).all()) if first == 0 else first <= len(relus) and relus[first - 1]
        run = 0
        while code and first + run < layers.depth and scalar[first + run]:
            run += 1
        best = max(best, range(first, first + run), key=len)
    return best


def _narrow(found: NetworkFacts) -> str:
    return "" if len(_narrow_layers(found)) else "needs layers of one neuron without bias behind a relu"


def _narrow_kernel(found: NetworkFacts) -> float:
    assert found.values is not None
    places, layers, moved = _narrow_layers(found), layers_of(found), [0.0, *rounding_of_layers(found)]
    weights = torch.stack([layers.weights[place].reshape(()) for place in places])
    codes = layers.enters[places.start][:, 0]
    return narrow_kernel_bound(
        codes, found.values, weights=weights, error=moved[-1], code_error=moved[places.start]
    )  # fmt: skip


def _wide(found: NetworkFacts) -> str:
    enough = any(min(z.shape) > 1 for z in layers_of(found).enters[1:])
    return "" if enough else "needs a hidden layer of two neurons and two samples"


def _impact(found: NetworkFacts) -> Tensor:
    layers = layers_of(found)
    pairs = zip(layers.preactivations, layers.enters[1:], strict=True)
    return torch.stack([nonlinearity_impact(z, a) for z, a in pairs]).min()


def _stream(found: NetworkFacts) -> tuple[Tensor, bool]:
    assert found.stream is not None
    assert found.stream.activations is not None
    return found.stream.activations, found.stream.bias


def _relaxed_cost(found: NetworkFacts) -> Tensor:
    activations, bias = _stream(found)
    each = [cost_of_identity(A, bias=bias, gamma=layer_gamma(features(A, bias=bias)) or 1.0) for A in activations]
    return torch.stack(each).min()


OF_LAYERS = (
    Entry("FC-21", "spectral_gap_ratios", "exact", "least s_2 / s_1 of a hidden representation", _gap,
          (needs_layers, _hidden, _wide), over_samples=True),
    Entry("FC-21", "spectral_gap_bound", "upper", "least s_2 / s_1 of a hidden representation, centred", _gap_bound,
          (needs_layers, _hidden), over_samples=True),
    Entry("FC-38", "tangent_kernel_trace", "exact", "mean trace of the tangent kernel",
          lambda found: _traces(found).mean(), (needs_layers,), over_samples=True),
    Entry("FC-39", "activation_norm_bound", "upper", "mean over layers of |a(x)|^2, largest over the samples",
          lambda found: _activation_bounds(found).max(), (needs_layers, needs_rank, _biases, _balanced),
          by_jacobians=True, over_samples=True),
    Entry("FC-40", "representation_tail_bound", "upper", "s_{k+1} / sqrt(N) of half of the representations", _tails,
          (needs_layers, needs_rank, _biases, _non_negative_slope, _balanced, _all_full), by_jacobians=True,
          over_samples=True),
    Entry("FC-41", "sharpness", "exact", "curvature of the squared error, where the network interpolates", _sharpness,
          (needs_layers, _small), over_samples=True),
    Entry("FC-43", "narrow_kernel_bound", "lower", "largest norm of the tangent kernel on the hull of the samples",
          _narrow_kernel, (needs_layers, _narrow)),
    Entry("FC-47", "nonlinearity_impact", "exact", "least impact of an activation", _impact, (needs_layers, _hidden),
          over_samples=True),
    Entry("LEAKY-06", "cost_of_identity", "exact", "least cost of identity, relaxed by 1e-4", _relaxed_cost,
          (needs_stream,), over_samples=True),
    Entry("LEAKY-07", "stable_rank_nuclear", "exact", "least nuclear stable rank of a representation",
          lambda found: stable_rank_nuclear(_stream(found)[0]).min(), (needs_stream,), over_samples=True),
    Entry("LEAKY-16", "negative_energy_fraction", "exact", "least share of the negative part of a representation",
          lambda found: negative_energy_fraction(_stream(found)[0]).min(), (needs_stream,), over_samples=True),
)  # fmt: skip
