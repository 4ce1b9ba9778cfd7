#!/usr/bin/env python3
"""Every file of the library is compiled so that compilers, and a kernel's body and its tail, agree to the bit: no contraction of
a * b + c that nobody asked for, no -ffast-math or what belongs to it (which would also set the mode of every program that loads
the library), no instruction set of the building machine: compile_flags_test.py COMPILE_COMMANDS.JSON"""

import json
import re
import shlex
import sys

NEVER = re.compile(r"-(Ofast|ffast-math|funsafe-math-optimizations|ffinite-math-only|fassociative-math|fno-signed-zeros|"
                   r"freciprocal-math|mfma|mavx\w*|march=native|mtune=native)$")


def main():
    failures, count = [], 0
    for entry in json.load(open(sys.argv[1], encoding="utf-8")):
        if not re.search(r"/src/(?!mpi/).*\.(cc|c)$", entry["file"]) or entry["file"].endswith(("_test.cc", "_bench.cc", "_versus.cc")):
            continue
        flags = shlex.split(entry["command"])
        count += 1
        contraction = [flag for flag in flags if flag.startswith("-ffp-contract=")]
        if contraction[-1:] != ["-ffp-contract=off"]:
            failures.append(f"{entry['file']}: without -ffp-contract=off: {contraction}")
        failures += [f"{entry['file']}: {flag}" for flag in flags if NEVER.match(flag)]
    if count < 300:
        failures.append(f"only {count} files are compiled")
    print("\n".join(failures) if failures else f"{count} files, the same arithmetic in all")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
