#!/usr/bin/env python3
"""libbnns_mps.so exports the classes of its headers and nothing else, and its headers stand alone and are clean C++17:
mps_library_test.py LIBRARY NM SOURCE_ROOT"""

import pathlib
import re
import shutil
import subprocess
import sys

OURS = re.compile(r"(vtable for |typeinfo for |typeinfo name for |guard variable for |non-virtual thunk to )?"
                  r"(NS|MTL|MTLX|MPS)::")
ADDED = re.compile(r"__(odr_)?(asan|ubsan|tsan)|(_init|_fini|_edata|_end|__bss_start)$")
FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-fsyntax-only"]


def exported(library, nm):
    output = subprocess.run([nm, "-D", "-C", "--defined-only", library], text=True, capture_output=True, check=True)
    for line in output.stdout.splitlines():
        name = line.split(" ", 2)[2]
        if not OURS.match(name) and not ADDED.match(name):
            yield f"{name} is exported"


def headers(root):
    include = pathlib.Path(root) / "include"
    folders = ("Foundation", "Metal", "MetalPerformanceShaders")
    names = sorted(path.relative_to(include) for folder in folders for path in (include / folder).glob("*.hpp"))
    for compiler in filter(shutil.which, ("g++", "clang++")):
        for name in names:
            text = f"#include <{name}>\n#include <{name}>\n"
            result = subprocess.run([compiler, *FLAGS, f"-I{include}", "-x", "c++", "-"], input=text, text=True,
                                    capture_output=True)
            if result.returncode != 0:
                yield f"{compiler} {name}: {result.stderr}"


def main():
    library, nm, root = sys.argv[1:4]
    failures = list(exported(library, nm)) + list(headers(root))
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
