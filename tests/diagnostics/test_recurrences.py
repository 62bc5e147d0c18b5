"""Recurrences are rows: the input matrices of every layer, hidden states, gates; the numbers of the module stay."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

import isthmus
from foreign_modules import samples
from isthmus.diagnostics import rank_budgets
from isthmus.diagnostics.evaluation import record
from isthmus.diagnostics.listener import Listener
from isthmus.diagnostics.module_names import Names
from isthmus.diagnostics.replica import lent
from isthmus.diagnostics.samples import Samples

DOUBLE = torch.float64
KINDS: dict[str, tuple[Callable[..., nn.RNNBase], dict[str, Any]]] = {
    "lstm": (nn.LSTM, {}),
    "without biases": (nn.LSTM, {"bias": False}),
    "projected": (nn.LSTM, {"proj_size": 4}),
    "both directions": (nn.LSTM, {"bidirectional": True}),
    "gru": (nn.GRU, {"bidirectional": True}),
    "rnn": (nn.RNN, {"nonlinearity": "relu"}),
    "steps first": (nn.LSTM, {"batch_first": False}),
}


class Recurrent(nn.Module):
    """Two layers of a recurrence, then 3 outputs of the mean over its steps, or of packed sequences."""

    def __init__(self, kind: Callable[..., nn.RNNBase], packed: bool = False, **settings: Any) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.steps = kind(5, 6, num_layers=2, **{"batch_first": True} | settings)
            size = (2 if self.steps.bidirectional else 1) * (self.steps.proj_size or 6)
            self.head, self.packed = nn.Linear(size, 3), packed
        self.double().eval()

    def forward(self, x: Tensor) -> Tensor:
        steps = x if self.steps.batch_first else x.transpose(0, 1)
        if self.packed:
            found = self.steps(pack_padded_sequence(steps, [4] * len(x), batch_first=True))
            return self.head(found[1][0][-1])
        return self.head(self.steps(steps)[0].mean(1 if self.steps.batch_first else 0))


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_states_are_those_of_the_module(kind: str) -> None:
    make, settings = KINDS[kind]
    module, x = Recurrent(make, **settings), samples(30, 7, 5, dtype=DOUBLE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # oneDNN has no projections
        found = isthmus.diagnose(module, x)
        states = module.steps(x if module.steps.batch_first else x.transpose(0, 1))[0].detach()
    table = found.layers
    directions = 2 if module.steps.bidirectional else 1
    assert [str(n) for n in table["name"].values[:directions]] == [
        "steps.weight_ih_l0", *["steps.weight_ih_l0_reverse"] * (directions - 1)
    ]  # fmt: skip
    assert table.sizes["layer"] == 2 * directions + 1
    for place, part in enumerate(states.flatten(0, 1).chunk(directions, 1), directions):  # of the last layer
        wanted = torch.linalg.svdvals(part - part.mean(0)) / len(part) ** 0.5
        values = table["state_singular_values"].values[place]
        assert np.allclose(values[np.isfinite(values)], wanted)
    assert np.isnan(table["state_dimension"].values[-1])
    assert not found.skipped


@pytest.mark.parametrize("kind", KINDS)
def test_a_module_that_is_watched_gives_what_it_gives(kind: str) -> None:
    make, settings = KINDS[kind]
    module, x = Recurrent(make, **settings), samples(4, 7, 5, dtype=DOUBLE)
    with torch.no_grad(), warnings.catch_warnings(), lent(module) as replica:
        warnings.simplefilter("ignore")
        out = record(replica, Names(module), Samples.of(x), Listener())
        assert torch.allclose(out, module(x), atol=1e-12)


@pytest.mark.slow
def test_packed_sequences_and_exported_programs_have_the_same_rows() -> None:
    packed, x = Recurrent(nn.LSTM, packed=True), samples(30, 4, 5, dtype=DOUBLE)
    table = isthmus.diagnose(packed, x, jacobians=False).layers
    states = packed.steps(x)[0].detach().flatten(0, 1)
    wanted = torch.linalg.svdvals(states - states.mean(0)) / len(states) ** 0.5
    assert np.allclose(table["state_singular_values"].values[1], wanted)
    rows = torch.export.Dim("rows", min=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(Recurrent(nn.LSTM), (x,), dynamic_shapes=({0: rows},))
    again = isthmus.diagnose(program, x, jacobians=False).layers
    assert np.allclose(again["state_singular_values"].values[1], wanted)


def test_planted_ranks_of_states_and_gates_are_read() -> None:
    """Units that are copies of three, a forget gate whose input matrix has rank 2, one of states with rank 1."""
    module, x = Recurrent(nn.LSTM), samples(200, 7, 5, dtype=DOUBLE)
    with torch.no_grad():
        for name, weight in module.steps.named_parameters():
            if name.endswith("l0"):
                gates = weight.reshape(4, 6, -1)
                gates[:, 3:] = gates[:, :3]
        for name, place, rank in (("weight_ih_l0", 1, 2), ("weight_hh_l1", 3, 1)):
            part = module.steps.get_parameter(name).reshape(4, 6, -1)[place]
            u, s, vh = torch.linalg.svd(part, full_matrices=False)
            part.copy_(u[:, :rank] * s[:rank] @ vh[:rank])
    found = isthmus.diagnose(module, x, jacobians=False)
    table = found.layers
    pattern = rank_budgets(found)["rank_pattern"]
    assert isinstance(pattern, dict)
    assert [*pattern] == ["^head"]
    assert table["state_dimension"].values[0] == 3
    assert table["gate_rank"].sel(side="input").values[0].tolist() == [3, 2, 3, 3]
    assert table["gate_rank"].sel(side="hidden").values[1].tolist() == [6, 6, 6, 1]
    assert table["gate_rank_99"].sel(side="hidden").values[1][3] == 1
    forget = table["gate_singular_values"].sel(side="input", gate=2).values[0]
    wanted = torch.linalg.svdvals(module.steps.get_parameter("weight_ih_l0").detach().chunk(4)[1])
    assert np.allclose(forget[: len(wanted)], wanted)


class Padded(nn.Module):
    """An LSTM over tokens whose padding the mask names; the mean of the states of the others."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Recurrent(nn.LSTM)

    def forward(self, x: Tensor, attention_mask: Tensor) -> Tensor:
        states = self.inner.steps(x)[0] * attention_mask[..., None]
        return self.inner.head(states.sum(1))


def test_states_of_padding_do_not_count() -> None:
    module, x = Padded().eval(), samples(30, 7, 5, dtype=DOUBLE)
    mask = (torch.arange(7) < torch.arange(2, 32)[:, None] % 6 + 1).to(DOUBLE)
    table = isthmus.diagnose(module, {"x": x, "attention_mask": mask}, jacobians=False).layers
    states = module.inner.steps(x)[0].detach()[mask.bool()]
    wanted = torch.linalg.svdvals(states - states.mean(0)) / len(states) ** 0.5
    assert np.allclose(table["state_singular_values"].values[1], wanted)
