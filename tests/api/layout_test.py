#!/usr/bin/env python3
"""The headers have the layout of the tables, in C and in C++: layout_test.py CONFORMANCE_SOURCE"""

import pathlib
import sys

import api_tables as api


def main():
    source = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    failures = []
    for compiler in api.compilers():
        for standard in ("c11", "c++17", "c++20"):
            complaint = api.check_source(compiler, standard, source)
            if complaint:
                failures.append(f"{compiler} {standard}\n{complaint}")
    return api.report(failures, f"{source.count('CHECK(') - 2} facts")


if __name__ == "__main__":
    sys.exit(main())
