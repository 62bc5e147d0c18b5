"""The residual stream behind each block, with derivatives and without."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

import isthmus
from diagnostics.architectures import gpt
from foreign_modules import Residual, ResidualImages, samples, seeded
from isthmus.reports import block_table
from shape_checks import own_shape_checks

DOUBLE = torch.float64
COLUMNS = ("block", "position", "stream_dimension", "stream_rank_99", "stream_singular_values")


def behind(streams: list[Tensor]) -> list[np.ndarray]:
    """Singular values of centred rows over sqrt(n), features last."""
    rows = [s.detach().movedim(1, -1).flatten(0, -2) if s.ndim > 3 else s.detach().flatten(0, -2) for s in streams]
    return [torch.linalg.svdvals(r - r.mean(0)).div(len(r) ** 0.5).numpy() for r in rows]


@pytest.mark.parametrize("jacobians", [True, False])
@pytest.mark.parametrize("make", [Residual, ResidualImages])
def test_the_stream_behind_every_block_has_the_spectrum_of_what_leaves_it(make: type, jacobians: bool) -> None:
    module = seeded(make).double()
    x = samples(40, 5, dtype=DOUBLE) if make is Residual else samples(20, 1, 5, 5, dtype=DOUBLE)
    left: list[Tensor] = []
    handles = [
        block.register_forward_hook(lambda *given: left.append(given[2]))
        for block in module.get_submodule("blocks").children()
    ]
    module(x)
    for handle in handles:
        handle.remove()
    found = isthmus.diagnose(module, x, jacobians=jacobians).layers
    rows = found["block"].notnull().values
    assert found["block"].values[rows].tolist() == [1, 2] if make is Residual else [1]
    if make is Residual:  # the other ends its blocks with a ReLU behind the sum
        for values, wanted in zip(found["stream_singular_values"].values[rows], behind(left), strict=True):
            assert np.allclose(values[: len(wanted)], wanted, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_a_language_model_has_blocks_by_forward_passes_alone() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = gpt().eval()
    words = torch.randint(0, 13, (40, 5), generator=torch.Generator().manual_seed(0))
    found = isthmus.diagnose(model, words, jacobians=False)
    whole = isthmus.diagnose(model, words, jacobians=True).layers
    names = [str(name) for name in found.layers["name"].values[found.layers["block"].notnull().values]]
    assert names == [f"transformer.h.{i}.{part}.c_proj" for i in range(2) for part in ("attn", "mlp")]
    for name in COLUMNS:
        assert np.allclose(found.layers[name], whole[name], rtol=1e-4, atol=1e-6, equal_nan=True), name
    states = model(words, output_hidden_states=True).hidden_states[1]  # behind the first of two layers
    assert np.allclose(found.layers["stream_singular_values"].values[3], behind([states.double()])[0], rtol=1e-4)
    table = block_table(found)
    assert table is not None
    assert "stream, 99 %" in table.headings


def test_padding_is_not_in_the_stream() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(4, 2, 6, batch_first=True, dropout=0.0)
        module = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).double()
    x, mask = samples(30, 6, 4, dtype=DOUBLE), torch.arange(6) >= torch.arange(30)[:, None] % 6 + 1
    spectra = [
        isthmus.diagnose(
            module, {"src": x.masked_fill(mask[..., None], value), "src_key_padding_mask": mask}, jacobians=False
        ).layers["stream_singular_values"].values
        for value in (0.0, 20.0)
    ]  # fmt: skip
    assert np.isfinite(spectra[0]).any(1).sum() == 4
    assert np.allclose(*spectra, equal_nan=True)


@pytest.mark.parametrize("ridge", [-1, math.nan, math.inf, "a", -1e-9, [1.0, 2.0]])
def test_a_ridge_that_is_none_is_refused(ridge: object) -> None:
    module, x = seeded(Residual), samples(30, 5)
    with own_shape_checks(), pytest.raises(ValueError, match="needs a finite number >= 0"):
        isthmus.diagnose(module, x, module(x).detach(), ridge=ridge)  # pyright: ignore[reportArgumentType]


def test_without_a_ridge_there_is_an_objective_and_no_hamiltonian() -> None:
    """It is divided by the ridge: it had been infinite."""
    module, x = seeded(Residual), samples(30, 5)
    y = torch.zeros_like(module(x))
    for ridge in (0, 0.0, np.float64(0)):
        found = isthmus.diagnose(module, x, y, ridge=float(ridge)).layers
        assert found.attrs["objective"] == found.attrs["data_loss"] > 0
        assert "hamiltonian" not in found
        assert np.isfinite(found["cost_of_identity"].values).any()
    assert np.isfinite(isthmus.diagnose(module, x, y, ridge=1e-2).layers["hamiltonian"].values).any()
    leaky = isthmus.LeakyResNet(5, 2, width=6, depth=3, effective_depth=2.0, seed=0)
    found = isthmus.diagnose(leaky, x.double(), torch.zeros(30, 2), ridge=0.0).layers
    assert "hamiltonian" not in found
    assert np.isfinite(found["cost_of_identity"].values[1:-1]).all()
