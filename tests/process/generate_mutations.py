#!/usr/bin/env python3
"""Writes the header through which every_layer's calls are changed: generate_mutations.py OUTPUT.

From the tables of tests/api: the fields of every struct (offset, bytes, pointer or not), and for every function a macro of
its name that calls mutated(function, ...)."""

import math
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "api"))
import api_tables as api  # noqa: E402


def fields(structs, name, base=0):
    """(offset, bytes, is a pointer) of each number in a struct, nested ones and arrays flattened."""
    for row in structs[name]:
        kind = row["type"].split("[")[0].strip()
        offset, size = base + int(row["offset"]), int(row["size"])
        count = math.prod(int(n) for n in re.findall(r"\[(\d+)\]", row["type"]))
        for k in range(count):
            at, bytes_ = offset + k * size // count, size // count
            if kind in structs:
                yield from fields(structs, kind, at)
            else:
                yield at, bytes_, "*" in kind or kind.split()[0] in ("BNNSAlloc", "BNNSFree")


def main():
    structs = {}
    for row in api.rows("structs"):
        members = structs.setdefault(row["struct"], [])
        if row["field"] != "-":
            members.append(row)
    lines = ["// Made by tests/process/generate_mutations.py.", "#pragma once", "", "#include <bnns/bnns.h>", "",
             '#include "tests/process/mutation.h"', "", "namespace bnns::testing {"]
    functions = [row["function"] for row in api.rows("functions")]
    parameters = " ".join(row["parameters"] for row in api.rows("functions"))
    for name in structs:
        if name + " *" in parameters and "Graph" not in name:
            numbers = ", ".join(f"{{{at}, {size}, {str(pointer).lower()}}}" for at, size, pointer in fields(structs, name))
            lines += [f"template <>\ninline constexpr std::array kFields<{name}> = std::to_array<Field>({{{numbers}}});"]
    lines += ["}  // namespace bnns::testing", ""]
    lines += [f'#define {name}(...) bnns::testing::mutated({name}, "{name}" __VA_OPT__(, ) __VA_ARGS__)' for name in functions]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
