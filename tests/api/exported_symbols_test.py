#!/usr/bin/env python3
"""libbnns.so exports the functions of the tables, of bnns_extensions.h and of bnns_io.h, under a version of their own
those that src/core/internal.h declares for libbnns_mps.so, and nothing else:
exported_symbols_test.py LIBRARY [NM]"""

import re
import subprocess
import sys

import api_tables as api


def main():
    library, nm = sys.argv[1], (sys.argv[2:] or ["nm"])[0]
    output = subprocess.run([nm, "-D", "--defined-only", library], text=True, capture_output=True, check=True).stdout
    symbols = {line.split()[-1].split("@")[0]: line.split()[-2] for line in output.splitlines()}
    # What the linker (the names of versions too) and the sanitizers add on their own account.
    added = re.compile(r"__(odr_)?(asan|ubsan|tsan)|(_init|_fini|_edata|_end|__bss_start|OPENBNNS_[\w.]+)$")
    symbols = {name: kind for name, kind in symbols.items() if not added.match(name)}
    versions = dict(line.split()[-1].replace("@@", "@").split("@") for line in output.splitlines() if "@" in line)
    header = (api.ROOT / "src/core/internal.h").read_text(encoding="utf-8")
    private = set(re.findall(r"\b(bnns_internal_\w+)\(", header))
    expected = private | {row["function"] for row in api.rows("functions")} | set(api.extension_functions())
    failures = [f"{name} is not exported" for name in sorted(expected - set(symbols))]
    failures += [f"{name} is exported" for name in sorted(set(symbols) - expected)]
    failures += [f"{name} is not a function: nm says {symbols[name]}" for name in sorted(expected & set(symbols))
                 if symbols[name] != "T"]
    failures += [f"{name} has the version {versions.get(name)}" for name in sorted(expected & set(symbols))
                 if (name in private) != versions.get(name, "").startswith("OPENBNNS_PRIVATE_")]
    return api.report(failures, f"{len(expected)} exported functions")


if __name__ == "__main__":
    sys.exit(main())
