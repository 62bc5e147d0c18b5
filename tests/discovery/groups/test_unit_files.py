from pathlib import Path

import pytest

from isthmus.discovery.groups import unit_files
from isthmus.discovery.groups.column_units import units_of_mapping
from isthmus.discovery.groups.unit_files import read_units, units_argument
from isthmus.errors import DataError
from isthmus.tasks.written_units import WrittenUnits

PLAIN = {"U": "m/s", "rho": "kg/m^3", "C": "1"}


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("u.toml", '[columns]\nU = {m = 1, s = -1}\nrho = "kg/m^3"\nC = 1\n'),
        ("u.toml", "[columns.U]\nm = 1\ns = -1\n[columns.rho]\nkg = 1\nm = -3\n[columns.C]\n"),
        ("u.csv", "column,unit\nU,m/s\nrho,kg/m^3\nC,1\n"),
        ("u.csv", "column,kg,m,s\nU,,1,-1\nrho,1,-3,\nC,,,\n"),
        ("u.tsv", "\ufeffcolumn\tm\tkg\ts\nU\t1\t0\t-1\n\nrho\t-3\t1\t0\nC\t0\t0\t0\n"),
    ],
)
def test_all_ways_of_writing_units_agree(tmp_path: Path, name: str, text: str) -> None:
    units = read_units(written(tmp_path, name, text))
    wanted = units_of_mapping(PLAIN, "")
    assert {n: units.in_words(n) for n in units.exponents} == {n: wanted.in_words(n) for n in wanted.exponents}


def test_a_caller_may_pass_any_of_them(tmp_path: Path) -> None:
    path = written(tmp_path, "u.csv", "column,unit\nU,m/s\nF,m\n")
    told = WrittenUnits("d.csv, line 2", {"U": "m/s", "F": "m"})
    for units in (path, str(path), {"U": "m/s", "F": "m"}, units_of_mapping({"U": "m/s", "F": "m"}, ""), told):
        assert units_argument(units, inputs=["U"], targets=["F"]).in_words("U") == "m s^-1"
    with pytest.raises(DataError, match="u.csv: the data: has no column 'F'. It has columns U, G."):
        units_argument(path, inputs=["U", "G"])
    with pytest.raises(DataError, match="d.csv, line 2: has no units for column 'G'."):
        units_argument(told, inputs=["U", "F", "G"])
    with pytest.raises(DataError, match="d.csv, line 2, column 'U': cannot read the unit 'm//s'"):
        units_argument(WrittenUnits("d.csv, line 2", {"U": "m//s"}), inputs=["U"])
    with pytest.raises(DataError, match="units: has no units for column 'F'"):
        units_argument({"U": "m/s"}, inputs=["U"], targets=["F"])
    with pytest.raises(DataError, match="units: needs a file or a mapping of columns, got list"):
        units_argument([1], inputs=["U"])


def test_names_that_a_table_of_ours_guards_are_themselves(tmp_path: Path) -> None:
    assert set(read_units(written(tmp_path, "u.csv", "column,unit\n'=x,m\n\"a, b\",s\nNA,K\n")).exponents) == {
        "=x", "a, b", "NA",
    }  # fmt: skip


HOSTILE = [
    ("u.toml", "", "has no table \\[columns\\]"),
    ("u.toml", "columns = 3", "has no table \\[columns\\]"),
    ("u.toml", "columns = [1, 2]", "has no table \\[columns\\]"),
    ("u.toml", "[columns]", "holds no columns"),
    ("u.toml", "[colums]\nU = 'm'", "has 'colums', but takes \\[columns\\] alone"),
    ("u.toml", "[columns]\nU = 'm'\n[other]\n", "has 'other'"),
    ("u.toml", "[columns]\nU = nan", "column 'U': needs exponents"),
    ("u.toml", "[columns]\nU = {m = nan}", "the exponent of 'm' is 'nan'"),
    ("u.toml", "[columns]\nU = {m = {s = 1}}", "the exponent of 'm'"),
    ("u.toml", "[columns]\nU = 1979-05-27", "got date"),
    ("u.toml", "[columns]\nU = {m = 1e300}", "the exponent of 'm'"),
    ("u.toml", "[columns]\nU = {m = " + "9" * 4000 + "}", "the exponent of 'm'|cannot be read as TOML"),
    ("u.toml", "[columns]\nU = " + "[" * 5000, "cannot be read as TOML"),
    ("u.toml", "[columns." + ".".join(["a"] * 100) + "]", "tables within tables"),
    ("u.toml", "[columns]\nU = 'm", "cannot be read as TOML"),
    ("u.toml", "[columns]\nU = 'm'\nU = 's'", "cannot be read as TOML"),
    ("u.toml", b"\xff\xfe\x00", "cannot be read as TOML"),
    ("u.csv", "", "needs two columns or more"),
    ("u.csv", "column\nU\n", "needs two columns or more"),
    ("u.csv", "column,m,m\nU,1,1\n", "columns 2 and 3 are both called 'm'"),
    ("u.csv", "column,m,\nU,1,1\n", "line 1 has an empty heading"),
    ("u.csv", "column,m,s\nU,1\n", "line 2 has 2 cells, the first line 3"),
    ("u.csv", "column,m\nU,1\n\nU,2\n", "line 4: column 'U' stands there twice"),
    ("u.csv", "column,m\nU,nan\n", "column 'U': the exponent of 'm' is 'nan'"),
    ("u.csv", "column,m\nU,=1+1\n", "column 'U': the exponent of 'm' is '=1\\+1'"),
    ("u.csv", "column,unit\nU,degC\n", "column 'U': the unit 'degC' has its zero elsewhere"),
    ("u.csv", "column,unit\n", "holds no columns"),
    ("u.csv", "column,unit\n\x00,m\n", "holds U\\+0000|line contains NUL"),
    ("u.csv", 'column,unit\n"' + "a" * 200_000 + '",m\n', "field larger than field limit"),
    ("u.csv", b"column,unit\n\xff,m\n", "cannot be read as .csv"),
    ("u.txt", "column,unit\n", "unknown extension '.txt'"),
]


@pytest.mark.parametrize(("name", "content", "line"), HOSTILE)
def test_a_hostile_file_is_one_line_with_its_name(tmp_path: Path, name: str, content: str | bytes, line: str) -> None:
    path = written(tmp_path, name, content)
    with pytest.raises(DataError, match=line) as refusal:
        read_units(path)
    assert str(refusal.value).startswith(str(path))
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < len(str(path)) + 500


def test_places_that_are_no_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file. Check the path, or write the units"):
        read_units(tmp_path / "none.toml")
    with pytest.raises(DataError, match="is a directory"):
        read_units(tmp_path)


def test_long_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "u.csv", "column,unit\n" + "".join(f"c{i},m\n" for i in range(50)))
    monkeypatch.setattr(unit_files, "MOST_LINES", 20)
    with pytest.raises(DataError, match="has more than 20 lines"):
        read_units(path)
    monkeypatch.setattr(unit_files, "MOST_BYTES", 100)
    with pytest.raises(DataError, match="is longer than"):
        read_units(path)
