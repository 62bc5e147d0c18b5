"""Whatever module comes, in whatever state: an answer that holds or one line in words, and the module as it was."""

import random
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune
from torch.utils.data import DataLoader, TensorDataset

import isthmus
from isthmus.errors import IsthmusError
from shape_checks import own_shape_checks

X = torch.randn(60, 10, generator=torch.Generator().manual_seed(0))
Call = Callable[[nn.Module, object], object]
CALLS: dict[str, Call] = {
    "diagnose": lambda net, x: isthmus.diagnose(net, x),  # pyright: ignore[reportArgumentType]
    "forward passes": lambda net, x: isthmus.diagnose(net, x, jacobians=False),  # pyright: ignore[reportArgumentType]
    "factorise": lambda net, x: isthmus.factorise(net, x, 3),  # pyright: ignore[reportCallIssue, reportArgumentType]
    "compress": lambda net, x: isthmus.compress(net, x, tolerance=0.5),  # pyright: ignore[reportArgumentType]
}


def narrow() -> nn.Sequential:
    """Through three features, in the middle."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3), nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 4))


class Giving(nn.Module):
    """Narrow, and what a function makes of its answer."""

    def __init__(self, made: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.inner, self.made = narrow(), made

    def forward(self, x: Tensor) -> object:
        """Anything."""
        return self.made(self.inner(x))


class Halved(nn.Module):
    """The features of `narrow` through which no gradient comes, then its head."""

    def __init__(self, cut: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.inner, self.cut = narrow(), cut

    def forward(self, x: Tensor) -> Tensor:
        """(n, 4)."""
        return self.inner[4:](self.cut(self.inner[:4], x))


def _without_gradients(features: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        return features(x)


def _in_inference_mode(features: nn.Module, x: Tensor) -> Tensor:
    with torch.inference_mode():
        return features(x)


def on_meta() -> nn.Module:
    """Without numbers."""
    with torch.device("meta"):
        return narrow()


def broken() -> nn.Module:
    """A weight is NaN."""
    net = narrow()
    with torch.no_grad():
        net.get_parameter("2.weight")[0, 0] = float("nan")
    return net


REFUSED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "meta": (on_meta, "no numbers yet"),
    "lazy": (lambda: nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.Linear(4, 2)), "no numbers yet"),
    "NaN": (broken, "returned NaN or infinity"),
    "a number": (lambda: Giving(lambda y: y.sum()), "a row per sample"),
    "a mean": (lambda: Giving(lambda y: y.mean(0)), "a row per sample"),
    "classes": (lambda: Giving(lambda y: y.argmax(1)), "a tensor of torch.int64"),
}


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("what", REFUSED)
def test_modules_that_give_no_answer_are_refused_in_words(call: str, what: str) -> None:
    make, words = REFUSED[what]
    with pytest.raises(IsthmusError, match=words) as caught:
        CALLS[call](make(), X)
    assert str(caught.value).count("\n") == 0


@pytest.mark.dear(1)
@pytest.mark.parametrize("call", ["factorise", "compress"])
def test_a_list_of_answers_is_no_error_of_python(call: str) -> None:
    net = Giving(lambda y: [y])
    if call == "compress":  # the first answer decides
        assert isthmus.compress(net, X, tolerance=0.5).relative_error <= 0.5
        return
    with pytest.raises(ValueError, match="it gives a list"):
        CALLS[call](net, X)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when its compiler is imported
@pytest.mark.parametrize("wrap", [torch.compile, nn.DataParallel])
def test_what_is_wrapped_around_a_module_is_looked_through(wrap: Callable[[nn.Module], nn.Module]) -> None:
    plain, wrapped = narrow(), wrap(narrow())
    names = [list(isthmus.diagnose(net, X).layers["name"].values) for net in (plain, wrapped)]
    assert names[0] == names[1]
    recorded = [[layer.name for layer in isthmus.Monitor(net, X).record(0)] for net in (plain, wrapped)]
    assert recorded == names
    assert isthmus.factorise(wrapped, X, 3).layer == isthmus.factorise(plain, X, 3).layer
    assert type(isthmus.compress(wrapped, X, tolerance=0.5).module) is nn.Sequential


def _unchanged(_module: nn.Module, _args: object, out: Tensor) -> Tensor:
    return out + 0


def used() -> nn.Module:
    """In training mode, with gradients, a frozen part, a hook of its owner and statistics of batches."""
    net = nn.Sequential(nn.Linear(10, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 4)).train()
    net(X).sum().backward()
    net[0].requires_grad_(False)
    net[2].register_forward_hook(_unchanged)
    return net


def drawing() -> nn.Module:
    """Draws from every generator there is."""
    return Giving(lambda y: y + torch.randn_like(y[:, :1]) + random.random() + np.random.rand())  # noqa: S311, NPY002 - as strangers do


def state_of(net: nn.Module) -> dict[str, object]:
    """All that a call must not change, but for the numbers."""
    parts = list(net.modules())
    numbers = [*net.parameters(), *net.buffers(), *(p.grad for p in net.parameters() if p.grad is not None)]
    return {
        "modes": [part.training for part in parts],
        "hooks": [len(hooks) for part in parts for name, hooks in vars(part).items() if name.endswith("_hooks")],
        "flags": [(p.requires_grad, p.grad is None, p.dtype, id(p)) for p in net.parameters()],
        "numbers": [t.detach().numpy().tobytes() for t in numbers],
        "attributes": [sorted(vars(part)) for part in parts],
        "random": (torch.get_rng_state().numpy().tobytes(), random.getstate(), str(np.random.get_state())),  # noqa: NPY002
        "global": (torch.is_grad_enabled(), torch.get_default_dtype()),
    }


def shuffled(x: Tensor) -> DataLoader[tuple[Tensor, ...]]:
    """Draws an order from torch's generator."""
    return DataLoader(TensorDataset(x, torch.zeros(len(x))), batch_size=20, shuffle=True)


@pytest.mark.dear(1)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("data", [lambda x: x, shuffled], ids=["tensor", "loader"])
@pytest.mark.parametrize("make", [used, drawing, narrow])
def test_the_module_and_all_generators_stay_as_they_were(
    call: str, data: Callable[[Tensor], object], make: Callable[[], nn.Module]
) -> None:
    net = make()
    x, before = data(X), state_of(net)
    with own_shape_checks():  # the checker of types draws random numbers itself
        try:
            CALLS[call](net, x)
        except ValueError:  # what draws random numbers is not cut
            assert make is drawing
        after = state_of(net)
    assert [what for what in before if before[what] != after[what]] == []


CUTS: dict[str, Callable[[nn.Module, Tensor], Tensor]] = {
    "no_grad": _without_gradients,
    "inference_mode": _in_inference_mode,
    "detach": lambda features, x: features(x).detach(),
    "steps": lambda features, x: torch.sign(features(x)),
}


@pytest.mark.parametrize("cut", CUTS)
def test_where_gradients_stop_no_rank_is_read_off_them(cut: str) -> None:
    found = isthmus.diagnose(Halved(CUTS[cut]), X)
    assert found.rank.estimate is not None
    assert found.rank.estimate > 0
    assert found.warnings[0].startswith("No Jacobians: ")
    whole = isthmus.diagnose(Halved(lambda features, x: features(x)), X)
    assert whole.rank.estimate == 3
    assert not whole.warnings


def test_a_detached_answer_has_no_jacobian_either() -> None:
    assert isthmus.diagnose(Giving(lambda y: y.detach()), X).warnings[0].startswith("No Jacobians: its output")


@pytest.mark.parametrize("jacobians", [None, False])
def test_answers_that_depend_on_chance_or_on_other_rows_are_doubted(jacobians: bool | None) -> None:
    of_the_batch = nn.Sequential(nn.Linear(10, 8), nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, 4))
    for net, is_doubted in ((drawing(), True), (of_the_batch, True), (narrow(), False), (used(), False)):
        said = isthmus.diagnose(net, X, jacobians=jacobians).warnings
        assert any("in other ways" in sentence for sentence in said) == is_doubted


@pytest.mark.dear(1)
@pytest.mark.parametrize("call", CALLS)
def test_tables_and_rows_with_holes(call: str) -> None:
    with own_shape_checks():
        CALLS[call](narrow(), pd.DataFrame(X.numpy()))
    holed = X.clone()
    holed[3, 2:4] = float("nan")
    with pytest.raises(IsthmusError, match="2 entries of x are NaN or infinite"):
        CALLS[call](narrow(), holed)


@pytest.mark.dear(1)
@pytest.mark.parametrize("call", ["factorise", "compress"])
def test_loaders_and_data_sets_are_the_rows_they_hold(call: str) -> None:
    def size(x: object) -> tuple[float, ...]:
        with own_shape_checks():
            found = CALLS[call](narrow(), x)
        return (found.relative_error, getattr(found, "rank", 0))  # pyright: ignore[reportAttributeAccessIssue]

    data = TensorDataset(X, torch.zeros(len(X)))
    assert size(X) == size(data) == size(DataLoader(data, batch_size=7)) == size({"input": X, "labels": X[:, 0]})
    with own_shape_checks(), pytest.raises(IsthmusError, match=r"a dict of several \(input, other\)"):
        CALLS[call](narrow(), {"input": X, "other": X})
    with own_shape_checks(), pytest.raises(IsthmusError, match=r"'other', which is not the first input of Sequential"):
        CALLS[call](narrow(), {"other": X})


def test_whole_numbers_for_features_are_told_how_they_are_passed() -> None:
    images = torch.randint(0, 255, (60, 10), dtype=torch.uint8)
    for call in CALLS.values():
        with own_shape_checks(), pytest.raises(IsthmusError, match=r"x\.float\(\)"):
            call(narrow(), images)


def _pruned(layer: nn.Module) -> nn.Module:
    return prune.l1_unstructured(layer, "weight", amount=0.2)


COMPUTED: dict[str, Callable[[nn.Module], nn.Module]] = {
    "weight norm": parametrizations.weight_norm,
    "spectral norm": parametrizations.spectral_norm,
    "older weight norm": nn.utils.weight_norm,  # pyright: ignore[reportDeprecated] - checkpoints have it
    "older spectral norm": nn.utils.spectral_norm,
    "masks of pruning": _pruned,
}


@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
@pytest.mark.parametrize("what", COMPUTED)
def test_layers_whose_weights_are_computed_are_cut_and_shrunk_like_any_other(what: str) -> None:
    torch.manual_seed(0)
    doubled = nn.Linear(10, 16)
    with torch.no_grad():
        for tensor in (doubled.weight, doubled.bias):
            tensor[8:] = tensor[:8]
    net = nn.Sequential(doubled, nn.ReLU(), COMPUTED[what](nn.Linear(16, 3)), nn.Linear(3, 4)).train()
    net(X).sum().backward()  # whose weights hang in a graph then
    before = {name for name, _ in net.named_parameters()}
    halves = isthmus.factorise(net, X, 3)
    assert halves.layer == "2"
    assert halves.relative_error < 1e-5
    small = isthmus.compress(net, X, tolerance=0.3, allow_slower=True)
    assert {name for name, _ in net.named_parameters()} == before
    net.eval()
    with torch.no_grad():
        wanted = net(X)
        assert float((small.module(X) - wanted).norm() / (wanted - wanted.mean(0)).norm()) < 0.3
    assert small.parameters_after < 150  # 11 * 8 + 9 * 3 + 16 where the doubled neurons go


class Keeping(nn.Module):
    """Keeps its features of the last pass, as attention keeps its weights for pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.features, self.head = narrow()[:4], narrow()[4:]
        self.last: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        """(n, 4)."""
        self.last = [self.features(x)]
        return self.head(self.last[0])


@pytest.mark.dear(1)
@pytest.mark.parametrize("call", CALLS)
def test_a_module_that_keeps_what_it_computed_last_is_copied_all_the_same(call: str) -> None:
    net = Keeping()
    net(X)
    CALLS[call](net, X)
    assert net.last[0].requires_grad or call == "forward passes"  # which run in the module itself
