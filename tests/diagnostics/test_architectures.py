"""Every architecture of the list: all leaves are in the table or skipped with a reason, and nothing is left behind."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from diagnostics.architectures import ARCHITECTURES, Architecture
from isthmus import diagnose

STREAM = (
    "groups", "frequency_rank_99", "frequency_pairs", "block", "position", "cost_of_identity", "kinetic_energy",
    "stream_dimension", "stream_rank_99", "stream_singular_values",
)  # fmt: skip


def noted(_module: nn.Module, _args: object, _output: object) -> None:
    """A hook that a user may have left."""


# a hook may change what a part gives, so that one of ours is read as any module is: by the tensors that it uses
HOOKED = {"isthmus-leaky": ("embedding", *(f"weights[{l}]" for l in range(3)), "unembedding")}


def built(architecture: Architecture) -> nn.Module:
    """The network in training mode with gradients, frozen and evaluating parts, and a hook."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what torch and transformers say about their own constructors
        module = architecture.make()
    for part in module.modules():
        part.training = True
    parts = list(module.modules())
    parts[-1].training = False
    for i, parameter in enumerate(module.parameters()):
        parameter.grad = torch.full_like(parameter, 0.25) if i % 2 else None
        parameter.requires_grad_(i % 3 > 0)
    parts[-1].register_forward_hook(noted)
    return module


def state_of(module: nn.Module) -> dict[str, object]:
    """Everything that a diagnosis must leave as it was, tensors as bytes."""

    def raw(tensor: Tensor | None) -> object:
        if tensor is None:
            return None
        whole = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        return tensor.dtype, tuple(tensor.shape), whole.numpy().tobytes()

    hooks = [
        (name, list(part._forward_hooks.values()), list(part._forward_pre_hooks.values()))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        for name, part in module.named_modules()
    ]
    return {
        "state": {name: raw(tensor) for name, tensor in module.state_dict().items()},
        "buffers": {name: raw(tensor) for name, tensor in module.named_buffers()},
        "identity": [id(p) for p in module.parameters()],
        "gradients": {name: raw(p.grad) for name, p in module.named_parameters()},
        "flags": {name: p.requires_grad for name, p in module.named_parameters()},
        "modes": {name: part.training for name, part in module.named_modules()},
        "hooks": hooks,
        # not the state of `random`: the checker of types draws from it in every test
        "random": (torch.get_rng_state().numpy().tobytes(), str(np.random.get_state())),  # noqa: NPY002
        "threads": (torch.get_num_threads(), torch.is_grad_enabled(), torch.get_default_dtype()),
    }


def leaves_of(module: nn.Module) -> list[str]:
    lists = nn.ParameterList | nn.ParameterDict
    leaves = [(name, part) for name, part in module.named_modules() if not any(part.children())]
    return [name or type(part).__name__ for name, part in leaves if not isinstance(part, lists)]


def unexplained(leaves: list[str], rows: list[str], skipped: list[tuple[str, str]]) -> list[str]:
    """Leaves that are neither in the table nor skipped with a reason."""
    named = {row.split("#")[0].split("[")[0] for row in rows}
    told = {name for name, reason in skipped if reason}
    return [
        leaf for leaf in leaves
        if leaf not in named | told and not any(row.startswith(f"{leaf}.") for row in named)
    ]  # fmt: skip


@pytest.mark.dear(1)
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_leaf_is_read_or_skipped_and_nothing_is_left_behind(name: str) -> None:
    architecture = ARCHITECTURES[name]
    module, x = built(architecture), architecture.data()
    before, grad = state_of(module), torch.is_grad_enabled()
    found = diagnose(module, x)
    after = state_of(module)
    assert {key for key in before if before[key] != after[key]} == set()
    assert torch.is_grad_enabled() is grad
    rows = [str(row) for row in found.layers["name"].values]
    assert rows == list(HOOKED.get(name, architecture.layers))
    reasons = dict(found.skipped)
    assert sorted(reasons) == sorted(skipped for skipped, _ in architecture.skipped)
    assert [s for s, word in architecture.skipped if word not in reasons[s]] == []
    if len(leaves_of(module)) > 1:
        assert unexplained(leaves_of(module), rows, found.skipped) == []
    numbers = found.layers.drop_vars(["name", "balance_residual", *STREAM], errors="ignore")
    of_some = numbers.drop_vars(["state_dimension", "state_rank_99"], errors="ignore")
    first = of_some.drop_dims(["head", "frequency", "gate", "state", "along_embedding"], errors="ignore").isel(
        component=0
    )
    missing = [str(key) for key, values in first.data_vars.items() if bool(values.isnull().any())]
    gap = first["dimension_activation"]
    assert ("dimension_activation" in missing) is ("missing" in gap.attrs), "where nothing stands out it is said"
    assert [name for name in missing if name != gap.name] == []


def test_the_list_is_long_enough() -> None:
    assert len(ARCHITECTURES) >= 25


def test_a_leaf_that_nobody_speaks_of_is_seen() -> None:
    assert unexplained(["a", "b", "c"], ["a#2"], [("b", "")]) == ["b", "c"]


def _train(module: nn.Module) -> None:
    module.train()


def _forget_gradient(module: nn.Module) -> None:
    next(p for p in module.parameters() if p.grad is not None).grad = None


def _nudge(module: nn.Module) -> None:
    with torch.no_grad():
        next(module.parameters()).view(-1)[0].nextafter_(torch.tensor(torch.inf))


def _hook(module: nn.Module) -> None:
    module.register_forward_pre_hook(lambda _module, _args: None)


def _draw(_module: nn.Module) -> None:
    torch.rand(1)


@pytest.mark.parametrize("change", [_train, _forget_gradient, _nudge, _hook, _draw])
def test_what_would_be_left_behind_is_seen(change: Callable[[nn.Module], None]) -> None:
    module = built(ARCHITECTURES["mlp-batch-norm"])
    before = state_of(module)
    assert state_of(module) == before
    change(module)
    assert state_of(module) != before
