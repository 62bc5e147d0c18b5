"""The rank of a module is what its own cut loses on rows that had no say."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import isthmus
from isthmus.cli.diagnose_run import print_diagnosis
from isthmus.diagnostics import Diagnosis
from isthmus.diagnostics.narrow_places import Ends
from isthmus.reports import cut_table, report, verdict_of
from isthmus.training import Limits


def chain(*widths: int) -> nn.Sequential:
    layers = [part for a, b in zip(widths, widths[1:], strict=False) for part in (nn.Linear(a, b), nn.Tanh())]
    return nn.Sequential(*layers[:-1]).double()


def planted(strengths: tuple[float, ...]) -> nn.Sequential:
    """20-32-32-12, whose middle matrix has these singular values."""
    torch.manual_seed(0)
    module, s = chain(20, 32, 32, 12), torch.tensor(strengths).double()
    with torch.no_grad():
        u, v = (torch.linalg.qr(torch.randn(32, len(s), dtype=torch.float64)).Q for _ in range(2))
        module.get_parameter("2.weight").copy_(u * s @ v.T)
    return module


def data(rows: int = 300) -> torch.Tensor:
    return torch.randn(rows, 20, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("jacobians", [True, False])
def test_a_planted_rank_loses_nothing_and_one_fewer_much(jacobians: bool) -> None:
    found = isthmus.diagnose(planted((1.0,) * 3), data(), jacobians=jacobians)
    assert found.cuts is not None
    middle = found.cuts.isel(place=int((found.cuts["layer"].values == 2).nonzero()[0][0]))
    assert middle["rank"].values.tolist() == [3] * 4
    assert float(middle["lost"].max()) < 1e-9
    assert (int(middle["width"]), str(middle["name"].values)) == (32, "2")


@pytest.mark.slow
def test_what_is_lost_is_that_of_a_cut_made_by_hand() -> None:
    """Without a part that is held out the same rows fit and judge, so a cut of the module by hand differs little."""
    module, x = planted((3.0, 1.0, 0.5, 0.2, 0.1, 0.05)), data(2000)
    found = isthmus.diagnose(module, x)
    assert found.cuts is not None
    middle = found.cuts.isel(place=int((found.cuts["layer"].values == 2).nonzero()[0][0]))
    for k, lost in zip(middle["rank"].values, middle["lost"].values, strict=True):
        cut = isthmus.factorise(module, x, rank=int(k), layer="2")
        assert lost == pytest.approx(cut.relative_error, rel=0.15)
    assert (np.diff(middle["rank"].values) >= 0).all()
    assert (middle["lost"].values <= middle["loss"].values).all()


def test_pixels_of_one_sample_make_one_vector_and_shortcuts_are_no_places() -> None:
    torch.manual_seed(0)
    images = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5)).double()
    found = isthmus.diagnose(images, torch.randn(200, 1, 8, 8, dtype=torch.float64))
    assert found.cuts is not None
    assert found.cuts["width"].values.tolist() == [4 * 36, 5]

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(20, 20).double()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.inner(x)

    assert isthmus.diagnose(Residual(), data()).cuts is None


class Beside(nn.Module):
    """x + tanh(V x): its layer cuts nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(6, 6).double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.tanh(self.inner(x))


def test_few_rows_tell_nothing_and_a_warning_says_so() -> None:
    found = isthmus.diagnose(planted((1.0,)), data(6))
    assert found.cuts is None
    assert found.warnings == ("No cut has judged the rank: that takes 8 rows at least.",)


def narrow_third() -> nn.Sequential:
    """20-48-48-48-5, whose third matrix has rank 3."""
    torch.manual_seed(0)
    module = chain(20, 48, 48, 48, 5)
    with torch.no_grad():
        u, _, v = torch.linalg.svd(module.get_parameter("4.weight"))
        module.get_parameter("4.weight").copy_(3 * u[:, :3] @ v[:3])
    return module


@pytest.mark.dear(1)
@pytest.mark.parametrize("jacobians", [True, False])
@pytest.mark.parametrize("module", [planted((1.0,) * 3), narrow_third()], ids=["second", "third"])
def test_the_headline_does_not_depend_on_how_many_rows_there_are(module: nn.Module, jacobians: bool) -> None:
    """The memory that few rows need once decided which layers were cut: none 48 wide of 600 and of 1,000 rows."""
    told = {n: headline(isthmus.diagnose(module, data(2000)[:n], jacobians=jacobians)) for n in (100, 400, 600, 2000)}
    assert len(set(told.values())) == 1, told
    assert "through 3 dimensions: less than 0.01 % of the output is lost there." in told[100]


def test_memory_is_announced_for_cuts_and_little_of_it_leaves_rows_out_before_layers() -> None:
    said: list[str] = []
    module, x = narrow_third(), data(600)
    free = isthmus.diagnose(module, x, progress=said.append)
    scarce = isthmus.diagnose(module, x, limits=Limits(memory=3 * 2**20), progress=said.append)
    scarcer = isthmus.diagnose(module, x, limits=Limits(memory=2**20 * 9 // 10), progress=said.append)
    announced = [float(re.findall(r"at most ([\d.]+) MiB", text)[0]) for text in said]
    assert announced[0] > announced[1] > announced[2]
    assert announced[1] <= 3
    assert announced[2] <= 0.9
    assert free.cuts is not None
    assert scarce.cuts is not None
    assert scarcer.cuts is not None
    assert free.cuts["layer"].values.tolist() == scarce.cuts["layer"].values.tolist()
    assert (free.cuts.attrs["left_out"], scarce.cuts.attrs["left_out"]) == ([], [])
    assert scarcer.cuts.attrs["left_out"]
    assert "too wide to be cut: " in next(line.text for line in verdict_of(scarcer).lines if line.label == "Cuts")


def headline(found: Diagnosis) -> str:
    return verdict_of(found).headline


def test_the_headline_says_what_is_lost(tmp_path: Path) -> None:
    """A rank of 3 that loses nothing; one of 2 by the gap, where weaker directions are needed; and no narrow place."""
    sure = isthmus.diagnose(planted((1.0,) * 3), data())
    assert headline(sure).endswith("3 dimensions: less than 0.01 % of the output is lost there.")

    many = isthmus.diagnose(planted((9.0, 9.0, *(1.5,) * 10)), data(), jacobians=False)
    assert many.rank.estimate is None
    assert headline(many).startswith("Through ")
    assert "; through 2 dimensions, which its readings suggest, " in headline(many)

    torch.manual_seed(0)
    wide = chain(20, 20, 20)
    assert headline(isthmus.diagnose(wide, data())).startswith("No narrow place: the network works through 20 ")

    table = cut_table(many)
    assert table is not None
    assert table.headings[:4] == ("behind", "where", "width", "rank at 10 %")
    report(many, tmp_path / "page.html", pictures=())
    page = (tmp_path / "page.html").read_text()
    assert "Narrow places" in page
    assert headline(many) in page


@pytest.mark.parametrize("jacobians", [True, False])
@pytest.mark.parametrize("hidden", [1, 3, 8])
def test_every_layer_is_cut_or_named_with_the_reason(
    hidden: int, jacobians: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Three or four were listed under a heading that said each, and nothing was told of the others."""
    torch.manual_seed(0)
    inner = nn.Sequential(chain(20, *[24] * hidden, 6), nn.Tanh(), Beside(), nn.Linear(6, 5).double())
    found = isthmus.diagnose(inner, data(), jacobians=jacobians)
    assert found.cuts is not None
    listed, others = found.cuts["name"].values.tolist(), found.cuts.attrs["not_cut"]
    assert sorted([*listed, *others, "2.inner"]) == sorted(found.layers["name"].values.tolist())
    assert found.cuts.attrs["left_out"] == []
    table = cut_table(found)
    assert table is not None
    named = f"{others[0]}" in table.note if others else "hold 99 %" not in table.note
    assert named
    assert (f"and {len(others) - 5} more" in table.note) is (len(others) > 5)
    assert table.note.endswith("layer 2.inner (not everything of a sample passes).")
    report(found, tmp_path / "page.html", pictures=())
    print_diagnosis(found, tmp_path / "page.html")
    assert table.note in " ".join(capsys.readouterr().out.split())
    assert table.note in (tmp_path / "page.html").read_text()


def test_where_all_layers_are_cut_nothing_is_said() -> None:
    table = cut_table(isthmus.diagnose(chain(20, 12, 5), data()))
    assert table is not None
    assert table.note == ""


@pytest.mark.parametrize(("spread", "still"), [(0.0, True), (1e-15, True), (1e-13, False), (1.0, False)])
def test_outputs_stand_still_where_none_varies_by_more_than_its_sums_round(spread: float, still: bool) -> None:
    """One that is large beside many that hardly vary does not make these still: the largest range is asked."""
    ends = Ends()
    rows = torch.ones(20, 50, dtype=torch.float64)
    rows[:, 7] += spread * torch.linspace(-0.5, 0.5, 20, dtype=torch.float64)
    for part in rows.split(6):
        ends.take(part)
    assert (ends.rounding() > 0) is still
