#!/usr/bin/env python3
"""Two builds of the library beside each other, in one process, on the same rows as `make bench`: what did a change cost?

    compare.py OLD NEW [--quick] [--threads N] [--filter PATTERN] [--rounds R] [--json FILE]

OLD and NEW are two files libbnns_versus.so (cmake --preset release builds one, in build/release/bench). Each has its own
copy of the library inside. They take turns, and the one that begins changes from round to round. A figure is the fastest
round of each, a ratio NEW's time divided by OLD's: above 1 the new one is slower. Prints the geometric mean of each family
and the rows that moved by more than a tenth; ends with 1 if a family lost more than 2 % or a row more than 10 %.
"""

import argparse
import json
import math
import re
import sys

import shapes
from bench import load


def key(row):
    return tuple(row[name] for name in ("family", "op", "direction", "shape", "type"))


class Side:
    """A row opened in one of the two libraries."""

    def __init__(self, lib, index, threads, turn):
        self.lib, self.case = lib, lib.bench_open(index, threads)
        lib.bench_warm(self.case)
        first = lib.bench_time(self.case, 0, 1)
        self.calls = max(1, min(2000, int(turn / max(first, 1e-8))))
        self.times = []

    def time(self):
        self.lib.bench_settle()
        self.times.append(self.lib.bench_time(self.case, 0, self.calls))

    def close(self):
        self.lib.bench_close(self.case)


def contest(libs, indices, threads, options):
    sides = [Side(lib, index, threads, options.turn) for lib, index in zip(libs, indices)]
    try:
        for r in range(options.rounds):
            for side in sides if r % 2 == 0 else reversed(sides):
                side.time()
    finally:
        for side in sides:
            side.close()
    return [min(side.times) for side in sides]


def drawn(libs, options):
    """Adds the drawn layers to both libraries; from here on only they are looked at."""
    cases = [line for line in shapes.lines(options.seed) if re.search(options.filter, line)]
    listed = [len(json.loads(lib.bench_rows())) for lib in libs]
    for lib in libs:
        for line in cases:
            lib.bench_add(line.encode())
    for lib, rows in zip(libs, listed):
        lib.first = rows
    options.filter = ""


def mean(ratios):
    return math.exp(sum(math.log(r) for r in ratios) / len(ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--quick", action="store_true", help="the rows of QUICK=1")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--filter", default="", help="a pattern that family, operator, direction and shape must match")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--turn", type=float, default=0.004, help="seconds of one turn")
    parser.add_argument("--json", help="every row, for later")
    parser.add_argument("--shapes", choices=["random"], help="layers drawn by --seed (bench/shapes.py) instead of the list")
    parser.add_argument("--seed", default="1")
    options = parser.parse_args()

    libs = [load(options.old), load(options.new)]
    if options.shapes:
        drawn(libs, options)
    tables = [{key(row): (i, row) for i, row in enumerate(json.loads(lib.bench_rows()))
               if i >= getattr(lib, "first", 0)} for lib in libs]
    for name in set(tables[0]) ^ set(tables[1]):
        print("only in one of the two:", " ".join(name))
    families, rows = {}, []
    for name, (new_index, row) in tables[1].items():
        text = " ".join(name)
        if name not in tables[0] or (options.quick and not row["quick"]) or not re.search(options.filter, text):
            continue
        old, new = contest(libs, (tables[0][name][0], new_index), options.threads, options)
        if new / old > 1.1 or new / old < 0.9:  # neighbours come and go: what moved is timed once more
            again = contest(libs, (tables[0][name][0], new_index), options.threads, options)
            old, new = min(old, again[0]), min(new, again[1])
        families.setdefault(row["family"], []).append(new / old)
        rows.append({"row": text, "old_us": old * 1e6, "new_us": new * 1e6, "ratio": new / old})

    lost = False
    print(f"\n{'family':<18}{'rows':>5}{'new/old':>9}{'worst':>8}   {options.threads} thread(s)")
    for family, ratios in families.items():
        lost |= mean(ratios) > 1.02 or max(ratios) > 1.1
        print(f"{family:<18}{len(ratios):>5}{mean(ratios):>9.3f}{max(ratios):>8.2f}")
    for r in sorted(rows, key=lambda r: -r["ratio"]):
        if r["ratio"] > 1.1 or r["ratio"] < 0.9:
            print(f"{r['ratio']:6.2f}  {r['old_us']:10.1f} us -> {r['new_us']:10.1f} us  {r['row']}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
