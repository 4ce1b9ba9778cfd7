#!/usr/bin/env python3
"""No function holds AVX code but those that a check of the CPU goes before: instructions_test.py ARCHIVE [OBJDUMP]

Kernels lie in a namespace of their instruction set, N_AVX2 or N_AVX3, which only the dispatch names. A template or an inline
function of another namespace that such a file makes is a weak symbol: the linker takes one of all files' copies, perhaps the one
with AVX code, for everybody."""

import platform
import re
import subprocess
import sys

KERNEL = re.compile(r"N_AVX[23]")
# Files whose functions have a target attribute each: BF16 and AMX, which Highway has not.
BY_HAND = ("bf16.cc.o", "pack_bf16.cc.o", "store_bf16.cc.o", "pack.cc.o", "amx.cc.o", "amx_dw.cc.o", "dw.cc.o")


def main():
    archive, objdump = sys.argv[1], (sys.argv[2:] or ["objdump"])[0]
    if platform.machine() != "x86_64":
        print("skipped: AVX is of x86-64")
        return 77
    file = function = ""
    kernels, failures = set(), {}
    command = [objdump, "-d", "--no-show-raw-insn", archive]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as code:
        for line in code.stdout:
            if line.endswith(":\n") and "<" in line:
                function = line[line.index("<") + 1:-3]
            elif "file format" in line:
                file = line.split(":")[0]
            elif "\tv" in line and re.search(r"\tv\w+ .*%[xyz]mm", line):
                if KERNEL.search(function) or (file in BY_HAND and function.startswith("_ZN4bnns")):
                    kernels.add(function)
                else:
                    failures.setdefault((file, function), line.strip())
    for (file, function), line in failures.items():
        print(f"{file}: {function}: {line}")
    if len(kernels) < 100:
        print(f"only {len(kernels)} kernels were found: is this the library?")
        return 1
    if not failures:
        print(f"AVX code in {len(kernels)} functions, all of them kernels")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
