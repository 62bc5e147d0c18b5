"""A convolution of low rank becomes two that compute the same: planted ranks are found, by compress and by factor."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import isthmus
from foreign_modules import samples
from isthmus.discovery.chains.batch_norms import without_batch_norms
from isthmus.discovery.chains.compression_moves import plan
from isthmus.discovery.chains.sites import Site, SiteKind, refusals, sites
from isthmus.discovery.chains.weighted_layers import remultiplied
from isthmus.networks.chain import as_module, read_chain
from isthmus.networks.stage_kinds import Stage
from tolerances import rounding

DOUBLE = torch.float64
IMAGES, SERIES = samples(40, 6, 8, 8, dtype=DOUBLE), samples(40, 6, 20, dtype=DOUBLE)


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make().double().eval()


def of_rank(layer: nn.Module, rank: int, kind: SiteKind = SiteKind.BEHIND) -> nn.Module:
    """The layer with a kernel of this rank, as the matrix that a kind of splitting takes apart."""
    weight = layer.get_parameter("weight")
    rows = ROWS[kind]
    order = [*rows, *(axis for axis in range(weight.ndim) if axis not in rows)]
    with torch.no_grad():
        turned = weight.permute(order)
        matrix = turned.flatten(0, len(rows) - 1).flatten(1)
        u, s, vh = torch.linalg.svd(matrix, full_matrices=False)
        low = (u[:, :rank] * s[:rank] @ vh[:rank]).reshape(turned.shape)
        weight.copy_(low.permute(torch.tensor(order).argsort().tolist()))
    return layer


# the axes of a kernel that are the rows of that matrix: outputs; inputs; inputs and the first axis of pixels
ROWS = {SiteKind.BEHIND: (0,), SiteKind.BEFORE: (1,), SiteKind.BY_AXIS: (1, 2)}
LAYERS: dict[str, tuple[Callable[[], nn.Module], Tensor]] = {
    "plain": (lambda: nn.Conv2d(6, 9, 3, padding=1), IMAGES),
    "strided": (lambda: nn.Conv2d(6, 9, (3, 5), stride=(2, 1), padding=(1, 2), dilation=(1, 2)), IMAGES),
    "same": (lambda: nn.Conv2d(6, 9, (3, 5), padding="same", bias=False), IMAGES),
    "unpadded": (lambda: nn.Conv2d(6, 9, 3), IMAGES),
    "series": (lambda: nn.Conv1d(6, 9, 5, stride=2, padding=2), SERIES),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("kind", ROWS)
def test_through_the_planted_rank_it_is_exact_and_not_below(kind: SiteKind, name: str) -> None:
    make, x = LAYERS[name]
    if kind is SiteKind.BY_AXIS and name == "series":
        assert not plan(Site(kind, 0, 0), [Stage("c", seeded(make))], x).sizes
        return
    layer = of_rank(seeded(make), 2, kind)
    found = plan(Site(kind, 0, 0), [Stage("c", layer)], x)
    with torch.no_grad():
        wanted = layer(x)
        errors = {k: float((as_module(found.build(k))(x) - wanted).norm() / wanted.norm()) for k in (1, 2)}
    assert errors[2] <= 100 * rounding(size=500)
    assert errors[1] > 0.01
    whole, names = remultiplied(found.build(2))
    if kind is not SiteKind.BY_AXIS:
        assert names == ["c"]
        assert len(whole) == 1
        with torch.no_grad():
            assert torch.allclose(as_module(whole)(x), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("axes", [1, 2])
def test_a_planted_convolution_is_found_and_shrunk(axes: int) -> None:
    conv, pool = ((nn.Conv1d, nn.AvgPool1d), (nn.Conv2d, nn.AvgPool2d))[axes - 1]
    module = seeded(
        lambda: nn.Sequential(
            conv(3, 16, 3, padding=1), nn.ReLU(), conv(16, 24, 3, padding=1), nn.ReLU(), pool(2), nn.Flatten(),
            nn.Linear(24 * 3**axes, 4),
        )
    )  # fmt: skip
    of_rank(module.get_submodule("2"), 4)
    x = samples(200, 3, *[6] * axes, dtype=DOUBLE)
    found = isthmus.compress(module, x, tolerance=1e-6, allow_slower=True)
    widths = [len(m.get_parameter("weight")) for m in found.module.children() if isinstance(m, nn.Conv1d | nn.Conv2d)]
    assert widths == [16, 4, 24]
    assert [change.what for change in found.changes] == [SiteKind.BEHIND.value]
    assert found.parameters_before - found.parameters_after == 16 * 24 * 3**axes - 4 * (16 * 3**axes + 24)


def test_groups_are_left_alone_with_a_reason() -> None:
    module = seeded(lambda: nn.Sequential(nn.Conv2d(6, 6, 3, groups=6), nn.ReLU(), nn.Conv2d(6, 4, 3)))
    found = dict(refusals(read_chain(module, IMAGES)))
    assert "several groups" in found["0"]
    circular = seeded(lambda: nn.Sequential(nn.Conv2d(6, 6, 3, padding=1, padding_mode="circular"), nn.ReLU()))
    assert "padded with zeros" in dict(refusals(read_chain(circular, IMAGES)))["0"]


class Padded(nn.Module):
    """Zeros around the image by a function, then a convolution."""

    def __init__(self, sides: tuple[int, ...]) -> None:
        super().__init__()
        self.sides, self.conv = sides, nn.Conv2d(6, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.conv(functional.pad(x, self.sides)))


@pytest.mark.parametrize(("sides", "kinds"), [((1, 1, 2, 2), 2), ((0, 1, 0, 1), 3)])
def test_zeros_written_around_an_image_are_padding(sides: tuple[int, ...], kinds: int) -> None:
    module = seeded(lambda: Padded(sides))
    chain = read_chain(module, IMAGES)
    assert len(chain) == kinds
    with torch.no_grad():
        assert torch.allclose(as_module(chain)(IMAGES), module(IMAGES))
    if kinds == 2:
        assert chain[0].module.padding == (2, 1)
        assert module.get_submodule("conv").padding == (0, 0)


def test_a_convolution_is_cut_in_two_through_its_channels() -> None:
    module = seeded(lambda: nn.Sequential(nn.Conv2d(6, 9, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(576, 3)))
    of_rank(module.get_submodule("0"), 3)
    found = isthmus.factorise(module, IMAGES)
    assert (found.layer, found.rank) == ("0", 3)
    assert found.relative_error <= 1e-10
    with torch.no_grad():
        assert found.encoder(IMAGES).shape == (40, 3, 8, 8)


def moved(stages: list[Stage], x: Tensor) -> Iterator[list[Stage]]:
    """The steps that any move at any place would write there, at its least and its largest size."""
    for site in sites(stages):
        found = plan(site, stages, x)
        for size in {*found.sizes[:1], *found.sizes[-1:]}:
            steps = found.build(size)
            yield steps
            yield remultiplied([*stages[: site.first], *steps, *stages[site.last + 1 :]])[0]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_every_move_leaves_weights_with_their_numbers_side_by_side(layout: torch.memory_format) -> None:
    """Optimisers look at them as one row, and files store them so."""
    images = seeded(
        lambda: nn.Sequential(
            nn.Conv2d(6, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, (3, 2)), nn.ReLU(),
            nn.Flatten(), nn.Linear(160, 12), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 3),
        )
    ).to(memory_format=layout)  # fmt: skip  # pyright: ignore[reportCallIssue]
    series = seeded(
        lambda: nn.Sequential(nn.Conv1d(6, 9, 5), nn.ReLU(), nn.Conv1d(9, 8, 3), nn.Flatten(), nn.Linear(112, 3))
    )
    kinds = set[SiteKind]()
    for module, x in ((images, IMAGES), (series, SERIES)):
        chain, _ = without_batch_norms(read_chain(module, x))
        kinds |= {site.kind for site in sites(chain)}
        own = {id(stage.module) for stage in chain}
        written = [stage.module for steps in moved(chain, x) for stage in steps if id(stage.module) not in own]
        assert written
        assert all(p.is_contiguous() for part in written for p in part.parameters())
    assert kinds == set(SiteKind)
