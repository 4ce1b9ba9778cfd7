"""Documents for users and public headers speak in words: no numbers of decisions or bug classes."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFINES_THEM = "docs/decisions.md"
documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*"), *ROOT.glob("include/**/*.h"),
             *ROOT.glob("include/**/*.hpp"), ROOT / "src/c_api/symbols.h"]
found = []
for path in documents:
    name = str(path.relative_to(ROOT))
    if not path.is_file() or name in (DEFINES_THEM, "CHANGELOG.md"):
        continue
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found += [f"{name}:{number}: {code}" for code in re.findall(r"\b(?:K|BC|D)\d{1,2}\b", line)]
# What the library says to users: the text of refusals and notes.
for path in [*ROOT.glob("src/**/*.cc"), *ROOT.glob("src/**/*.h"), *ROOT.glob("tools/**/*.cc")]:
    if path.name.endswith("_test.cc"):
        continue
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', line):
            found += [f"{path.relative_to(ROOT)}:{number}: {code}" for code in re.findall(r"\b(?:K|BC)\d{1,2}\b", text)]
assert len(documents) > 30, "the documents were not found"
sys.exit("\n".join(found) if found else 0)
