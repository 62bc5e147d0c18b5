"""Exported programs whose archive is bent: names that lead elsewhere, links, pairs, lies about sizes, two files in one.

Of a program that was written to good.pt2, after which torch names the folder in it. What stands inside of the members:
`crafted_programs`.
"""

import io
import json
import pickle
import stat
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

from crafted_files import Payload, code
from crafted_programs import GRAPH

Bend = Callable[[bytes], bytes]
Entry = tuple[str | zipfile.ZipInfo, bytes]
LOCAL, CENTRAL, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"


def _entries(content: bytes) -> list[Entry]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def _packed(entries: list[Entry], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of two members of one name
        for name, content in entries:
            archive.writestr(name, content)
    return stream.getvalue()


def _with(*more: Entry, first: bool = False) -> Bend:
    def bend(content: bytes) -> bytes:
        entries = _entries(content)
        return _packed([*more, *entries] if first else [*entries, *more])

    return bend


def _link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info


def _said(kind: bytes, offset: int, value: bytes, member: str = "") -> Bend:
    """Another number in the head of a kind (of a member, in the directory, of the directory); of that member."""
    name_at, length_at = {LOCAL: (30, 26), CENTRAL: (46, 28), END: (22, 20)}[kind]

    def bend(content: bytes) -> bytes:
        place = content.index(kind)
        while member:
            length = int.from_bytes(content[place + length_at : place + length_at + 2], "little")
            if content[place + name_at :][:length].endswith(member.encode()):
                break
            place = content.index(kind, place + 1)
        return content[: place + offset] + value + content[place + offset + len(value) :]

    return bend


def _twice(content: bytes) -> bytes:
    """A second entry of the directory that shows the bytes of the first one under another name."""
    end = content.rindex(END)
    count, size, start = struct.unpack("<HII", content[end + 10 : end + 20])
    first = bytearray(content[start : content.index(CENTRAL, start + 1)])
    first[46] ^= 1
    tail = bytearray(content[end:])
    tail[8:20] = struct.pack("<HHII", count + 1, count + 1, size + len(first), start)
    return content[:end] + bytes(first) + bytes(tail)


def bends(marker: Path) -> dict[str, Bend]:
    """Changes of a good archive by name."""
    raw, run = pickle.dumps(Payload(marker)), code(marker).encode()
    graph = json.dumps({"graph_module": code(marker)}).encode()
    outside = (
        str(marker), f"../../../../../../..{marker}", "good/../../marker", "good/data/weights/../../../marker",
        "..\\..\\marker", "C:\\marker", "good//models//model.json", "/", ".", "..", "good/", "good/\r\nx",
        f"good/extra/../../../../../..{marker}", "good/data/weights/weight_0/../../x", "~/marker",
        "good/models/model.json\0.txt", "good/ｍodels/model.json", "good/models/./model.json",
        "good/data/weights/weight_\u202e0", "file:///etc/passwd", "good/$(id)", f"good/extra/{code(marker)}",
    )  # fmt: skip
    found = {f"a member {name[:30]!r}": _with((name, raw)) for name in outside}
    for name in ("extra/link", "data/weights/weight_99", "data/sample_inputs/model.pt", "byteorder2"):
        found[f"a link {name!r}"] = _with((_link(f"good/{name}"), str(marker).encode()))
    pairs = (
        f"good/{GRAPH}", f"good/{GRAPH.upper()}", f"other/{GRAPH}", f"/{GRAPH}", f"good\\{GRAPH}", GRAPH,
        f"good/good/{GRAPH}", f"./good/{GRAPH}",
    )  # fmt: skip
    for name in pairs:
        for first in (True, False):
            found[f"a second graph {name!r} {'before' if first else 'behind'}"] = _with((name, graph), first=first)
    huge, most = b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff"
    found |= {
        "a graph of another size here": _said(CENTRAL, 24, huge, GRAPH),
        "a graph of another size there": _said(LOCAL, 22, huge, GRAPH),
        "a graph of a size for zip64": _said(CENTRAL, 20, most + most, GRAPH),
        "a graph that is locked": _said(CENTRAL, 8, b"\1\0", GRAPH),
        "a graph of an unknown packing": _said(CENTRAL, 10, b"\x63\0", GRAPH),
        "a graph elsewhere": _said(CENTRAL, 42, b"\0\0\0\0", GRAPH),
        "a graph far away": _said(CENTRAL, 42, huge, GRAPH),
        "a graph on another disk": _said(CENTRAL, 34, b"\7\0", GRAPH),
        "a graph that is a link": _said(CENTRAL, 38, struct.pack("<I", (stat.S_IFLNK | 0o777) << 16), GRAPH),
        "a name of another length": _said(CENTRAL, 28, b"\xff\xff", GRAPH),
        "more entries than there are": _said(END, 8, b"\xff\xfe\xff\xfe"),
        "a directory elsewhere": _said(END, 16, huge),
        "a directory of another size": _said(END, 12, most),
        "two names of the same bytes": _twice,
        "a pickle before it": lambda content: raw + content,
        "a pickle behind it": lambda content: content + raw,
        "a script before it": lambda content: b"#!/bin/sh\ntouch " + str(marker).encode() + b"\nexit\n" + content,
        "another archive behind it": lambda content: content + _packed([(f"good/{GRAPH}", graph)]),
        "another archive before it": lambda content: _packed([(f"good/{GRAPH}", graph)]) + content,
        "half of it": lambda content: content[: len(content) // 2],
        "nothing": lambda _content: b"",
        "a pickle alone": lambda _content: raw,
        "code alone": lambda _content: run,
        "an archive of torch.save": lambda _content: _packed([("good/data.pkl", raw), ("good/version", b"3\n")]),
        "an archive of torch.jit": lambda _content: _packed([("a/constants.pkl", raw), ("a/code/__torch__.py", run)]),
        "a remark": lambda content: content[:-2] + struct.pack("<H", len(run)) + run,
    }
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        found[f"packed by {method}"] = lambda content, method=method: _packed(_entries(content), method)
    return found
