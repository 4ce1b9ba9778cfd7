"""Every table of algorithms (src/core/implementation.h) is forced, entry by entry, by a test, and shown by a README.

    implementations_test.py [ROOT]

A table is an array kSomething of ...Implementation... or ...Entry in a product file. For each there is, in the tests of
its folder, an X_implementations_test.cc that hands it to a function force...() or to names_before(), which leave out
the entries before the one that is to run (a table of one entry: that reads its name), and that compares it with a
README. The README's rows are the entries, and the file that a name points to is there. The tests themselves fail where
an entry ran no problem on the machine's widest instruction set. The end of this file breaks each of these on purpose.
"""

import os
import re
import sys

TABLE = re.compile(r"const(?:expr)?\s+[\w:]*(?:Implementation|Entry)[\w<>:,\s]*?\s(k\w+)\[\w*\]\s*=\s*\{(.*?)\n\};", re.S)
ENTRY = re.compile(r"\{\s*(?:\"([\w/]+)\"|(k\w+)\[(\d+)\]\.name),")  # a name, or that of another table's entry
SUFFIXES = (".cc", "_simd.cc", "-inl.h", ".cu", ".cuh", ".h")


def read(root):
    """Path below the root: text, of product files, tests and READMEs."""
    texts = {}
    for folder, _, names in os.walk(os.path.join(root, "src")):
        for name in names:
            if name.endswith((".cc", ".h", ".cu", ".cuh", ".md")):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    texts[os.path.relpath(path, root)] = f.read()
    return texts


def tables(texts):
    """(path, name of the array, names of the entries)"""
    for path, text in sorted(texts.items()):
        if path.endswith(".md") or "/tests/" in path or path.endswith("_test.cc"):
            continue
        if not re.search(r"(Implementation|Entry)\b.*\bk\w+\[", text):
            continue
        known = {}
        for match in TABLE.finditer(re.sub(r"^\s*//.*$", "", text, flags=re.M)):
            entries = [name or known[other][int(k)] for name, other, k in ENTRY.findall(match.group(2))]
            known[match.group(1)] = entries
            yield path, match.group(1), entries


def has_file(texts, name):
    """The name is a file's path below src/ops or src, one of several in it (gemm/skinny/dot/rows), or the common part of
    two (rows_forward_simd.cc, rows_backward_simd.cc)."""
    for top in ("src/ops", "src"):
        for base in (name, os.path.dirname(name)):
            if any(f"{top}/{base}{suffix}" in texts for suffix in SUFFIXES):
                return True
        if any(path.startswith(f"{top}/{name}_") for path in texts):
            return True
    return False


def check_table(texts, found, path, table, entries):
    if not entries:
        yield f"{path}: {table} has no entry of the form {{\"name\", ...}}"
        return
    for name in entries:
        if not has_file(texts, name):
            yield f"{path}: {table}: {name} is no file below src/ops or src"
    operator = re.match(r"src/ops/\w+/|", path).group() or os.path.dirname(path) + "/"
    tests = {p: t for p, t in texts.items() if p.endswith("_implementations_test.cc") and p.startswith(operator)}
    shown = None
    for test, text in tests.items():
        at = re.search(rf"expect_table_in_readme\(\s*{table},\s*\"([^\"]+)\",\s*(\"[^\"]+\"|\w+)\)", text)
        if not at:
            continue
        readme = at.group(2)
        if not readme.startswith('"'):  # a variable of the test
            place = re.search(rf"\b{readme}\b\s*[={{(]\s*(\"[^\"]+\")", text)
            readme = place.group(1) if place else '""'
        shown = (test, at.group(1), readme.strip('"'))
    if not shown:
        yield f"{path}: {table} has no expect_table_in_readme in an _implementations_test.cc of its folder"
        return
    test, title, readme = shown
    rows = re.search(rf"<!-- table: {re.escape(title)} -->\n(.*?)<!-- end of table -->", texts.get(readme, ""), re.S)
    if not rows:
        yield f"{readme}: has no table \"{title}\" ({test})"
    elif re.findall(r"^\| `([\w/]+)` \|", rows.group(1), re.M) != entries:
        yield f"{readme}: table \"{title}\" is not {table} of {path}"
    if any(t != table and p == path and set(entries) < set(e) for p, t, e in found):
        return  # a choice between entries of another table, which is forced
    forced = rf"\b(force\w*|names_before)\(\s*{table}\b" if len(entries) > 1 else rf"\b{table}\[0\]\.name|force\w*\(\s*{table}\b"
    if not any(re.search(forced, text) and "names_before(" in text for text in tests.values()):
        yield f"{test}: forces no entry of {table}"


def problems(texts):
    found = list(tables(texts))
    if not found:
        yield "no table found"
    for path, table, entries in found:
        yield from check_table(texts, found, path, table, entries)


def broken(texts, path, old, new):
    """The texts with one change; it must be there to be made."""
    changed = dict(texts)
    assert old in texts[path], f"{path} has no {old!r}"
    changed[path] = texts[path].replace(old, new)
    return changed


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    texts = read(root)
    failures = list(problems(texts))
    gemm, test, readme = "src/gemm/implementations.cc", "src/gemm/tests/gemm_implementations_test.cc", "src/gemm/README.md"
    for what, changed in (
            ("an entry that no README has", broken(texts, gemm, '{"gemm/amx",', '{"gemm/tiles", "x", y},\n    {"gemm/amx",')),
            ("a name without a file", broken(texts, gemm, '"gemm/amx"', '"gemm/nowhere/at/all"')),
            ("a table that is not forced", broken(texts, test, "names_before(kGemmImplementations", "names_before(kOther")),
            ("a table that is not shown", broken(texts, test, "expect_table_in_readme(", "nothing(")),
            ("a README without a row", broken(texts, readme, "| `gemm/bf16` |", "| gemm/bf16 |")),
            ("a folder without a test", {p: t for p, t in texts.items() if p != test})):
        if len(list(problems(changed))) <= len(failures):
            failures.append(f"{what} is not found")
    count = sum(len(entries) for _, _, entries in tables(texts))
    print(f"{len(list(tables(texts)))} tables, {count} entries")
    for failure in failures:
        print("FAIL", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
