"""Certificates written by isthmus and checked by `tests/recheck.py`, which imports nothing of it; forgeries refused."""

import ast
import copy
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import isthmus.recheck
from isthmus.constructions import x_cross_example
from isthmus.networks import FullyConnected, jacobians, segment_pieces
from isthmus.theory import (
    betweenness_certificate,
    borsuk_ulam_certificate,
    bottleneck_certificate,
    jacobian_rank_lower_bound,
    spanning_tree_certificate,
    two_sequence_certificate,
)
from theorem_checks import linearised, normal, random_network

PROGRAM = Path(__file__).parents[1] / "recheck.py"
Witness = dict[str, Any]


def layers_of(network: FullyConnected) -> Witness:
    weights, biases = network.written_layers()
    assert biases is not None
    return {
        "weights": [w.tolist() for w in weights],
        "biases": [b.tolist() for b in biases],
        "negative_slope": network.negative_slope,
    }


def rank_witness() -> Witness:
    network = random_network(3, (5, 8, 2, 8, 4))
    x = normal(4, 30, 5)
    with torch.no_grad():
        found = jacobians(network, x)
    rank, witness = jacobian_rank_lower_bound(found, tolerance=1e-6)
    assert rank == 2
    assert witness is not None
    pairs = [list(pair) for pair in itertools.combinations(range(4), 2)]
    minors = [
        (float(found[witness][rows][:, columns].det().abs()), rows, columns) for rows in pairs for columns in pairs
    ]
    _size, rows, columns = max(minors)
    return {
        "kind": "jacobian_rank",
        "claim": 2,
        "x": x[witness].tolist(),
        "rows": rows,
        "columns": columns,
    } | layers_of(network)


def betweenness_witness() -> Witness:
    """Three arms of the x-cross; a path through the centre joins any two of them."""
    network = x_cross_example().network
    arms = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]], dtype=torch.float64)
    centre = torch.zeros(2, dtype=torch.float64)
    with torch.no_grad():
        values = network(arms)
    paths: list[Tensor] = []
    for i in range(3):
        start, end = (arms[j] for j in range(3) if j != i)
        halves = segment_pieces(network, start, centre), segment_pieces(network, centre, end)
        paths.append(torch.cat([half.values for half in halves]))
    found = betweenness_certificate(values, paths)
    assert found.rank == 2
    return {
        "kind": "betweenness",
        "claim": 2,
        "values": values.tolist(),
        "paths": [path.tolist() for path in paths],
        "distances": found.distances.tolist(),
    }


def borsuk_ulam_witness() -> Witness:
    angles = (torch.arange(40, dtype=torch.float64) + 0.3) * (torch.pi / 40)
    circle = torch.stack([angles.cos(), angles.sin()], 1)
    matrix = torch.tensor([[1.0, 0.4], [0.0, 0.8], [0.3, -0.2]], dtype=torch.float64)
    values, antipodes = circle @ matrix.T, -circle @ matrix.T
    lipschitz, spacing = float(torch.linalg.matrix_norm(matrix, 2)), torch.pi / 80
    found = borsuk_ulam_certificate(values, antipodes, sphere_dimension=1, lipschitz=lipschitz, spacing=spacing)
    assert found.rank == 2
    return {
        "kind": "borsuk_ulam",
        "claim": 2,
        "angles": angles.tolist(),
        "values": values.tolist(),
        "antipodes": antipodes.tolist(),
        "lipschitz": lipschitz,
        "spacing": spacing,
    }


def sphere(k: int, cells: int) -> Tensor:
    """Centres of squares on the faces of a cube, pushed onto S^k: no point is further than sqrt(k) / cells from one."""
    ticks = (torch.arange(cells, dtype=torch.float64) + 0.5) * (2 / cells) - 1
    grid = torch.cartesian_prod(*[ticks] * k).reshape(-1, k)
    faces: list[Tensor] = []
    for axis in range(k + 1):
        for side in (-1.0, 1.0):
            faces.append(torch.cat([grid[:, :axis], torch.full((len(grid), 1), side), grid[:, axis:]], 1))
    return torch.nn.functional.normalize(torch.cat(faces))


def sphere_witness(k: int, cells: int) -> Witness:
    """A leaky network that embeds S^k: no k numbers carry what it tells of the sphere."""
    frames = [torch.linalg.qr(normal(11 + k, width, k + 1)).Q for width in (k + 4, k + 6)]
    first, second = frames[0], frames[1] @ frames[0].T
    biases = [0.1 * normal(21, k + 4), 0.1 * normal(22, k + 6)]
    network = FullyConnected.from_layers([first, second], biases, negative_slope=0.7)
    points = sphere(k, cells)
    with torch.no_grad():
        values, antipodes = network(points), network(-points)
    lipschitz = float(torch.stack([torch.linalg.matrix_norm(w, 2) for w in (first, second)]).prod())
    found = borsuk_ulam_certificate(values, antipodes, sphere_dimension=k, lipschitz=lipschitz, spacing=k**0.5 / cells)
    assert found.rank == k + 1
    return {
        "kind": "borsuk_ulam_sphere",
        "claim": k + 1,
        "cells": cells,
        "least": found.measured,
        "threshold": found.threshold,
    } | layers_of(network)


def flattened(witness: Witness) -> Witness:
    """The same network after its last coordinate of the sphere is thrown away."""
    forged = copy.deepcopy(witness)
    forged["weights"][0] = [[*row[:-1], 0.0] for row in forged["weights"][0]]
    return forged


def spanning_tree_witness() -> Witness:
    side = torch.linspace(0, 1, 5, dtype=torch.float64)
    x = torch.cartesian_prod(side, side)
    matrix = torch.tensor([[0.8, -0.6], [0.6, 0.8]], dtype=torch.float64)  # a turn: rank 2, Lipschitz constant 1
    assert spanning_tree_certificate(x, x @ matrix.T, lipschitz=1.0).rank == 2
    return {
        "kind": "spanning_tree",
        "claim": 2,
        "x": x.tolist(),
        "values": (x @ matrix.T).tolist(),
        "lipschitz": 1.0,
    }


def near_identity_witness(slope: float) -> Witness:
    network = random_network(5, (4, 6, 6, 6, 3), slope=slope, bias=0.1)
    x = normal(6, 40, 4)
    read = linearised(network, x)
    with torch.no_grad():
        i = int(torch.linalg.svdvals(jacobians(network, x))[:, 1].argmax())
    certify = bottleneck_certificate if slope == 0 else two_sequence_certificate
    found = certify(read.weights, read.biases, read.point(i), rank=2)
    return {
        "kind": "near_identity",
        "claim": 2,
        "two_sequences": slope != 0,
        "x": x[i].tolist(),
        "incoming": [v.tolist() for v in found.incoming],
        "outgoing": [u.tolist() for u in found.outgoing],
        "residuals": found.residuals.tolist(),
        "bound": found.bound,
    } | layers_of(network)


WITNESSES: dict[str, Callable[[], Witness]] = {
    "rank": rank_witness,
    "betweenness": betweenness_witness,
    "borsuk_ulam": borsuk_ulam_witness,
    "sphere": lambda: sphere_witness(2, 24),
    "3-sphere": lambda: sphere_witness(3, 12),
    "one sequence": lambda: near_identity_witness(0.0),
    "two sequences": lambda: near_identity_witness(-0.3),
    "tree": spanning_tree_witness,
}


def recheck(folder: Path, witnesses: list[Witness]) -> subprocess.CompletedProcess[str]:
    (folder / "witnesses.json").write_text(json.dumps(witnesses))
    return subprocess.run(
        [sys.executable, str(PROGRAM), str(folder / "witnesses.json")], capture_output=True, text=True, check=False
    )


def test_the_program_knows_nothing_of_the_library() -> None:
    imported = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(ast.parse(Path(isthmus.recheck.__file__).read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    standard = {"dataclasses", "hashlib", "json", "re", "stat", "sys", "collections.abc", "pathlib", "typing"}
    assert imported == standard | {"numpy", "safetensors", "safetensors.numpy"}


def test_every_witness_stands(tmp_path: Path) -> None:
    done = recheck(tmp_path, [make() for make in WITNESSES.values()])
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [
        "jacobian_rank", "betweenness", "borsuk_ulam", "borsuk_ulam_sphere", "borsuk_ulam_sphere",
        "near_identity", "near_identity",
        "spanning_tree",
    ]  # fmt: skip


def change(witness: Witness, key: str, *place: int, by: float = 1e-3) -> Witness:
    forged = copy.deepcopy(witness)
    if not place:
        forged[key] += by
        return forged
    holder = forged[key]
    for index in place[:-1]:
        holder = holder[index]
    holder[place[-1]] += by
    return forged


def collapsed(witness: Witness) -> Witness:
    """The same minor asked of a network whose bottleneck has one neuron left."""
    forged = copy.deepcopy(witness)
    forged["weights"][1][1] = [2 * w for w in forged["weights"][1][0]]
    forged["biases"][1][1] = 2 * forged["biases"][1][0]
    return forged


FORGERIES: dict[str, tuple[str, Callable[[Witness], Witness], str]] = {
    "rank of a narrower network": ("rank", collapsed, "is rounding"),
    "a larger rank": ("rank", lambda w: w | {"claim": 3, "rows": [0, 1, 2], "columns": [0, 1, 2]}, "is rounding"),
    "a repeated row": ("rank", lambda w: w | {"rows": [0, 0]}, "not k x k"),
    "a path that ends elsewhere": ("betweenness", lambda w: change(w, "paths", 0, 0, 0), "does not join"),
    "a distance made up": ("betweenness", lambda w: change(w, "distances", 1), "recorded"),
    "a path through the point": (
        "betweenness",
        lambda w: w | {"paths": [[w["values"][1], w["values"][0], w["values"][2]], *w["paths"][1:]]},
        "meets value 1",
    ),
    "a gap in the grid": ("borsuk_ulam", lambda w: change(w, "angles", 3, by=0.05), "gaps"),
    "a small Lipschitz constant": ("borsuk_ulam", lambda w: change(w, "lipschitz", by=-0.5), "faster"),
    "antipodes that meet": (
        "borsuk_ulam",
        lambda w: w | {"antipodes": [*w["values"]]},
        "antipodes come within|faster",
    ),
    "a sphere made flat": ("sphere", flattened, "antipodes come within"),
    "a sphere on too coarse a grid": ("3-sphere", lambda w: w | {"cells": 2}, "antipodes come within"),
    "a distance of antipodes made up": ("sphere", lambda w: change(w, "least"), "recorded"),
    "a sphere of another dimension": ("sphere", lambda w: w | {"claim": 4}, "does not live"),
    "a frame that is no frame": ("one sequence", lambda w: change(w, "incoming", 1, 0, 0), "not orthonormal"),
    "a residual made small": ("one sequence", lambda w: change(w, "residuals", 2, by=-0.1), "residual 3"),
    "a bound made small": ("one sequence", lambda w: change(w, "bound", by=-0.5), "the bound is"),
    "frames not shared": ("two sequences", lambda w: w | {"two_sequences": False}, "do not share a frame"),
    "a flat map called flatter": ("tree", lambda w: change(w, "lipschitz", by=-0.5), "faster"),
    "a tree that is too short": ("tree", lambda w: w | {"x": w["x"][:2], "values": w["values"][:2]}, "the tree is"),
    "no number": ("borsuk_ulam", lambda w: change(w, "values", 0, 0, by=float("nan")), "no finite array"),
    "an unknown kind": ("rank", lambda w: w | {"kind": "faith"}, "unknown kind"),
}


def test_forgeries_are_refused_one_by_one(tmp_path: Path) -> None:
    made = {name: make() for name, make in WITNESSES.items()}
    done = recheck(tmp_path, [forge(made[name]) for name, forge, _why in FORGERIES.values()])
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(FORGERIES)
    for line, (case, (_name, _forge, why)) in zip(lines, FORGERIES.items(), strict=True):
        assert "REFUSED" in line, f"{case}: {line}"
        assert any(part in line for part in why.split("|")), f"{case}: {line}"


@pytest.mark.parametrize("content", ["[]"])
def test_nothing_proves_nothing(tmp_path: Path, content: str) -> None:
    assert recheck(tmp_path, json.loads(content)).returncode == 1
