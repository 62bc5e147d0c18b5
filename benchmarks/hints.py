"""Question: where a doubt says that there may be more dimensions, or fewer, is it right about the direction?

    python benchmarks/hints.py ROWS.json ...     what rank_recovery.py kept with --out
    python benchmarks/hints.py --quick           print which sentences say a direction

Of the answers in doubt whose rank is wrong, of those that say a direction: how many say the right one. A hint beside a
right rank says of none what it is ("may"); how many there are is printed. A hint that points the right way in fewer
than 80 of 100 goes.

Answer (at 3ae6b745, on 490 tables that two strangers made, 142 to be reconstructed and 348 regressions and classes, by
quick effort and by default): beside a wrong rank 52 of 53 pointed the right way. Further dimensions: what the inputs
tell 20 of 20, targets that are hardly predicted 8 of 8, weak combinations 4 of 4, an error that is larger 3 of 3,
unlearnt rows 3 of 4. Fewer, curved ones: 9 of 9, functions of others 3 of 3. Hints that are not listed here were beside
no wrong rank.
"""

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

MORE, FEWER = 1, -1
HINTS = {
    "it may be larger": MORE,
    "there may be more": MORE,
    "there are more, weak": MORE,
    "would tell whether there are more": MORE,
    "more dimensions may matter there": MORE,
    "may be too few for them": MORE,
    "cannot be told from noise by so few": MORE,
    "more dimensions may show": MORE,
    "there is a further dimension": MORE,
    "the rank may be smaller": FEWER,
    "flat ones may be fewer, curved": FEWER,
    "curved further, are not excluded": FEWER,
    "deeper ones need no more than that": FEWER,
    "their coordinates are curved": FEWER,
    "be functions of others": FEWER,
}
GOES = 0.8  # share of right directions below which a hint is no hint


@dataclass(frozen=True)
class Said:
    """One hint beside one answer.

    Attributes:
        phrase: of `HINTS`.
        off: truth less the rank that was found.
    """

    phrase: str
    off: int

    @property
    def is_right(self) -> bool:
        """Whether the truth lies in the direction that it points in."""
        return self.off * HINTS[self.phrase] > 0


def hints_of(path: Path) -> list[Said]:
    """The hints of all answers of one file to tasks that have a rank."""
    found: list[Said] = []
    for name, row in json.loads(path.read_text())["rows"].items():
        truth, text = int(name.split("rank=")[1].split(" ")[0]), " ".join(row["reasons"])
        if truth < 0 or row["verdict"] == "CONFIDENT":
            continue
        found += [Said(phrase, truth - int(row["rank"])) for phrase in HINTS if phrase in text]
    return found


def line_of(phrase: str, said: list[Said]) -> str:
    """How often it was said, and right."""
    wrong = [one for one in said if one.off]
    right = sum(one.is_right for one in wrong)
    share = f"{right} of {len(wrong)}" if wrong else "-"
    goes = "  goes" if wrong and right < GOES * len(wrong) else ""
    return f"{phrase:<38} {'more' if HINTS[phrase] == MORE else 'fewer':<6} {len(said):>5} {share:>14}{goes}"


def main() -> None:
    """Print a line for each hint, and one for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, nargs="*")
    parser.add_argument("--quick", action="store_true", help="measure nothing: print the hints")
    options = parser.parse_args()
    said = [one for path in options.rows for one in hints_of(path)]
    counts = Counter(one.phrase for one in said)
    print(f"{'hint':<38} {'says':<6} {'said':>5} {'right of wrong':>14}")
    for phrase in HINTS if options.quick else sorted(HINTS, key=lambda phrase: -counts[phrase]):
        print(line_of(phrase, [one for one in said if one.phrase == phrase]))
    wrong = [one for one in said if one.off]
    print(f"in all {sum(one.is_right for one in wrong)} of {len(wrong)} of a wrong rank, {len(said)} hints")


if __name__ == "__main__":
    main()
