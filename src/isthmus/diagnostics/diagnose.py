"""`diagnose`: the per-layer table of a fully connected network on data."""

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor, nn

from isthmus.diagnostics.diagnosis import Diagnosis
from isthmus.diagnostics.jacobians import layer_jacobians
from isthmus.errors import DataError, ShapeError
from isthmus.networks import FullyConnected, LayerState, walk
from isthmus.networks.layers import activation_derivative
from isthmus.theory import RankEstimate
from isthmus.theory.spectra import participation_ratio, spectral_gap_rank
from isthmus.training.limits import Limits

POINTS = 64  # data points at which Jacobians are taken
ROUNDING = 1e-9  # a singular value of a float64 Jacobian above this share of the largest is no rounding


def diagnose(
    module: nn.Module,
    x: Float[Tensor, "n d_in"],
    y: Tensor | None = None,
    *,
    ridge: float | None = None,
    limits: Limits | None = None,
) -> Diagnosis:
    """What each layer of a fully connected network does on data.

    Args:
        module: a `FullyConnected`; it is not changed. Computations are in float64.
        x: samples as rows.
        y: targets (n, d_out); with them the data loss (squared error) stands in the table's attributes.
        ridge: with it the objective stands there too.
        limits: `seconds` and `memory` are not needed for networks of this kind; accepted for the common signature.

    Returns:
        A table with one entry per weight layer l (coordinates "layer" and "name"):

        - weight_singular_values, of W_l; preactivation_singular_values and activation_singular_values, of the centred
          z_l and a_l over sqrt(n) (root mean square units);
        - dimension_activation, gap integer of the latter; dimension_participation, (sum s^2)^2 / sum s^4;
        - nonlinearity_impact |z_l - a_l|_F / |z_l|_F;
        - identity_defect, root mean square of s_i - 1 over the singular values of W_l on the principal subspace of its
          centred input: 0 where the layer only rotates it;
        - balance_residual, largest | |W_l[i, :]|^2 + b_l[i]^2 - |W_{l+1}[:, i]|^2 | over the neurons relative to the
          mean, NaN for the last layer (FC-23);
        - jacobian_singular_values, median over points of those of df/da_{l-1}; for the first layer those of df/dx;
        - tangent_kernel_trace, mean over points of (|a_{l-1}|^2 + 1) |df/dz_l|_F^2 (FC-38; no 1 without bias).

    Raises:
        TypeError: the module is not a `FullyConnected`.
        DataError: x has NaN or infinity, or fewer than 2 rows.
        ShapeError: x or y does not fit.
    """
    del limits
    if not isinstance(module, FullyConnected):
        raise TypeError(f"diagnose(module, x): needs a FullyConnected, got {type(module).__name__}.")
    x = torch.as_tensor(x).double()
    if not bool(torch.isfinite(x).all()) or len(x) < 2:
        raise DataError(f"diagnose(module, x): needs at least 2 rows of finite numbers, got shape {tuple(x.shape)}.")
    network = module.rewritten(*module.written_layers()).double().requires_grad_(False)
    with torch.no_grad():
        states = walk(network, x)
        points = x[torch.linspace(0, len(x) - 1, min(POINTS, len(x))).long()]
        table = _table(network, x, states, layer_jacobians(network, points), points)
        if y is not None:
            loss = float((states[-1].activation - _targets(y, states[-1].activation)).square().sum(1).mean())
            table.attrs["data_loss"] = loss
            if ridge is not None:
                table.attrs["objective"] = loss + ridge * float(network.penalty())
    estimate = _rank(network, states, layer_jacobians(network, points)[0])
    return Diagnosis(layers=table, rank=estimate, skipped=[], warnings=_warnings(states))


def _targets(y: Tensor, outputs: Tensor) -> Tensor:
    targets = torch.as_tensor(y).double()
    targets = targets[:, None] if targets.ndim == 1 else targets
    if targets.shape != outputs.shape:  # broadcasting would compare every row with every other
        raise ShapeError(
            f"diagnose(module, x, y): needs y of shape {tuple(outputs.shape)}, as the network answers; "
            f"got {tuple(targets.shape)}."
        )
    return targets


def _table(
    network: FullyConnected, x: Tensor, states: list[LayerState], jacobians: list[Tensor], points: Tensor
) -> xr.Dataset:
    inputs = [x, *(s.activation for s in states[:-1])]
    preactivation = [_centred_spectrum(s.preactivation) for s in states]
    activation = [_centred_spectrum(s.activation) for s in states]
    spectra = {
        "weight_singular_values": [torch.linalg.svdvals(s.weight) for s in states],
        "preactivation_singular_values": preactivation,
        "activation_singular_values": activation,
        "jacobian_singular_values": [torch.linalg.svdvals(j).median(0).values for j in jacobians],
    }
    numbers = {
        "dimension_activation": [int(spectral_gap_rank(s)) for s in activation],
        "dimension_participation": [float(participation_ratio(s)) for s in activation],
        "nonlinearity_impact": [_relative(s.preactivation - s.activation, s.preactivation) for s in states],
        "identity_defect": [_identity_defect(s.weight, a) for s, a in zip(states, inputs, strict=True)],
        "balance_residual": [*(_balance(a, b) for a, b in zip(states[:-1], states[1:], strict=True)), float("nan")],
        "tangent_kernel_trace": _tangent_kernel_trace(network, points, jacobians),
    }
    longest = max(len(row) for rows in spectra.values() for row in rows)
    variables = {name: (("layer", "component"), _padded(rows, longest)) for name, rows in spectra.items()}
    variables |= {name: (("layer",), np.array(values)) for name, values in numbers.items()}
    layers = np.arange(1, network.depth + 1)
    return xr.Dataset(variables, coords={"layer": layers, "name": ("layer", [s.name for s in states])})


def _centred_spectrum(values: Tensor) -> Tensor:
    return torch.linalg.svdvals(values - values.mean(0)) / len(values) ** 0.5


def _relative(part: Tensor, whole: Tensor) -> float:
    scale = float(whole.norm())
    return float(part.norm()) / scale if scale else 0.0


def _identity_defect(weight: Tensor, inputs: Tensor) -> float:
    centred = inputs - inputs.mean(0)
    _, s, vh = torch.linalg.svd(centred, full_matrices=False)
    k = int(spectral_gap_rank(s))
    if k == 0:
        return float("nan")
    on_subspace = torch.linalg.svdvals(weight @ vh[:k].T)
    missing = k - len(on_subspace)  # a layer narrower than the subspace loses directions: they count as s = 0
    return float((((on_subspace - 1).square().sum() + missing) / k).sqrt())


def _balance(state: LayerState, after: LayerState) -> float:
    incoming = state.weight.square().sum(1) + (state.bias.square() if state.bias is not None else 0.0)
    outgoing = after.weight.square().sum(0)
    scale = float((incoming + outgoing).mean()) / 2
    return float((incoming - outgoing).abs().max()) / scale if scale else 0.0


def _tangent_kernel_trace(network: FullyConnected, points: Tensor, jacobians: list[Tensor]) -> list[float]:
    states = walk(network, points)
    inputs = [points, *(s.activation for s in states[:-1])]
    traces: list[float] = []
    for l in range(1, network.depth + 1):
        if l < network.depth:
            by_preactivation = jacobians[l]
            if network.is_activated(l):
                derivative = activation_derivative(states[l - 1].preactivation, network.negative_slope)
                by_preactivation = by_preactivation * derivative[:, None, :]
            square = by_preactivation.square().sum((1, 2))
        else:
            square = torch.full((len(points),), float(network.dimensions[-1]), dtype=torch.float64)
        features = inputs[l - 1].square().sum(1) + (1.0 if network.has_bias else 0.0)
        traces.append(float((features * square).mean()))
    return traces


def _rank(network: FullyConnected, states: list[LayerState], jacobian: Tensor) -> RankEstimate:
    """Jacobian at a witness from below, narrowest matrix from above, gap of the median Jacobian spectrum in between."""
    s = torch.linalg.svdvals(jacobian)
    median = s.median(0).values
    gap = int(spectral_gap_rank(median))
    # trained networks keep tiny extra directions: what counts is above the middle of the gap
    edge = torch.cat([median, median.new_zeros(1)])[[gap - 1, gap]].clamp_min(ROUNDING * float(s.max()))
    tolerance = float(edge.log().mean().exp() / s.max()) if gap else ROUNDING
    counts = (s > tolerance * s.max()).sum(1)
    lower, witness = (int(counts.max()), int(counts.argmax())) if gap else (0, 0)
    upper = max(min(*(int(torch.linalg.matrix_rank(state.weight)) for state in states), *network.dimensions), lower)
    evidence: dict[str, object] = {
        "jacobian_gap": gap,
        "activation_gaps": [int(spectral_gap_rank(_centred_spectrum(state.activation))) for state in states],
    }
    return RankEstimate(
        estimate=min(max(gap, lower), upper),
        lower=lower,
        upper=upper,
        lower_reason=f"singular values of the Jacobian at witness point {witness} (of {len(s)} spread over the data)",
        upper_reason="numerical rank of the narrowest weight matrix",
        tolerance=tolerance,
        evidence=evidence,
    )


def _warnings(states: list[LayerState]) -> tuple[str, ...]:
    if all(not bool(s.weight.any()) for s in states):
        return ("All weights are zero: the network computes a constant, its rank is 0.",)
    return ()


def _padded(rows: Sequence[Tensor], width: int) -> np.ndarray:
    out = np.full((len(rows), width), np.nan)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row.numpy()
    return out
