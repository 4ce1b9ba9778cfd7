"""Every parameter of every function in bnns.h has a line of its own in the function's comment, in the order of the
declaration; every pointer that may be NULL says so, and every field of bnns_structures.h says what it is."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
faults = []

text = (ROOT / "include/bnns/bnns.h").read_text(encoding="utf-8")
found = re.findall(r"((?:^///[^\n]*\n)+)BNNS_API [^;]*?\b(BNNS\w+)\(([^;]*)\) BNNS_NOEXCEPT;", text, re.M)
assert len(found) == len(re.findall(r"^BNNS_API ", text, re.M)) == 97, "a function without a comment"
for comment, function, arguments in found:
    comment = re.sub(r"\n/// {2,}", " ", comment)
    lines = dict(re.findall(r"^/// - (\w+): (.+)$", comment, re.M))
    parameters = [argument.split()[-1] for argument in arguments.split(",")]
    if list(lines) != parameters:
        faults.append(f"{function}: the comment speaks of {list(lines)}, expected {parameters}")
    for argument, name in zip(arguments.split(","), parameters):
        # What a pointer is when it is missing: "NULL ...", or as another call, or not used at all.
        if "BNNS_NULLABLE" in argument and not re.search(r"\bNULL\b|likewise|as in the forward call", lines.get(name, "")):
            faults.append(f"{function}: {name} may be NULL, and its line does not say what that means")

text = (ROOT / "include/bnns/bnns_structures.h").read_text(encoding="utf-8")
for body, structure in re.findall(r"^typedef struct \{\n(.*?)^\} (\w+);", text, re.M | re.S):
    previous = ""
    for line in body.splitlines():
        if re.match(r"  \w.*;", line) and "///<" not in line and not previous.strip().startswith("///"):
            faults.append(f"{structure}: no comment on {line.strip()}")
        previous = line
sys.exit("\n".join(faults) if faults else 0)
