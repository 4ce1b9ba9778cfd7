"""libAccelerate.so exports what its headers declare, docs/veclib.md names each function, and its program runs.

Usage: veclib_test.py LIBRARY FOLDER_OF_LIBBNNS NM C_COMPILER BLAS LAPACK
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
library, bnns, nm, compiler, *system = sys.argv[1:]
headers = "".join((ROOT / "include/vecLib" / name).read_text(encoding="utf-8") for name in ("vDSP.h", "vForce.h"))
declared = set(re.findall(r"\b(vDSP_v?\w+|vv\w+)\(", headers))
symbols = subprocess.run([nm, "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
exported = {line.split()[-1].split("@")[0] for line in symbols.splitlines() if line.split()[-2] in "TW"}
assert exported == declared, f"differ: {sorted(exported ^ declared)}"
assert len(declared) > 120, len(declared)

page = (ROOT / "docs/veclib.md").read_text(encoding="utf-8")
named = set(re.findall(r"\b[a-z]\w+\b", " ".join(re.findall(r"`([^`]*)`", page))))
for name in declared:
    base = name.removeprefix("vDSP_")
    plain = base[:-1] if base[-1] == ("D" if base != name else "f") else base
    assert base in named or plain in named, f"docs/veclib.md does not name {name}"

program = re.search(r"^```c\n(.*?)^```$", page, re.M | re.S).group(1)
prints = re.search(r"^// prints: (.*)$", program, re.M).group(1)
with tempfile.TemporaryDirectory() as folder:
    source, binary = pathlib.Path(folder) / "scale.c", pathlib.Path(folder) / "scale"
    source.write_text(program, encoding="utf-8")
    subprocess.run([compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", source, "-o", binary, library,
                    *system, f"-L{bnns}", "-lbnns"], check=True)
    paths = os.pathsep.join((os.path.dirname(os.path.abspath(library)), os.path.abspath(bnns)))
    done = subprocess.run([binary], env={**os.environ, "LD_LIBRARY_PATH": paths}, capture_output=True, text=True, check=True)
assert done.stdout == prints + "\n", done.stdout
print(f"{len(declared)} functions declared, exported and documented")
