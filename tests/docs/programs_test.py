"""The programs that pages of the site include, examples/guides and examples/operators, compiled by the line that each has
at its top, print what the lines below it say; every page of the guides and the operators shows such programs only; every
program is shown by a page.

Usage: programs_test.py FOLDER_OF_THE_LIBRARY C_COMPILER CXX_COMPILER
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
library, compilers = os.path.abspath(sys.argv[1]), {"cc": sys.argv[2], "c++": sys.argv[3]}
FOLDERS = [ROOT / "examples/guides", ROOT / "examples/operators"]
programs = sorted(path for folder in FOLDERS for path in folder.iterdir() if path.suffix in (".c", ".cc"))
pages = [ROOT / "docs/start.md", ROOT / "docs/install.md", *sorted((ROOT / "docs/guides").glob("*.md")),
         *sorted((ROOT / "docs/operators").glob("*.md"))]
# What the tables of the operators' pages may name.
NAMES = [set(re.findall(r"\w+", "".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob(pattern)))))
         for pattern in ("include/bnns/*.h", "include/bnns/overlay/*.hpp", "python/openbnns/**/*.py")]
# The library as it is in the build folder, instead of an installed one.
environment = {**os.environ, "CPATH": str(ROOT / "include"), "LIBRARY_PATH": library, "LD_LIBRARY_PATH": library}
for name in ("BNNS_VERBOSE", "BNNS_CHECK_NAN"):
    environment.pop(name, None)


def run(path):
    """What is wrong with a program, or None."""
    lines = path.read_text(encoding="utf-8").splitlines()
    shown = re.fullmatch(r"// ((c\+\+|cc) .*? -o (\S+) .*?) && ((?:\w+=\S+ )*)(\./\S+)(.*)", lines[0])
    if not shown or f" {path.name} " not in shown.group(1):
        return f"{path.name}: the first line does not say how it is compiled and run: {lines[0]}"
    prints, stderr = [], None
    for line in lines[1:]:
        if found := re.fullmatch(r"// (prints|stderr): (.*)", line):
            if found.group(1) == "prints":
                prints.append(found.group(2))
            else:
                stderr = found.group(2)
        else:
            break
    if not prints:
        return f"{path.name}: no '// prints: ' line"
    command, compiler, binary, settings, start, rest = shown.groups()
    with tempfile.TemporaryDirectory() as folder:
        for beside in path.parent.iterdir():
            shutil.copy(beside, folder)
        words = [compilers[compiler], *command.split()[1:], "-Wall", "-Wextra", "-Werror"]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"{path.name}: {' '.join(words)}\n{done.stderr[:2000]}"
        own = dict(setting.split("=", 1) for setting in settings.split())
        done = subprocess.run([start, *rest.split()], cwd=folder, env={**environment, **own}, capture_output=True, text=True,
                              timeout=60, check=False)
    del binary
    if done.returncode:
        return f"{path.name}: exit code {done.returncode}: {done.stderr[:500]}"
    if done.stdout.splitlines() != prints:
        return f"{path.name} prints {done.stdout!r}, its top says {prints}"
    if stderr and not re.search(stderr, done.stderr):
        return f"{path.name}: stderr is {done.stderr!r}, its top says /{stderr}/"
    # What a refused or strange call leaves there has no place in an example that does not speak of it.
    if not stderr and re.search(r"^openbnns:", done.stderr, re.M):
        return f"{path.name}: {done.stderr}"
    return None


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    faults = [fault for fault in pool.map(run, programs) if fault]

shown = set()
for page in pages:
    text = page.read_text(encoding="utf-8")
    for language in re.findall(r"^```(\S*)$", text, re.M):
        if language in ("c", "cpp", "c++", "python"):
            faults.append(f"{page.relative_to(ROOT)}: a block of {language} in the page; programs are files in examples/")
    for row in re.findall(r"^\| C \| C\+\+ \| Python \|\n\| --- \| --- \| --- \|\n\| (.*) \| (.*) \| (.*) \|$", text, re.M):
        for language, names, cell in zip(("C", "C++", "Python"), NAMES, row):
            for name in re.findall(r"`([\w.]+)`", cell):
                if name.split(".")[-1] not in names:
                    faults.append(f"{page.relative_to(ROOT)}: {language} has no {name}")
    for name in re.findall(r"^```\{literalinclude\} (\S+)", text, re.M):
        path = (page.parent / name).resolve()
        if not path.is_file():
            faults.append(f"{page.relative_to(ROOT)}: {name} is not there")
        shown.add(path)
for path in programs:
    if path.resolve() not in shown:
        faults.append(f"no page shows {path.relative_to(ROOT)}")
print(f"{len(programs)} programs, {len(pages)} pages")
if len(programs) < 5:
    faults.append("the programs were not found")
sys.exit("\n".join(faults) if faults else 0)
