"""Real files of pictures in real folders: a task, or one line that names the file and says what to do."""

import io
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from isthmus.errors import DataError, DataWarning
from isthmus.tasks import Kind, TableOptions, Task, read_table
from isthmus.tasks.files import columns_beside
from isthmus.tasks.files_alike import inputs_like
from isthmus.tasks.input_columns import columns_of, recorded
from isthmus.tasks.picture_folders import picture_folder
from isthmus.tasks.picture_listing import listed

GREY = np.arange(24 * 3 * 4, dtype=np.uint8).reshape(24, 3, 4)  # pictures of 3 lines of 4 pixels
Write = Callable[[Path], object]


def saved(array: np.ndarray, path: Path, mode: str | None = None, **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.fromarray(array)
    (picture if mode is None else picture.convert(mode)).save(path, **options)  # type: ignore[arg-type]
    return path


def film(folder: Path, *, suffix: str = ".png", count: int = 24) -> Path:
    for i in range(count):
        saved(GREY[i], folder / f"f{i}{suffix}")
    return folder


def classes(folder: Path) -> Path:
    for i in range(24):
        saved(GREY[i], folder / ("sick" if i % 3 else "healthy") / f"f{i}.png")
    return folder


def read(folder: Path, **options: object) -> Task:
    return read_table(folder, drop_constant=False, **options)  # type: ignore[arg-type]


def test_each_picture_is_a_row_of_pixels_in_the_order_of_numbers(tmp_path: Path) -> None:
    task = read(film(tmp_path))
    assert task.kind is Kind.AUTOENCODING
    assert task.row_names == tuple(f"f{i}.png" for i in range(24))  # not f0, f1, f10, f11
    np.testing.assert_array_equal(task.x, GREY.reshape(24, 12) / 255)
    assert task.x_names[:2] == ("row 1 column 1", "row 1 column 2")
    assert task.x_names[-1] == "row 3 column 4"
    assert {column.column for column in task.x_columns} == {"4 x 3 pixels, 8-bit grey"}
    assert columns_of(task.x_names, recorded(task.x_columns)) == task.x_columns


COLOUR = np.stack([GREY, GREY[::-1], GREY + 7], axis=-1)
KINDS: dict[str, tuple[Callable[[Path, int], object], np.ndarray, str]] = {
    "png": (lambda p, i: saved(GREY[i], p / f"{i}.png"), GREY / 255, "8-bit grey"),
    "bmp": (lambda p, i: saved(GREY[i], p / f"{i}.BMP"), GREY / 255, "8-bit grey"),
    "tiff": (lambda p, i: saved(GREY[i], p / f"{i}.tif", compression="tiff_lzw"), GREY / 255, "8-bit grey"),
    "16-bit png": (lambda p, i: saved(GREY[i] * np.uint16(257), p / f"{i}.png"), GREY / 255, "16-bit grey"),
    "16-bit tiff": (lambda p, i: saved(GREY[i] * np.uint16(257), p / f"{i}.tiff"), GREY / 255, "16-bit grey"),
    "floating point": (lambda p, i: saved(GREY[i] / np.float32(4), p / f"{i}.tif"), GREY / 4, "floating point"),
    "32-bit": (lambda p, i: saved(GREY[i] * np.int32(-9), p / f"{i}.tif"), GREY * -9.0, "32-bit grey"),
    "two values": (lambda p, i: saved(GREY[i] > 99, p / f"{i}.png"), (GREY > 99) * 1.0, "black and white"),
    "colour": (lambda p, i: saved(COLOUR[i], p / f"{i}.png"), COLOUR / 255, "8-bit colour"),
    "palette": (
        lambda p, i: saved(COLOUR[i], p / f"{i}.png", mode="P", bits=8),
        np.stack([np.asarray(Image.fromarray(c).convert("P").convert("RGB")) for c in COLOUR]) / 255,
        "8-bit colour",
    ),
    "alpha": (
        lambda p, i: saved(np.dstack([COLOUR[i], GREY[i]]), p / f"{i}.png"),
        np.concatenate([COLOUR, GREY[..., None]], axis=-1) / 255,
        "8-bit colour with alpha",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_pixel_is_read_as_what_it_is(tmp_path: Path, kind: str) -> None:
    write, wanted, words = KINDS[kind]
    for i in range(24):
        write(tmp_path, i)
    task = read(tmp_path)
    np.testing.assert_allclose(task.x, wanted.reshape(24, -1), rtol=1e-15)
    assert task.x_columns[0].column == f"4 x 3 pixels, {words}"


def test_jpeg_is_read_and_held_upright(tmp_path: Path) -> None:
    tags = Image.Exif()
    tags[0x0112] = 6  # the camera was turned by a quarter
    for i in range(24):
        saved(np.linspace(0, 5 * i, 128, dtype=np.uint8).reshape(8, 16), tmp_path / f"{i}.jpg", quality=95, exif=tags)
    task = read(tmp_path)
    assert task.x_columns[0].column == "8 x 16 pixels, 8-bit grey"
    upright = np.rot90(np.linspace(0, 5 * 23, 128).reshape(8, 16), -1)
    assert abs(task.x[23].reshape(16, 8) - upright / 255).max() < 0.03  # what JPEG leaves of it


def test_pictures_in_several_folders_have_them_as_classes_unless_something_else_is_asked_for(tmp_path: Path) -> None:
    task = read(classes(tmp_path))
    assert task.kind is Kind.CLASSIFICATION
    assert task.y_names == ("healthy", "sick")
    assert task.row_names[:2] == ("healthy/f0.png", "healthy/f3.png")
    assert task.y is not None
    assert task.y[:, 0].tolist() == [1.0] * 8 + [0.0] * 16
    np.testing.assert_array_equal(task.x[1], GREY[3].reshape(-1) / 255)
    assert read(tmp_path, autoencode=True).kind is Kind.AUTOENCODING
    grouped = read(tmp_path, autoencode=True, groups="folder").groups
    assert grouped is not None
    assert grouped.tolist() == [0] * 8 + [1] * 16


def test_one_folder_in_the_folder_makes_no_classes(tmp_path: Path) -> None:
    film(tmp_path / "all")
    assert read(tmp_path).kind is Kind.AUTOENCODING


def labels(path: Path, **changes: object) -> Path:
    count = len(next(iter(changes.values()))) if changes else 24  # type: ignore[arg-type]
    columns = {"picture": [f"f{i}.png" for i in range(count)], "heat": [float(i) for i in range(count)]} | changes
    pd.DataFrame(columns).sample(frac=1, random_state=0).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("place", ["inside", "beside"])
def test_a_table_tells_targets_of_pictures_in_the_order_of_the_pictures(tmp_path: Path, place: str) -> None:
    folder = film(tmp_path / "film")
    labels(folder / "labels.csv" if place == "inside" else tmp_path / "labels.csv")
    target = "labels.csv" if place == "inside" else str(tmp_path / "labels.csv")
    task = read(folder, target=target)
    assert task.y is not None
    assert task.y[:, 0].tolist() == [float(i) for i in range(24)]
    assert task.y_names == ("heat",)
    assert task.x.shape == (24, 12)  # nothing of the table is an input


@pytest.mark.filterwarnings("ignore:.*became one 0/1 column")
def test_columns_of_the_one_table_in_the_folder_go_by_their_names(tmp_path: Path) -> None:
    folder = film(tmp_path)
    kinds = ["ab"[i % 2] for i in range(24)]
    labels(folder / "labels.csv", kind=kinds, day=[i // 6 for i in range(24)])
    task = read(folder, classes="kind", groups="day")
    assert task.y_names == ("a", "b")
    assert task.groups is not None
    assert task.groups.tolist() == [i // 6 for i in range(24)]
    beside = columns_beside(folder, ["heat", "kind"])
    assert beside["heat"][:, 0].tolist() == [float(i) for i in range(24)]
    assert beside["kind"].argmax(axis=1).tolist() == [i % 2 for i in range(24)]
    units = read(labels_with_units(folder), target="T [K]", options=TableOptions(units=True)).units
    assert units is not None
    assert units.texts["T [K]"] == "K"


def labels_with_units(folder: Path) -> Path:
    pd.DataFrame({"id": range(24), "T [K]": np.linspace(0, 1, 24)}).to_csv(folder / "labels.csv", index=False)
    for i in range(24):
        (folder / f"f{i}.png").rename(folder / f"{i}.png")
    return folder


@pytest.mark.parametrize("name", ["{0:04d}", "f/{0:04d}.png", "./f\\{0:04d}.png", "pictures/f/{0:04d}.png"])
def test_names_of_pictures_are_known_in_all_ways_in_which_they_are_written(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "pictures"
    for i in range(24):
        saved(GREY[i], folder / "f" / f"{i:04d}.png")
    table = pd.DataFrame({"nr": range(24), "of": [name.format(i) for i in range(24)], "heat": np.linspace(0, 1, 24)})
    table.to_csv(folder / "labels.csv", index=False)
    task = read(folder, target="heat")
    assert task.y is not None
    np.testing.assert_allclose(task.y[:, 0], np.linspace(0, 1, 24))


def test_a_name_that_two_pictures_have_is_none_and_folders_stay_a_column_beside_a_table(tmp_path: Path) -> None:
    for i in range(24):
        saved(GREY[i], tmp_path / "ab"[i % 2] / f"{i // 2}.png")
    table = pd.DataFrame({"of": [f"{i // 2}.png" for i in range(24)], "heat": np.linspace(0, 1, 24)})
    table.to_csv(tmp_path / "labels.csv", index=False)
    with pytest.raises(DataError, match="no column names the pictures"):
        read(tmp_path, target="heat")
    table["of"] = [f"{'ab'[i % 2]}/{i // 2}.png" for i in range(24)]
    table.to_csv(tmp_path / "labels.csv", index=False)
    task = read(tmp_path, target="heat", groups="folder")
    assert task.y is not None
    np.testing.assert_allclose(task.y[:12, 0], np.linspace(0, 1, 24)[::2])
    assert task.groups is not None
    assert task.groups.tolist() == [0] * 12 + [1] * 12


def test_what_lacks_a_partner_is_left_out_only_where_that_is_asked_for(tmp_path: Path) -> None:
    folder = film(tmp_path)
    names = [f"f{i}.png" for i in range(2, 24)] + ["gone.png"]
    heat: list[float | None] = [float(i) for i in range(2, 25)]
    heat[3] = None
    labels(folder / "labels.csv", picture=names, heat=heat)
    with pytest.raises(DataError, match=r"2 pictures without a row: files 'f0.png', 'f1.png'; 1 row without a picture"):
        read(folder, target="heat")
    with pytest.warns(DataWarning) as said:
        task = read(folder, target="heat", options=TableOptions(drop_missing=True))
    assert task.row_names == tuple(f"f{i}.png" for i in range(2, 24) if i != 5)
    assert task.y is not None
    assert task.y[:, 0].tolist() == [float(i) for i in range(2, 24) if i != 5]
    assert any("left out 3 pictures without a row" in str(one.message) for one in said)


def test_new_pictures_need_the_size_and_kind_of_those_of_the_run(tmp_path: Path) -> None:
    columns = read(film(tmp_path / "old")).x_columns
    new = film(tmp_path / "new", count=3)
    _names, pixels = inputs_like(new, lambda _: columns, recorded=columns)
    np.testing.assert_array_equal(pixels, GREY[:3].reshape(3, 12) / 255)
    for odd, words in ((GREY[:3, :, :3], "3 x 3 pixels, 8-bit grey"), (COLOUR[:3], "4 x 3 pixels, 8-bit colour")):
        folder = tmp_path / words[:20]
        for i, picture in enumerate(odd):
            saved(picture, folder / f"{i}.png")
        with pytest.raises(
            DataError, match=rf"holds pictures of {words}; the run was made of those of 4 x 3 pixels, 8-b"
        ):
            inputs_like(folder, lambda _: columns, recorded=columns)
    with pytest.raises(DataError, match="other data than pictures"):
        inputs_like(new, lambda names: (), recorded=())


def test_pixels_that_never_change_keep_their_place(tmp_path: Path) -> None:
    for i in range(3):
        saved(np.where(np.eye(3, 4) > 0, GREY[i], 9).astype(np.uint8), tmp_path / f"{i}.png")
    assert read_table(tmp_path).x.shape == (3, 12)


def test_many_pictures_stay_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = read(film(tmp_path))
    monkeypatch.setattr("isthmus.tasks.large_tables.FITS", 100)
    found = read(tmp_path)
    assert type(found.x.base) is not type(wanted.x.base)
    np.testing.assert_array_equal(found.x, wanted.x)


def test_pictures_for_a_network_of_pictures_have_their_bands_first(tmp_path: Path) -> None:
    for i in range(3):
        saved(COLOUR[i], tmp_path / f"{i}.png")
    np.testing.assert_array_equal(picture_folder(tmp_path).as_stack(), np.moveaxis(COLOUR[:3], 3, 1) / 255)


def png_of_16_bits_a_colour() -> bytes:
    """A picture of 4 x 3 pixels; Pillow writes none."""
    lines = b"".join(b"\0" + COLOUR[0, row].astype(">u2").tobytes() for row in range(3))
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 4, 3, 16, 2, 0, 0, 0)), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )


def bomb() -> bytes:
    """A head that says 60,000 x 60,000 pixels."""
    head = b"IHDR" + struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head)) + b"\0\0\1\0IDAT"


def film_of(count: int, path: Path, form: str) -> None:
    frames = [Image.fromarray(GREY[i]) for i in range(count)]
    frames[0].save(path, format=form, save_all=True, append_images=frames[1:])


def cut(path: Path) -> None:
    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (3, 4), dtype=np.uint8)).save(stream, "PNG")
    path.write_bytes(stream.getvalue()[:-25])


def odd_nan(path: Path) -> None:
    saved(np.where(GREY[0] > 5, np.nan, GREY[0]).astype(np.float32), path)


def linked_out(path: Path) -> None:
    path.symlink_to(saved(GREY[0], path.parents[1] / "elsewhere" / "a.png"))


# ERROR LINE (exit code 2 of the command line): what takes part beside 24 good pictures, and what the line must say
HOSTILE: dict[str, tuple[str, Write, str]] = {
    "empty": ("a.png", lambda p: p.write_bytes(b""), r"a\.png: is no picture"),
    "text": ("a.png", lambda p: p.write_text("hello"), r"a\.png: is no picture of the kinds PNG, JPEG"),
    "a format that starts a program": ("a.png", lambda p: saved(COLOUR[0], p, format="EPS"), r"a\.png: is no picture"),
    "cut short": ("a.png", cut, r"a\.png: cannot be read as a picture \(.*truncated"),
    "a single pixel": ("a.png", lambda p: saved(GREY[0][:1, :1], p), r"a\.png: is a single pixel"),
    "another size": ("a.png", lambda p: saved(GREY[0].T.copy(), p), r"f0\.png: is of 4 x 3 .*a\.png of 3 x 4 pixels"),
    "another kind": ("a.png", lambda p: saved(COLOUR[0], p), r"f0\.png: is of .*8-bit grey, a\.png of .*8-bit colour"),
    "a bomb": ("a.png", lambda p: p.write_bytes(bomb()), r"a\.png: cannot be read as a picture \(.*decompression bomb"),
    "16 bits a colour": ("a.png", lambda p: p.write_bytes(png_of_16_bits_a_colour()), r"a\.png: has 16 bits a colour"),
    "moving gif": ("a.gif", lambda p: film_of(3, p, "GIF"), r"a\.gif: holds several pictures"),
    "pages": ("a.tif", lambda p: film_of(3, p, "TIFF"), r"a\.tif: holds several pictures"),
    "inks": ("a.tif", lambda p: saved(COLOUR[0], p, mode="CMYK"), r"a\.tif: its pixels are CMYK"),
    "not a number": ("a.tif", odd_nan, r"a\.tif: holds pixels that are NaN"),
    "a link out": ("a.png", linked_out, r"a\.png: is a link out of the folder"),
    "a link to nothing": ("a.png", lambda p: p.symlink_to(p.parent / "gone"), r"a\.png: no such file"),
    "a pipe": ("a.png", lambda p: os.mkfifo(p), r"a\.png: is a pipe"),
    "line break": ("a\nb.png", lambda p: saved(GREY[0], p), r"the name 'a\\nb\.png' holds U\+000A"),
    "bytes that are no text": ("a\udcff.png", lambda p: saved(GREY[0], p), r"'a\\udcff\.png' holds U\+DCFF"),
    "two depths": ("sub/a.png", lambda p: saved(GREY[0], p), r"pictures lie in it and in the folder 'sub' in it"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_no_good_picture_is_refused_in_one_line_with_its_name(tmp_path: Path, case: str) -> None:
    name, write, words = HOSTILE[case]
    folder = film(tmp_path / "film")
    write(folder / name)
    with pytest.raises(DataError, match=words) as refused:
        read(folder)
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith(".")


def test_a_head_is_believed_only_as_far_as_there_is_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(np.zeros((500, 500), dtype=np.uint8), tmp_path / "a.png")
    monkeypatch.setenv("ISTHMUS_MEMORY", "8M")
    with pytest.raises(DataError, match=r"a\.png: needs 11.4 MiB of memory"):
        read(tmp_path)


def test_the_same_folder_without_the_odd_file_is_read(tmp_path: Path) -> None:
    assert len(read(film(tmp_path / "film")).x) == 24  # the control of the cases above


def test_links_within_the_folder_hidden_files_and_photographs_with_previews_are_read(tmp_path: Path) -> None:
    folder = film(tmp_path / "film", count=23)
    (folder / "f23.png").symlink_to(folder / "f22.png")
    (folder / "._f1.png").write_bytes(b"of another system")
    (folder / "Thumbs.db").write_bytes(b"of another system")
    assert read(folder).row_names[-1] == "f23.png"
    (tmp_path / "phone").mkdir()
    for i in range(3):
        film_of(2, tmp_path / "phone" / f"{i}.jpg", "MPO")
    assert listed(tmp_path / "phone").files == ("0.jpg", "1.jpg", "2.jpg")
    assert read(tmp_path / "phone").x.shape == (3, 12)


def test_other_files_are_left_aside_aloud(tmp_path: Path) -> None:
    folder = film(tmp_path)
    labels(folder / "labels.csv")
    (folder / "README.txt").write_text("about\n")
    with pytest.warns(DataWarning, match=r"left aside 2 files that are no pictures: 'README.txt', 'labels.csv'"):
        read(folder)
    with pytest.warns(DataWarning, match=r"left aside 1 file that is no picture: 'README.txt'"):
        read(folder, target="heat")


def test_libtiff_writes_no_lines_of_its_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    place = saved(np.zeros((30, 40), dtype=np.uint8), tmp_path / "a.tif", compression="tiff_adobe_deflate")
    content = bytearray(place.read_bytes())
    content[12:20] = b"\0" * 8
    place.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.tif: cannot be read as a picture"):
        read(tmp_path)
    assert capfd.readouterr() == ("", "")
    os.write(2, b"heard again")
    assert capfd.readouterr().err == "heard again"


def test_signalling_nan_is_refused_in_silence(tmp_path: Path) -> None:
    pixels = np.full((3, 4), 0x7F800001, dtype=np.uint32).view(np.float32)
    saved(pixels, tmp_path / "a.tif")
    with pytest.raises(DataError, match="NaN"):
        read(tmp_path)


TABLES: dict[str, tuple[Write, dict[str, str], str]] = {
    "no column of that name": (lambda p: labels(p / "l.csv"), {"target": "cold"}, "has no column 'cold'"),
    "none at all": (lambda p: None, {"target": "heat"}, "has no column 'heat'"),
    "two": (lambda p: (labels(p / "a.csv"), labels(p / "b.csv")), {"target": "heat"}, r"2 tables lie in it \('a.csv',"),
    "one that is not there": (lambda p: None, {"target": "l.csv"}, r"l\.csv: no such file"),
    "names nothing": (lambda p: labels(p / "l.csv", picture=["x"] * 24), {"target": "heat"}, "no column names the"),
    "names one twice": (
        lambda p: labels(p / "l.csv", picture=["f1.png", *(f"f{i}.png" for i in range(1, 24))]),
        {"target": "heat"}, "names 'f1.png' in several rows",
    ),
    "a missing cell": (
        lambda p: labels(p / "l.csv", heat=[None, *range(23)]), {"target": "heat"}, r"Row 1 is 'f0\.png'",
    ),
    "two columns of classes": (
        lambda p: labels(p / "l.csv", kind=["ab"[i % 2] for i in range(24)]),
        {"classes": "l.csv"}, r"has columns 'heat', 'kind' beside the names of pictures",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_a_table_that_does_not_tell_of_the_pictures_is_refused(tmp_path: Path, case: str) -> None:
    write, options, words = TABLES[case]
    folder = film(tmp_path)
    write(folder)
    with pytest.raises(DataError, match=words):
        read(folder, **options)


def test_one_column_beside_the_names_is_the_classes(tmp_path: Path) -> None:
    folder = film(tmp_path)
    labels(folder / "l.csv", kind=["ab"[i % 2] for i in range(24)])
    task = read(folder, classes="l.csv", options=TableOptions(leave_out=("heat",)))
    assert task.y_names == ("a", "b")
