#!/usr/bin/env python3
"""Builds the extension against a libbnns that is there, and runs pytest: run.py LIBBNNS.SO CXX FOLDER [pytest arguments]

The interpreter is one that has nanobind, NumPy and pytest: OPENBNNS_PYTHON of the environment, this one, or a virtual
environment in FOLDER, which is filled with pip. Exits with 77 and says why where none of them can be had.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NEEDS = ("nanobind", "numpy", "pytest")


def skip(reason: str) -> None:
    print(f"skipped: {reason}")
    sys.exit(77)


def complete(python: str) -> bool:
    code = "import sys, " + ", ".join(NEEDS) + "; sys.exit(sys.version_info < (3, 10))"
    return subprocess.run([python, "-c", code], stderr=subprocess.DEVNULL).returncode == 0


def interpreter(folder: pathlib.Path) -> str:
    own = folder / "venv/bin/python"
    for python in (os.environ.get("OPENBNNS_PYTHON"), sys.executable, str(own)):
        if python and shutil.which(python) and complete(python):
            return python
    if sys.version_info < (3, 10):
        skip(f"Python is {sys.version.split()[0]}, the package needs 3.10")
    made = subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], capture_output=True, text=True)
    if made.returncode:
        skip("this Python makes no virtual environment (Debian: python3-venv)")
    pip = subprocess.run([str(own), "-m", "pip", "install", "-q", "--retries", "1", "--timeout", "20", *NEEDS],
                         capture_output=True, text=True)
    if pip.returncode or not complete(str(own)):
        skip(f"pip could not install {', '.join(NEEDS)}")
    return str(own)


def build(python: str, library: pathlib.Path, cxx: str, package: pathlib.Path) -> None:
    """The extension beside a copy of the Python files; objects are kept while their sources are older."""
    ask = ("import nanobind, sysconfig, os; print(nanobind.include_dir(), os.path.dirname(nanobind.include_dir()), "
           "sysconfig.get_paths()['include'], sysconfig.get_config_var('EXT_SUFFIX'))")
    include, nanobind, headers, suffix = subprocess.check_output([python, "-c", ask], text=True).split()
    if not os.path.exists(os.path.join(headers, "Python.h")):
        skip(f"Python.h is not in {headers} (Debian: python3-dev)")
    shutil.copytree(ROOT / "python/openbnns", package, dirs_exist_ok=True)
    objects = package.parent / "objects"
    objects.mkdir(exist_ok=True)
    flags = ["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-DNDEBUG", "-DNB_COMPACT_ASSERTIONS",
             f"-I{ROOT}", f"-I{ROOT}/include", f"-I{include}", f"-I{nanobind}/ext/robin_map/include", f"-I{headers}"]
    sources = sorted((ROOT / "python/src").glob("*.cc")) + [pathlib.Path(nanobind) / "src/nb_combined.cpp"]
    newest = max(f.stat().st_mtime for f in (ROOT / "python/src").iterdir())

    def compile(source: pathlib.Path) -> pathlib.Path:
        target = objects / (source.stem + ".o")
        if not target.exists() or target.stat().st_mtime < newest:
            subprocess.run([cxx, *flags, "-c", str(source), "-o", str(target)], check=True)
        return target

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        made = list(pool.map(compile, sources))
    shutil.copy(library, package / "libbnns.so.0")
    subprocess.run([cxx, "-shared", "-o", str(package / f"_core{suffix}"), *map(str, made), str(package / "libbnns.so.0"),
                    "-Wl,-rpath,$ORIGIN"], check=True)


def main() -> int:
    library, cxx, folder = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
    python = interpreter(folder)
    build(python, library, cxx, folder / "package/openbnns")
    environment = dict(os.environ, PYTHONPATH=str(folder / "package"), PYTHONDONTWRITEBYTECODE="1", BNNS_VERBOSE="0")
    return subprocess.run([python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(HERE), *sys.argv[4:]],
                          env=environment, cwd=folder).returncode


if __name__ == "__main__":
    sys.exit(main())
