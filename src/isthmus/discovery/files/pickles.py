"""What a pickle would import, read off its opcodes without running one: for files that should hold tensors alone.

torch's own unpickler for tensors (weights_only) refuses what calls code, but makes what it knows, also a bytearray of
any size. Who loads such files: `files.models`; who never does: `files.programs`.
"""

import io
import pickle
import pickletools
import re
import zipfile
from collections.abc import Iterator

# of tensors, parameters and plain values, as torch.save writes them
_KNOWN = re.compile(
    r"collections OrderedDict|torch\._utils _rebuild_(tensor|tensor_v2|tensor_v3|parameter|parameter_with_state)"
    r"|torch(\.storage)? \w+Storage|torch\.nn\.parameter (Parameter|Buffer)|torch\._tensor _rebuild_from_type_v2"
    r"|(builtins|__builtin__) (set|complex)|_codecs encode"
    r"|torch (Tensor|Size|device|dtype|bool|uint\d+|int\d+|float\d+|bfloat16|complex\d+|half|float|double|long|int"
    r"|float8_\w+)|torch\.serialization _get_layout"
)
_LEGACY_START = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # the magic number
_LEGACY_PICKLES = 5  # magic number, version, system, content, names of storages


def odd_global(content: bytes) -> str:
    """The first name that such a file would import and that belongs to no tensor, as "os system"; else empty.

    Args:
        content: of a file of torch.save, a zip archive or of the old kind.

    Raises:
        UnpicklingError: it is no file of torch.save.
        ValueError: an archive whose members are packed or overlap: what they unpack to may be of any size.
    """
    return next((name for name in _imported(content) if not _KNOWN.fullmatch(name)), "")


def is_torchscript(content: bytes) -> bool:
    """Whether a file is an archive of `torch.jit.save`, by the names of its members."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = {name.partition("/")[2] for name in archive.namelist()}
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError, ValueError):
        return False
    return "constants.pkl" in names and any(name.startswith("code/") for name in names)


def _imported(content: bytes) -> Iterator[str]:
    if not zipfile.is_zipfile(io.BytesIO(content)):
        if not content.startswith(_LEGACY_START):
            raise pickle.UnpicklingError("neither an archive nor a file of an old torch.save")
        yield from _named(io.BytesIO(content), _LEGACY_PICKLES)
        return
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
            if not stored or sum(entry.file_size for entry in entries) > len(content):
                raise ValueError("its members are packed or overlap")
            pickles = [archive.read(entry) for entry in entries if entry.filename.endswith(".pkl")]
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError):
        return
    for pickled in pickles:
        yield from _named(io.BytesIO(pickled), 1)


def _named(stream: io.BytesIO, count: int) -> Iterator[str]:
    """The names in so many pickles, one behind the other, up to where they are no pickles."""
    try:
        for _ in range(count):
            for opcode, argument, _place in pickletools.genops(stream):
                if opcode.name == "GLOBAL":
                    yield str(argument)
                elif opcode.name in {"STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4"}:
                    yield f"something by {opcode.name}"  # names put together while it runs; torch.save writes none
    except (ValueError, UnicodeError, IndexError, KeyError, AttributeError):
        return
