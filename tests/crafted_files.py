"""Files that would run a command when they are unpickled, exported or evaluated: each makes a marker."""

import json
import os
import pickle
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from isthmus.networks.export_noise import without_export_noise

Members = dict[str, bytes]


class Payload:
    """Unpickling it makes the marker."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (  # pyright: ignore[reportDeprecated] - as attackers write it
            f"touch {self.marker}",
        )


def program(path: Path) -> Path:
    """A program of torch.export.save that is as it should be."""
    module = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).eval()
    rows = torch.export.Dim("rows", min=1)
    with without_export_noise():
        torch.export.save(torch.export.export(module, (torch.randn(3, 5),), dynamic_shapes=({0: rows},)), path)
    return path


def rewritten(source: Path, path: Path, change: Callable[[Members], None]) -> Path:
    """The archive with some of its members changed."""
    with zipfile.ZipFile(source) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    root = next(iter(members)).partition("/")[0]
    inner = {name.removeprefix(f"{root}/"): content for name, content in members.items()}
    change(inner)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in inner.items():
            archive.writestr(f"{root}/{name}", content)
    return path


def _in_json(name: str, change: Callable[[Any], None], members: Members) -> None:
    value = json.loads(members[name])
    change(value)
    members[name] = json.dumps(value).encode()


def _pickled(marker: Path, folder: Path) -> bytes:
    torch.save({"x": Payload(marker)}, folder / "payload.pt")
    return (folder / "payload.pt").read_bytes()


def code(marker: Path) -> str:
    return f"__import__('os').system('touch {marker}')"


def attacks(marker: Path, folder: Path) -> dict[str, Callable[[Members], None]]:
    """Changes of a good program, by name."""
    graph = "models/model.json"

    def sample_inputs(members: Members) -> None:
        members["data/sample_inputs/model.pt"] = _pickled(marker, folder)

    def pickled_weight(members: Members) -> None:
        def change(value: Any) -> None:
            next(iter(value["config"].values()))["use_pickle"] = True

        _in_json("data/weights/model_weights_config.json", change, members)
        members["data/weights/weight_0"] = _pickled(marker, folder)

    def legacy_weights(members: Members) -> None:
        members["data/weights/model.pt"] = _pickled(marker, folder)

    def opaque_constant(members: Members) -> None:
        entry = {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None}
        _in_json("data/constants/model_constants_config.json", lambda v: v["config"].update(c=entry), members)
        members["data/constants/opaque_obj_0"] = pickle.dumps(Payload(marker))

    def shape_expression(members: Members) -> None:
        def change(value: Any) -> None:
            sizes = value["graph_module"]["graph"]["tensor_values"]["input"]["sizes"]
            sizes[0]["as_expr"]["expr_str"] = code(marker)

        _in_json(graph, change, members)

    def guard(members: Members) -> None:
        _in_json(graph, lambda v: v.update(guards_code=[code(marker)]), members)

    return {
        "sample inputs": sample_inputs,
        "a pickled weight": pickled_weight,
        "weights of the old format": legacy_weights,
        "an opaque constant": opaque_constant,
        "a shape expression": shape_expression,
        "a guard": guard,
    }


def other_changes() -> dict[str, Callable[[Members], None]]:
    """Changes that must be refused too, without a command behind them."""
    graph = "models/model.json"

    def target(name: str) -> Callable[[Members], None]:
        def change(members: Members) -> None:
            def inner(value: Any) -> None:
                value["graph_module"]["graph"]["nodes"][1]["target"] = name

            _in_json(graph, inner, members)

        return change

    def without_graph(members: Members) -> None:
        del members[graph]

    def structure(members: Members) -> None:
        def change(value: Any) -> None:
            signature = value["graph_module"]["module_call_graph"][0]["signature"]
            signature["in_spec"] = signature["in_spec"].replace("builtins.dict", "collections.defaultdict")

        _in_json(graph, change, members)

    def custom_object(members: Members) -> None:
        def change(value: Any) -> None:
            node = value["graph_module"]["graph"]["nodes"][0]
            node["inputs"][0]["arg"] = {"as_custom_obj": {"name": "x", "class_fqn": "a.B"}}

        _in_json(graph, change, members)

    def odd_constant(members: Members) -> None:
        entry = {"path_name": "custom_obj_0", "is_param": False, "use_pickle": False, "tensor_meta": None}
        _in_json("data/constants/model_constants_config.json", lambda v: v["config"].update(c=entry), members)
        members["data/constants/custom_obj_0"] = b""

    return {
        "an object in place of a tensor": custom_object,
        "a constant that is no tensor": odd_constant,
        "a function of torch": target("torch.hub.load"),
        "an operator that calls": target("_operator.call"),
        "an operator on files": target("torch.ops.aten.from_file.default"),
        "a structure that imports": structure,
        "no graph": without_graph,
        "a graph that is no JSON": lambda members: members.update({graph: b"{"}),
    }


def run_by_torch(path: Path) -> None:
    """What reading the file with torch alone does, whatever comes of it."""
    with warnings.catch_warnings(), without_export_noise():
        warnings.simplefilter("ignore")
        with suppress(Exception):  # it has run by then; what it raises is of no interest
            torch.export.load(path).module()(torch.randn(2, 5))
