"""docs/tour.md is true: every path it names exists, every function of its walks is in the file beside it, and a name of an
algorithm is the path of a file."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
tour = (ROOT / "docs/tour.md").read_text(encoding="utf-8")
faults = []


def find(path):
    """A path from the root, below src or below src/ops."""
    for base in (ROOT, ROOT / "src", ROOT / "src/ops"):
        if (base / path).exists():
            return base / path
    return None


# 1. Paths: whatever has a suffix of ours, or begins with a folder of the root.
names = set(re.findall(r"(?<![\w/.-])((?:[\w-]+/)+[\w-]+\.(?:cc|h|hpp|cu|cuh|py|md|txt))\b", tour))
names |= set(re.findall(r"`((?:src|tests|docs|examples|include|bench|python|scripts|tools)(?:/[\w.-]+)*)/?`", tour))
names |= {(pathlib.Path("docs") / link).as_posix() for link in re.findall(r"\]\(((?!http)[^)#]+)", tour)}
assert len(names) > 30, "the paths were not found"
for name in sorted(names):
    if not (find(name) or (ROOT / name).resolve().exists()):
        faults.append(f"docs/tour.md: {name} does not exist")

# 2. Walks: "  function   path   what it does".
steps = re.findall(r"^ *\d+ +([\w:<>~]+) {2,}(\S+/\S+\.(?:cc|h|hpp|cu|cuh))(?: |$)", tour, re.M)
assert len(steps) > 20, "the walks were not found"
for function, path in steps:
    file, word = find(path), re.findall(r"\w+", function)[-1]
    if file and not re.search(rf"\b{word}\b", file.read_text(encoding="utf-8")):
        faults.append(f"docs/tour.md: {function} is not in {path}")


# 3. Names of algorithms. (That those of the tables are files is tested by implementations_test.py.)
algorithms = set(re.findall(r"`((?:convolution|pooling|mps_pooling|gemm|normalization)/[\w/]+)`", tour))
for name in sorted(algorithms):
    if not any(find(name + suffix) for suffix in (".cc", "_simd.cc", ".cu")):
        faults.append(f"docs/tour.md: no file for the algorithm {name}")

print(f"{len(names)} paths, {len(steps)} steps of walks, {len(algorithms)} names of algorithms")
sys.exit("\n".join(faults) if faults else 0)
