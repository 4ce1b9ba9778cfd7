#!/usr/bin/env python3
"""The libraries and the tool are hardened: hardening_test.py FILE... (shared libraries and programs, x86-64 ELF).

Each file has full RELRO (addresses of functions are bound at load and read-only then), no executable stack, no segment that
can be written and executed, the stack protector, fortified libc calls and, on x86-64, functions that begin with endbr64
(CET); programs are position independent."""

import platform
import subprocess
import sys


def printed(*command):
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


def landing_pads(path):
    """The first hundred functions that begin with endbr64, or all there are: a library takes a minute to read whole."""
    found = 0
    with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", "-j", ".text", path], text=True, stdout=subprocess.PIPE) as code:
        for line in code.stdout:
            found += "endbr64" in line
            if found >= 100:
                code.kill()
                break
    return found


def problems_of(path):
    segments = printed("readelf", "-lW", path)
    flags = {line.split()[0]: line for line in segments.splitlines() if line.startswith("  ") and "0x" in line}
    dynamic = printed("readelf", "-dW", path)
    imported = {line.split()[-1].split("@")[0] for line in printed("nm", "-D", "--undefined-only", path).splitlines()}
    if "GNU_RELRO" not in flags:
        yield "has no RELRO segment"
    if "BIND_NOW" not in dynamic and "NOW" not in dynamic:
        yield "is not bound at load (BIND_NOW)"
    if "GNU_STACK" not in flags or "RWE" in flags["GNU_STACK"]:
        yield "has an executable stack"
    if any("RWE" in line for line in flags.values()):
        yield "has a segment that can be written and executed"
    if "DYN (" not in segments:
        yield "is not position independent"
    if "__stack_chk_fail" not in imported:
        yield "has no stack protector"
    if not any(name.endswith("_chk") for name in imported):
        yield "has no fortified libc call"
    if platform.machine() == "x86_64":
        if landing_pads(path) < 100:
            yield "has no landing pads for indirect calls (CET)"


def main():
    failures = [f"{path} {problem}" for path in sys.argv[1:] for problem in problems_of(path)]
    print("\n".join(failures) if failures else f"{len(sys.argv) - 1} files are hardened")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
