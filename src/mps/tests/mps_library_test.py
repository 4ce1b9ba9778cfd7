#!/usr/bin/env python3
"""libbnns_mps.so exports the classes of its headers and nothing else, its headers stand alone and are clean C++17, and
MPSNames.hpp leaves no name out:
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


def names(root):
    """MPSNames.hpp spells every class, struct, enumeration, enumerator and function of the two frameworks' headers."""
    include = pathlib.Path(root) / "include"
    aliases = (include / "MetalPerformanceShaders" / "MPSNames.hpp").read_text()
    for folder, prefix in (("Metal", "MTL"), ("MetalPerformanceShaders", "MPS")):
        for path in (include / folder).glob("*.hpp"):
            if path.name == "MPSNames.hpp":
                continue
            text = re.sub(r"//.*", "", path.read_text())
            text = "".join(re.findall(r"^namespace " + prefix + r" \{.*?^\}", text, re.S | re.M))
            found = re.findall(r"^class BNNS_MPS_API (\w+)", text, re.M) + re.findall(r"^struct (\w+) \{", text, re.M)
            found += re.findall(r"^BNNS_MPS_API [\w:]+\*? (\w+)\(", text, re.M)
            for name, body in re.findall(r"^enum (\w+) [^{]*\{(.*?)\}", text, re.S | re.M):
                found += [name] + [entry.split("=")[0].strip() for entry in body.split(",") if entry.strip()]
            for name in set(found) - {"KernelClass", "PoolingClass"}:  # templates behind the classes
                if not re.search(rf"\b{prefix}{name}\b", aliases):
                    yield f"{prefix}{name} ({path.name}) is not in MPSNames.hpp"


def main():
    library, nm, root = sys.argv[1:4]
    failures = list(exported(library, nm)) + list(headers(root)) + list(names(root))
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
