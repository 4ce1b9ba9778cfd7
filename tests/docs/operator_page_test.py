"""docs/adding-an-operator.md is true: its code is the skeleton's, line for line, and its commands, run as they stand on a
copy of the sources, make an operator that compiles.

Usage: operator_page_test.py CXX_COMPILER
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKELETON = ROOT / "examples/operator_skeleton"
page = (ROOT / "docs/adding-an-operator.md").read_text(encoding="utf-8")
faults = []

# 1. Every snippet is a run of lines of the file that the comment above it names.
snippets = re.findall(r"^<!-- (\S+) -->\n```cpp\n(.*?)^```$", page, re.M | re.S)
assert len(snippets) == len(re.findall(r"^```cpp", page, re.M)) > 8, "a snippet that does not say where it is from"
for name, lines in snippets:
    if "\n" + lines not in "\n" + (SKELETON / name).read_text(encoding="utf-8"):
        faults.append(f"{name} does not have these lines:\n{lines}")

# 2. Every file of the skeleton is spoken of, in its README.
readme = (SKELETON / "README.md").read_text(encoding="utf-8")
for path in SKELETON.iterdir():
    listed = path.name in readme or (path.name.endswith("_test.cc") and "`*_test.cc`" in readme)
    if path.name != "README.md" and not listed:
        faults.append(f"the README of the skeleton does not name {path.name}")

# 3. The commands of the first two steps, on a copy.
commands = [block for block in re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S) if "ctest" not in block]
assert len(commands) == 3, "the steps are not where this test expects them"
with tempfile.TemporaryDirectory() as folder:
    copy = pathlib.Path(folder)
    for name in ("bench", "docs", "examples", "include", "src", "tests"):
        shutil.copytree(ROOT / name, copy / name)
    subprocess.run(["bash", "-euc", "".join(commands[:2])], cwd=copy, check=True)
    # The step by hand: declarations go to the public header.
    own = copy / "src/ops/square_shift/square_shift_ext.h"
    declarations = re.search(r"^// -{4} .*?(?=^// -{20,})", own.read_text(encoding="utf-8"), re.M | re.S).group(0)
    public = copy / "include/bnns/bnns_extensions.h"
    text = public.read_text(encoding="utf-8")
    if '#include "bnns.h"' not in text:
        text = text.replace("#include <stdint.h>\n", '#include <stdint.h>\n\n#include "bnns.h"\n', 1)
    head, end, tail = text.rpartition('#ifdef __cplusplus\n}  // extern "C"')
    assert end, "bnns_extensions.h ends otherwise"
    public.write_text(head + declarations + end + tail, encoding="utf-8")
    own.unlink()
    renames = "".join(line for line in commands[2].splitlines(keepends=True) if line.startswith("sed"))
    subprocess.run(["bash", "-euc", "NAME=square_shift\n" + renames], cwd=copy, check=True)

    # Nothing of the skeleton is left, the lists have the new name, and it compiles.
    made = sorted((copy / "src/ops/square_shift").iterdir())
    made += [copy / "include/bnns/overlay/square_shift.hpp", copy / "examples/overlay_square_shift.cc"]
    for path in made:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(r"scale_shift|ScaleShift|Scale and shift|operator_skeleton", line):
                faults.append(f"the copy still says, {path.relative_to(copy)}:{number}: {line}")
    for name in ("src/ops/CMakeLists.txt", "src/filter/filter.h", "src/filter/filter.cc", "bench/row.h", "bench/row.cc",
                 "include/bnns/bnns.hpp", "examples/CMakeLists.txt"):
        if "square_shift" not in (copy / name).read_text(encoding="utf-8"):
            faults.append(f"the commands did not reach the list in {name}")
    # What is asked of every operator: tables forced by tests and shown by READMEs, includes that point one way.
    for words in (["tests/docs/implementations_test.py", copy], ["scripts/check-includes", "--root", copy]):
        done = subprocess.run([sys.executable, "-B", ROOT / words[0], *words[1:]], capture_output=True, text=True, check=False)
        faults += [f"{words[0]}: {line}" for line in (done.stdout + done.stderr).splitlines() if "square_shift" in line]
    sources = [path for path in made if path.suffix == ".cc" and not re.search(r"_(simd|test)\.cc$", path.name)]
    sources.append(copy / "src/filter/filter.cc")
    for source in sources:
        done = subprocess.run([sys.argv[1], "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{copy}",
                               f"-I{copy}/include", source], capture_output=True, text=True, check=False)
        if done.returncode:
            faults.append(f"the copy does not compile: {done.stderr[:2000]}")
print(f"{len(snippets)} snippets, {len(made)} files of a copied operator")
sys.exit("\n".join(faults) if faults else 0)
