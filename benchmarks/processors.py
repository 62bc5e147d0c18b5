"""Question: does `isthmus.discover` read the same ranks with the kernels of other processors?

The 48 teachers of `rank_recovery.py` under three settings of the libraries that multiply, each in processes of its own:
native     as this machine chooses
oldest     no vector instructions in ATen, MKL's kernels that are the same on all processors, SSE4.1 in oneDNN
avx2       AVX2 in all of them

    python benchmarks/processors.py [--out FOLDER] [--quick] [--workers 2] [--commit HASH] [--compare]

A run that is stopped goes on with the same --out; --compare prints what is there. Exit 1 where a rank differs, or more
than one verdict does.

Answer (AMD EPYC without AVX-512, two cores with other work beside, teachers of and at 431d9548, November 2026): the
same 48 ranks under all three, all of them the teacher's; one verdict differs: rank 8 of 776 rows with 5 % of noise is
in doubt under native and avx2 and confident under oldest. On an Intel Xeon with AVX-512 (torch 2.11) the same 48 ranks
again, and the verdicts of native. Confident are 46, 47, 46 and 46. At 852e7d3, on an EPYC with AVX-512: the same 48
ranks under all three, 47 of them the teacher's, and one other verdict that differed. At f1493130, before more was done
about doubts, 29 teachers had four other verdicts under avx2.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measured.rows import Row, head

SETTINGS: dict[str, dict[str, str]] = {
    "native": {},
    "oldest": {
        "ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41",
        "OPENBLAS_CORETYPE": "Haswell",
    },
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2", "OPENBLAS_CORETYPE": "Zen",
    },
}  # fmt: skip


def measured(setting: str, path: Path, *more: str) -> None:
    """Run the teachers that the file lacks, under this setting."""
    command = [sys.executable, str(Path(__file__).parent / "rank_recovery.py"), "--suite", "short"]
    command += ["--out", str(path), *more]
    done = subprocess.run(command, env=os.environ | SETTINGS[setting], stdout=sys.stderr, check=False)
    if done.returncode not in {0, 1}:  # 1: it found a rank that is not the teacher's
        sys.exit(f"{setting}: ended with {done.returncode}; the same command goes on")


def differing(found: list[dict[str, Row]], what: str) -> list[str]:
    """The cases that are known in all files and do not say the same."""
    common = [name for name in found[0] if all(name in rows for rows in found)]
    return [name for name in common if len({rows[name][what] for rows in found}) > 1]


def main() -> None:
    """Print the cases that differ, then how many do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder of one JSON file for each setting")
    parser.add_argument("--quick", action="store_true", help="the first teacher alone")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--commit", help="draw the teachers of this commit instead of HEAD's")
    parser.add_argument("--compare", action="store_true", help="only what the folder holds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        files = {setting: folder / f"{setting}.json" for setting in SETTINGS}
        more = ["--workers", str(options.workers), "--commit", options.commit or head(), *["--quick"] * options.quick]
        for setting, path in files.items():
            if not options.compare:
                measured(setting, path, *more)
        found: list[dict[str, Row]] = [json.loads(path.read_text())["rows"] for path in files.values()]
    ranks, verdicts = differing(found, "rank"), differing(found, "verdict")
    for name in dict.fromkeys([*ranks, *verdicts]):
        pairs = zip(files, found, strict=True)
        print(
            f"{name}: "
            + ", ".join(f"{setting} {rows[name]['rank']} {rows[name]['verdict']}" for setting, rows in pairs)
        )
    common = sum(all(name in rows for rows in found) for name in found[0])
    print(f"settings: {', '.join(files)}")
    print(f"{common} teachers: {len(ranks)} ranks differ, {len(verdicts)} verdicts differ")
    sys.exit(bool(ranks) or len(verdicts) > 1)


if __name__ == "__main__":
    main()
