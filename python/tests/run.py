#!/usr/bin/env python3
"""Builds the extensions against libraries that are there, and runs pytest: run.py LIBBNNS.SO LIBBNNS_MPS.SO CXX FOLDER [pytest arguments]

The interpreter is one that has nanobind, NumPy and pytest: OPENBNNS_PYTHON of the environment, that of build/peers (scripts/setup-peers),
which has PyTorch too, this one, or a virtual environment in FOLDER, which is filled with pip. Exits with 77 and says why where none
of them can be had. A libbnns_mpi in the folder mpi beside LIBBNNS.SO comes into the package, for test_distributed.py, which starts it
with OPENBNNS_MPIEXEC of the environment, else mpiexec.

OPENBNNS_SANITIZE=address,undefined: the libraries are built with these sanitizers, and so are the extensions; their run-time libraries
are loaded before the interpreter, which has none. Leaks are not counted: the interpreter leaves memory behind of its own.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Iterator

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
    for python in (os.environ.get("OPENBNNS_PYTHON"), str(ROOT / "build/peers/bin/python"), sys.executable, str(own)):
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


@contextlib.contextmanager
def replacing(file: pathlib.Path) -> Iterator[str]:
    """A name to write `file` under. It is renamed at the end: a program that has the old file loaded keeps it."""
    name = f"{file}.{os.getpid()}.new"
    try:
        yield name
        os.replace(name, file)
    finally:
        pathlib.Path(name).unlink(missing_ok=True)


def build(python: str, libraries: list[pathlib.Path], cxx: str, package: pathlib.Path, more: list[str],
          environment: dict[str, str]) -> None:
    """The extensions beside a copy of the Python files; objects are kept while what they were made from is older."""
    ask = ("import nanobind, sysconfig, os; print(nanobind.include_dir(), os.path.dirname(nanobind.include_dir()), "
           "sysconfig.get_paths()['include'], sysconfig.get_config_var('EXT_SUFFIX'))")
    include, nanobind, headers, suffix = subprocess.check_output([python, "-c", ask], text=True).split()
    if not os.path.exists(os.path.join(headers, "Python.h")):
        skip(f"Python.h is not in {headers} (Debian: python3-dev)")
    shutil.copytree(ROOT / "python/openbnns", package, dirs_exist_ok=True)
    objects = package.parent / "objects"
    objects.mkdir(exist_ok=True)
    flags = ["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-DNDEBUG", "-DNB_COMPACT_ASSERTIONS",
             f"-I{ROOT}", f"-I{ROOT}/include", f"-I{include}", f"-I{nanobind}/ext/robin_map/include", f"-I{headers}", *more]
    source = ROOT / "python/src"
    shared = [source / "error.cc", pathlib.Path(nanobind) / "src/nb_combined.cpp"]
    modules = {"_core": sorted(set(source.glob("*.cc")) - set(shared)), "_mps": sorted((source / "mps").glob("*.cc"))}

    def target(file: pathlib.Path) -> pathlib.Path:
        return objects / f"{file.parent.name}_{file.stem}.o"

    def compile(file: pathlib.Path) -> None:
        made = target(file)
        try:
            read = made.with_suffix(".d").read_text().replace("\\\n", " ").split()[1:]
            if all(os.path.getmtime(f) < made.stat().st_mtime for f in read):
                return
        except OSError:
            pass
        with replacing(made) as name:
            subprocess.run([cxx, *flags, "-MMD", "-MF", str(made.with_suffix(".d")), "-c", str(file), "-o", name], check=True)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(compile, [*shared, *sum(modules.values(), [])]))
    placed = [package / f"{library.name.partition('.so')[0]}.so.0" for library in libraries]
    for library, place in zip(libraries, placed):
        with replacing(place) as name:
            shutil.copy(library, name)
    mpi, place = libraries[0].parent / "mpi/libbnns_mpi.so", package / "libbnns_mpi.so.0"
    place.unlink(missing_ok=True)
    if mpi.exists() and not more:  # MPI is not a program that a sanitizer knows
        shutil.copy(mpi, place)
    for (module, sources), library in zip(modules.items(), placed):
        with replacing(package / f"{module}{suffix}") as name:
            subprocess.run([cxx, "-shared", *more, "-o", name, *[str(target(f)) for f in (*sources, *shared)], str(library),
                            "-Wl,-rpath,$ORIGIN", f"-Wl,-rpath-link,{package}"], check=True)
        with replacing(package / f"{module}.pyi") as name:
            subprocess.run([python, "-m", "nanobind.stubgen", "-q", "-m", f"openbnns.{module}", "-o", name], env=environment, check=True)


def main() -> int:
    libraries, cxx, folder = [pathlib.Path(a).resolve() for a in sys.argv[1:3]], sys.argv[3], pathlib.Path(sys.argv[4]).resolve()
    python = interpreter(folder)
    sanitizers = os.environ.get("OPENBNNS_SANITIZE", "")
    more = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1"] if sanitizers else []
    environment = dict(os.environ, PYTHONPATH=str(folder / "package"), PYTHONDONTWRITEBYTECODE="1", BNNS_VERBOSE="0")
    if sanitizers:
        found = [subprocess.check_output([cxx, f"-print-file-name={name}"], text=True).strip() for name in ("libasan.so", "libubsan.so", "libstdc++.so")]
        environment.update(LD_PRELOAD=" ".join(found), ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1",
                           UBSAN_OPTIONS="print_stacktrace=1")
    build(python, libraries, cxx, folder / "package/openbnns", more, environment)
    return subprocess.run([python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(HERE), *sys.argv[5:]],
                          env=environment, cwd=folder).returncode


if __name__ == "__main__":
    sys.exit(main())
