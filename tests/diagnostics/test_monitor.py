"""Records during training: true, and without a trace in the module. What they cost: benchmarks/monitor.py."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import Tensor, nn
from torch.utils.tensorboard import SummaryWriter

import isthmus
from foreign_modules import Images, Residual, samples, seeded
from isthmus.diagnostics import LoggingWriter, Monitor, lightning_callback, log_diagnosis, transformers_callback
from isthmus.errors import DataError
from shape_checks import own_shape_checks


def mlp(width: int = 64) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        hidden = [part for _ in range(2) for part in (nn.Linear(width, width), nn.ReLU())]
        return nn.Sequential(nn.Linear(20, width), nn.ReLU(), *hidden, nn.Linear(width, 5))


def trained(module: nn.Module, monitor: Monitor | None, steps: int) -> list[Tensor]:
    """The weights after some steps of Adam on random data, dropout and all."""
    torch.manual_seed(1)
    optimiser = torch.optim.Adam(module.parameters(), lr=1e-2)
    module.train()
    for _ in range(steps):
        x = torch.randn(64, 20)
        optimiser.zero_grad()
        (module(x) - x[:, :5]).square().sum(1).mean().backward()
        optimiser.step()
        if monitor is not None:
            monitor.step()
    return [p.detach().clone() for p in module.parameters()]


@pytest.mark.parametrize("make", [Images, Residual, mlp])
def test_a_record_agrees_with_the_diagnosis(make: type[nn.Module]) -> None:
    module = seeded(make)
    x = samples(40, 1, 8, 8) if make is Images else samples(40, 20 if make is mlp else 5)
    records = Monitor(module, x).record(0)
    layers = isthmus.diagnose(module, x).layers
    assert [layer.name for layer in records] == layers["name"].values.tolist()
    for name, variable in (("dimension_participation", 3e-2), ("nonlinearity_impact", 1e-5)):
        found = [getattr(layer, name) for layer in records]
        np.testing.assert_allclose(found, layers[name], rtol=variable, atol=1e-6)
    for layer, values in zip(records, layers["activation_singular_values"].values, strict=True):
        if make is not Images:  # of pixels it takes some
            count = int((values > 0.01 * values[0]).sum())
            np.testing.assert_allclose(layer.spectrum[:count], values[:count], rtol=1e-4)


def test_training_goes_on_as_if_nothing_had_been_recorded() -> None:
    def noisy() -> nn.Module:
        return nn.Sequential(mlp(), nn.BatchNorm1d(5), nn.Dropout(0.3))

    alone, watched = noisy(), noisy()
    monitor = Monitor(watched, samples(50, 20), every=4)
    before = trained(alone, None, 12)
    after = trained(watched, monitor, 12)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(alone.buffers(), watched.buffers(), strict=True))
    assert all(part.training for part in watched.modules())
    assert all(p.requires_grad and p.grad is not None for p in watched.parameters())
    hooks = [getattr(part, f"_forward{kind}_hooks") for part in watched.modules() for kind in ("", "_pre")]
    assert not any(hooks)
    assert monitor.history["step"].values.tolist() == [4, 8, 12]
    assert monitor.history["layer"].values.tolist() == ["0.0", "0.2", "0.4", "0.6"]


def test_training_on_three_directions_is_seen_in_the_history() -> None:
    """Activations spread on all directions at first; a network whose input has three keeps to few."""
    module = nn.Sequential(nn.Linear(20, 12), nn.Linear(12, 6))
    flat = samples(100, 3) @ samples(3, 20, seed=1)
    monitor = Monitor(module, flat)
    monitor.record(0)
    assert monitor.history["dimension_activation"].values.tolist() == [[3, 3]]


def test_numbers_of_the_loop_are_recorded_once_and_bad_arguments_refused() -> None:
    monitor = Monitor(mlp(), samples(50, 20), every=5)
    assert [monitor.step(k) for k in (4, 5, 5, 6, 10)] == [False, True, False, False, True]
    for wrong in ({"every": 0}, {"every": 1.5}, {"num_samples": 10.0}, {"num_samples": "10"}, {"num_samples": 1}):
        with own_shape_checks(), pytest.raises(ValueError, match="needs every >= 1, num_samples >= 2, whole numbers"):
            Monitor(mlp(), samples(50, 20), **wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match="80 entries of x are NaN or infinite"):
        Monitor(mlp(), torch.full((4, 20), torch.nan))
    with pytest.raises(DataError, match=r"Monitor\.record\(1\): running Sequential on its samples failed"):
        Monitor(mlp(), samples(50, 19)).record(1)


def test_tensorboard_reads_back_what_was_written(tmp_path: Path) -> None:
    module, x = mlp(), samples(50, 20)
    with SummaryWriter(str(tmp_path)) as writer:
        assert isinstance(writer, LoggingWriter)
        monitor = Monitor(module, x, every=2, writer=writer)
        for _ in range(4):
            monitor.step()
        found = isthmus.diagnose(module, x)
        log_diagnosis(writer, found, 7)
    events = EventAccumulator(str(tmp_path)).Reload()
    soft = events.Scalars("isthmus/2/dimension_participation")
    assert [(e.step, e.value) for e in soft[:2]] == [
        (step, pytest.approx(monitor.history["dimension_participation"].sel(step=step, layer="2").item()))
        for step in (2, 4)
    ]
    (rank,) = events.Scalars("isthmus/rank")
    assert (rank.step, rank.value) == (7, found.rank.estimate)
    (trace,) = events.Scalars("isthmus/4/tangent_kernel_trace")
    assert trace.value == pytest.approx(float(found.layers["tangent_kernel_trace"][2]), rel=1e-6)
    spectrum = events.Histograms("isthmus/0/activation_singular_values")[-1].histogram_value
    assert spectrum.max == pytest.approx(0.0, abs=1e-6)
    assert spectrum.num == int(found.layers["activation_singular_values"][0].notnull().sum())


def test_a_transformers_trainer_records() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")

    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = mlp()

        def forward(self, x: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
            out = self.inner(x)
            return {"logits": out} if labels is None else {"loss": (out - labels).square().mean(), "logits": out}

    module = Wrapped()
    monitor = Monitor(module, {"x": samples(30, 20)}, every=3)
    callback = transformers_callback(monitor)
    assert isinstance(callback, transformers.TrainerCallback)
    handler = transformers.trainer_callback.CallbackHandler([callback], module, None, None, None)
    state, control = transformers.TrainerState(), transformers.TrainerControl()
    for state.global_step in range(1, 8):  # the handler is what a trainer calls after each of its steps
        handler.on_step_end(None, state, control)
    assert monitor.history["step"].values.tolist() == [3, 6]


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) for name in ("lightning", "pytorch_lightning")), reason="Lightning is installed"
)
def test_without_lightning_its_callback_says_what_to_do() -> None:
    with pytest.raises(ImportError, match="needs lightning or pytorch_lightning, which is not installed"):
        lightning_callback(Monitor(mlp(), samples(50, 20)))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_training_that_diverges_goes_on_and_is_recorded_as_such(value: float) -> None:
    module, writer = mlp(), Written()
    monitor = Monitor(module, samples(50, 20), every=1, writer=writer)
    monitor.step()
    with torch.no_grad():
        module[2].weight[0, 0] = value  # pyright: ignore[reportIndexIssue]
    assert monitor.step()
    for name in ("dimension_activation", "dimension_participation", "nonlinearity_impact"):
        of_layers = monitor.history[name].sel(step=2).values
        assert np.isnan(of_layers[1:]).all(), name
        if name != "dimension_activation":
            assert np.isfinite(of_layers[0])
    assert all(np.isfinite(v) for v in writer.scalars.values())


class Written:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.scalars, self.histograms = dict[str, float](), dict[str, int]()

    def add_scalar(self, tag: str, scalar_value: float, global_step: int, /) -> None:
        del global_step
        self.scalars[tag] = scalar_value

    def add_histogram(self, tag: str, values: Tensor, global_step: int, /) -> None:
        del global_step
        self.histograms[tag] = values.numel()


class Tokens(nn.Module):
    """A transformer layer on tokens, of which a mask calls some padding; samples or tokens come first."""

    def __init__(self, *, are_samples_first: bool) -> None:
        super().__init__()
        self.are_samples_first = are_samples_first
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.table = nn.Embedding(20, 8)
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=are_samples_first)
            self.head = nn.Linear(8, 3)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        hidden = self.table(input_ids)
        hidden = hidden if self.are_samples_first else hidden.transpose(0, 1)
        hidden = self.layer(hidden, src_key_padding_mask=attention_mask == 0)
        hidden = torch.relu(self.head(hidden))
        return hidden if self.are_samples_first else hidden.transpose(0, 1)


@pytest.mark.parametrize("are_samples_first", [True, False])
def test_padding_is_no_activation(are_samples_first: bool) -> None:
    module = Tokens(are_samples_first=are_samples_first).eval()
    drawn = torch.Generator().manual_seed(0)
    tokens = torch.randint(1, 20, (30, 7), generator=drawn)
    mask = (torch.arange(7) < torch.randint(2, 8, (30, 1), generator=drawn)).long()
    x = {"input_ids": tokens * mask, "attention_mask": mask}
    records, layers = Monitor(module, x).record(0), isthmus.diagnose(module, x, jacobians=False).layers
    assert [layer.name for layer in records] == layers["name"].values.tolist()
    for name in ("dimension_participation", "nonlinearity_impact", "dimension_activation"):
        found = [float(getattr(layer, name)) for layer in records]
        np.testing.assert_allclose(found, layers[name].values, rtol=1e-3, atol=1e-6, err_msg=name)


def test_a_written_diagnosis_has_each_number_where_it_belongs() -> None:
    """Columns of lookup tables under these, of heads as numbers; what is a spectrum is written as one."""
    module = Tokens(are_samples_first=True).eval()
    tokens = torch.randint(1, 20, (30, 7), generator=torch.Generator().manual_seed(0))
    found = isthmus.diagnose(module, {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}, jacobians=False)
    writer = Written()
    log_diagnosis(writer, found, 3)
    tags = {*writer.scalars, *writer.histograms}
    assert {tag for tag in tags if "/embedding_" in tag} == {
        f"isthmus/table/{name}" for name, column in found.layers.data_vars.items() if "embedding" in column.dims
    }
    out = "isthmus/layer.self_attn.out_proj"
    heads = found.layers.isel(layer=found.layers["name"].values.tolist().index("layer.self_attn.out_proj"))
    for head in (1, 2):
        assert writer.scalars[f"{out}/qk_rank/head_{head}"] == float(heads["qk_rank"].sel(head=head))
        assert writer.histograms[f"{out}/qk_singular_values/head_{head}"] == 4
    assert not any(tag.rpartition("/")[2].endswith(("rank", "rank_99", "gap")) for tag in writer.histograms)
    lstm = isthmus.diagnose(Recurrent(), samples(20, 6, 4), jacobians=False)
    log_diagnosis(writer, lstm, 4)
    assert len([tag for tag in writer.scalars if "/gate_rank/side_" in tag]) == 2 * 4
    assert len([tag for tag in writer.histograms if "/gate_singular_values/side_" in tag]) == 2 * 4


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.LSTM(4, 5, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)[0]
