"""Rank over training: one stepped line per layer, what is recorded and nothing else."""

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

from foreign_modules import samples
from isthmus import Monitor, plots


def test_what_a_monitor_recorded_is_drawn_line_by_line() -> None:
    module = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    monitor = Monitor(module, samples(40, 4), every=1)
    monitor.record(0)
    with torch.no_grad():
        module.get_parameter("0.weight")[1:] = 0.0
        module.get_parameter("0.bias")[1:] = 0.0
    monitor.record(10)
    ax = plots.rank_over_training(monitor.history)
    wanted = monitor.history["dimension_activation"].values
    assert wanted[1, 0] == 1
    for line, values in zip(ax.get_lines(), wanted.T, strict=True):
        assert list(np.asarray(line.get_xdata())) == [0, 10]
        np.testing.assert_array_equal(np.asarray(line.get_ydata()), values)  # NaN where there is no gap
        assert line.get_drawstyle() == "steps-post"
    texts = ax.get_legend()
    assert texts is not None
    assert [text.get_text() for text in texts.get_texts()] == ["0", "2"]


def test_many_layers_name_the_first_and_the_last_only() -> None:
    names = [f"layer {i}" for i in range(20)]
    table = xr.Dataset(
        {"dimension_participation": (("step", "layer"), np.ones((3, 20)))}, coords={"step": [0, 1, 2], "layer": names}
    )
    shown = plots.rank_over_training(table, variable="dimension_participation").get_legend()
    assert shown is not None
    assert [text.get_text() for text in shown.get_texts()] == ["layer 0", "layer 19"]
    with pytest.raises(ValueError, match="needs a table by step and layer with it"):
        plots.rank_over_training(table)
