"""The facts of the classic BNNS C API (tables/*.tsv) and what the conformance tests share.

One row per enumerator, field, function, typedef. In structs.tsv a row whose field is "-" is the whole structure.
Offsets and sizes are those of LP64 machines. Nullability is part of a type, as clang spells it.
"""

import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
INCLUDE = ROOT / "include"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def rows(table):
    lines = (HERE / "tables" / f"{table}.tsv").read_text(encoding="utf-8").splitlines()
    names = lines[0].split("\t")
    return [dict(zip(names, line.split("\t"), strict=True)) for line in lines[1:]]


def plain(c_type):
    """The type without nullability, which gcc does not know."""
    return re.sub(r"\s*\b_N(onnull|ullable|ull_unspecified)\b", "", c_type).strip()


def extension_functions():
    """The functions that our own headers declare."""
    headers = ("bnns/bnns_extensions.h", "bnns/bnns_io.h")
    text = "\n".join((INCLUDE / header).read_text(encoding="utf-8") for header in headers)
    return re.findall(r"^BNNS_API [^;]*?\b(BNNSExt\w+)\(", text, re.M)


def compilers():
    """gcc and clang, as far as they are installed; says which is not."""
    found = []
    for name in ("gcc", "clang"):
        if shutil.which(name):
            found.append(name)
        else:
            print(f"not tested with {name}: it is not installed")
    return found


def check_source(compiler, standard, source, flags=(), language=None):
    """Compiles `source` (text) without output. Returns the compiler's complaint, "" if there is none."""
    language = language or ("c++" if standard.startswith("c++") else "c")
    command = [compiler, "-x", language, f"-std={standard}", *WARNINGS, f"-I{INCLUDE}", *flags, "-fsyntax-only", "-"]
    done = subprocess.run(command, input=source, text=True, capture_output=True, check=False)
    return done.stderr.strip() or ("" if done.returncode == 0 else f"exit status {done.returncode}")


def report(failures, what):
    """Prints the failures, and returns the exit status of the test."""
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"{what}: {len(failures)} failures" if failures else f"{what}: good")
    return 1 if failures else 0
