"""Mutants of good files: bytes changed, cut, copied and exchanged, numbers and words replaced by hostile ones."""

import io
import random
import re
import zipfile
import zlib

NUMBERS = [b"0", b"-1", b"1e400", b"999999999999", b"1" * 30, b"9" * 400, b"9" * 5000, b"nan", b"True", b"1_0", b"0x1F",
           b"1,234", b"-0", b"1e-400", b"18446744073709551616", b"9223372036854775807", b"4294967296"]  # fmt: skip
WORDS = [
    b"", b"'", b'"', b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b"\r", b",,,,", b"=1+1", b"$\\frac$", b"[/a]",
    b"a" * 5000, "\u202e".encode(), "\U0001f600".encode(), b"\xed\xa0\x80", b"[" * 3000, b"{" * 3000, b"(" * 500,
    b"-" * 2000, b"[[a]]\n", b'{"a":' * 3000, b"x = [" + b"[" * 2000, b"O", b"V0", b"'descr': '|O'", b"U0", b"<M8[ns]",
    b"<c16", b"f16", b"__import__('os')", b"\\N{x}", b"'\\d'", b"a.b.c = 1\n", b"/dev/zero", b"../../x",
]  # fmt: skip
INTERESTING = [0, 1, 2, 4, 8, 9, 12, 14, 20, 95, 99, 127, 128, 255]
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)


def mutant(content: bytes, chance: random.Random, *, others: list[bytes]) -> bytes:
    """A changed file; the same chance gives the same one."""
    if content[:2] == b"PK" and chance.random() < 0.7:
        return _archive(content, chance, others)
    if content[:2] == b"\x1f\x8b" and chance.random() < 0.5:
        return zlib.compress(bytes(_changed(bytearray(zlib.decompress(content, 31)), chance, others)), wbits=31)
    return bytes(_changed(bytearray(content), chance, others))


def _changed(content: bytearray, chance: random.Random, others: list[bytes]) -> bytearray:
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        content = _step(content, chance, others)
    return content


def _step(content: bytearray, chance: random.Random, others: list[bytes]) -> bytearray:
    size = len(content)
    if not size:
        return bytearray(chance.choice(WORDS))
    # heads and tails say what the rest is, and are changed more often than their share
    place = chance.choice(
        (chance.randrange(size), chance.randrange(min(size, 140)), size - 1 - chance.randrange(min(size, 140)))
    )
    kind = chance.randrange(9)
    if kind == 0:
        content[place] ^= 1 << chance.randrange(8)
    elif kind == 1:
        content[place] = chance.choice(INTERESTING)
    elif kind == 2:
        del content[place : place + chance.choice((1, 2, 4, 16, 100, size))]
    elif kind == 3:
        end = place + chance.choice((1, 4, 30, 200))
        content[place:place] = content[place:end] * chance.choice((1, 2, 50))
    elif kind == 4:
        content[place:place] = chance.choice(WORDS)
    elif kind == 5:
        width = chance.choice((2, 4, 8))
        value = chance.choice((0, 1, 2**7, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1))
        content[place : place + width] = (value % 2 ** (8 * width)).to_bytes(width, chance.choice(("little", "big")))
    elif kind == 6:
        other = chance.choice(others)
        begin = chance.randrange(len(other))
        content[place : place + chance.randrange(40)] = other[begin : begin + chance.randrange(200)]
    else:
        found = list(re.finditer(rb"[0-9][0-9.e+-]*" if kind == 7 else rb"[A-Za-z_'\"(\[{]+", bytes(content[:4000])))
        if found:
            chosen = chance.choice(found)
            content[chosen.start() : chosen.end()] = chance.choice(NUMBERS if kind == 7 else WORDS)
    return content


def _archive(content: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """An archive whose members were changed, and packed again as they should be; or heads that tell lies of them."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # noqa: BLE001 - a mutant of a mutant
        return content
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", chance.choice(_METHODS)) as archive:
        for name, member in members.items():
            changed = bytes(_changed(bytearray(member), chance, others)) if chance.random() < 0.7 else member
            archive.writestr(name, changed)
    made = bytearray(stream.getvalue())
    if chance.random() < 0.3:  # flags, method, checksum and sizes of a member, in its head and in the directory
        for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            if (start := made.find(mark)) >= 0:
                place = start + offset + chance.choice((0, 2, 8, 12, 16))
                made[place : place + 2] = chance.choice((b"\1\0", b"\x63\0", b"\xff\xff", b"\0\0", b"\x0e\0"))
    return bytes(made)
