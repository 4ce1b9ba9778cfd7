"""Documents for users and public headers speak in words: no numbers of decisions or bug classes. Comments of product
files and the READMEs beside them speak the trade's words."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFINES_THEM = "docs/decisions.md"
documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*"), *ROOT.glob("include/**/*.h"),
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
# Words of our own for things that have a name.
OWN_WORDS = {
    r"\brooms?\b": "buffer",
    r"\baround the caches?\b": "non-temporal stores",
    r"\b(?:to|has|have|gives?|with) the bits of\b": "bit-identical to",
    r"\blines ahead\b|\bask(?:s|ed|ing)? ahead\b|\basks? for .*\bahead\b": "prefetch",
    r"\b(?:is|are) no multiples?\b": "is not a multiple",
    r"(?<!either )(?<!other )(?<!on the )(?<!on its )(?<!wrong )(?<!their )(?<!under )(?<!each )(?<!\d )(?<!of a )\bways?\b": "algorithm",
}
checked = 0
for path in sorted(p for p in ROOT.glob("src/**/*") if p.suffix in (".cc", ".h", ".cu", ".cuh", ".md")):
    name = str(path.relative_to(ROOT))
    if "/tests/" in name or re.search(r"_test\.cc$|_testing\.h$", name):
        continue
    checked += 1
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        comment = line if path.suffix == ".md" else line[line.find("//"):] if "//" in line else ""
        for word, better in OWN_WORDS.items():
            found += [f"{name}:{number}: '{own}' (say {better})" for own in re.findall(word, comment, re.IGNORECASE)]
assert checked > 200, "the product files were not found"
assert len(documents) > 30, "the documents were not found"
sys.exit("\n".join(found) if found else 0)
