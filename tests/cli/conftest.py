from pathlib import Path

import numpy as np
import pytest

import discoveries
from command_lines import write_table


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The inputs of the discovery made by hand, and a target."""
    x = discoveries.inputs()
    return write_table(tmp_path / "table.csv", [*discoveries.INPUTS, "y"], np.column_stack([x, x[:, 0]]))


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """The same without the target."""
    return write_table(tmp_path / "inputs.csv", list(discoveries.INPUTS), discoveries.inputs())
