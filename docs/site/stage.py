"""Makes the tree that Sphinx reads, build/docs/tree: a copy of docs/, the reference pages of all public headers, a page for
each README beside the sources, a list of the examples; and links that point outside docs/ turned to those pages."""
import os
import pathlib
import re
import shutil

import c_reference
import cpp_reference

C_HEADERS = (
    ("bnns/bnns.h", "Functions", "All functions of the classic API, in the order of the header."),
    ("bnns/bnns_structures.h", "Structures", "What the functions take. Set a structure to zero, then the fields that you need."),
    ("bnns/bnns_constants.h", "Constants", "Types, layouts, functions and flags."),
    ("bnns/bnns_extensions.h", "Extensions", "What we add: errors, the log, threads, instruction sets, algorithms, traces."),
    ("bnns/bnns_io.h", "Files of arrays", "Saving and loading; see also [Saving and loading](../saving.md)."),
    ("bnns/bnns_distributed.h", "Many machines", "Training with mpirun; see also [Training on many machines](../distributed.md)."),
)
CPP_FOLDERS = (
    ("overlay", "C++ overlay", "bnns/overlay", "*.hpp", "`#include <bnns/bnns.hpp>` includes all of them."),
    ("mps", "MPS classes", "MetalPerformanceShaders", "*.hpp", "`#include <MetalPerformanceShaders/MetalPerformanceShaders.hpp>`"),
    ("metal", "Metal classes", "Metal", "*.hpp", "Devices, queues and command buffers of the MPS classes."),
    ("foundation", "Foundation classes", "Foundation", "*.hpp", "Strings, arrays, errors and reference counts of the MPS classes."),
    ("veclib", "BLAS, LAPACK, vDSP, vForce", "vecLib", "*.h", "See also [BLAS, LAPACK, vDSP and vForce](../veclib.md)."),
)
FORWARDERS = {"checks.hpp", "Foundation.hpp", "Metal.hpp", "MetalPerformanceShaders.hpp", "vecLib.h"}  # declare nothing of their own


def first_words(path):
    """What a program says of itself in the comment or text at its top: the first sentence."""
    text = path.read_text(encoding="utf-8")
    found = re.match(r'"""(.*?)"""', text, re.S) or re.match(r"((?://[^\n]*\n)+)", text)
    said = re.sub(r"^// (?:cc|c\+\+|prints:|stderr:|g\+\+) .*\n", "", found.group(1) if found else "", flags=re.M)   # how to run it
    said = re.sub(r"\n?// ?", " ", said).strip()
    said = re.sub(r"\s+", " ", said)
    return re.split(r"(?<=[.:]) (?:[A-Zc]|\()", said)[0].rstrip(":")


class Stage:
    def __init__(self, root, tree):
        self.root, self.tree, self.docs = root, tree, tree / "docs"
        self.inside = {}   # README beside sources -> its page

    def build(self):
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(self.root / "docs", self.docs, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
            shutil.copy(self.root / name, self.tree / name)
        self.reference()
        self.changelog()
        self.insides()
        self.examples()
        self.operators()
        self.unlisted()
        for page in self.docs.rglob("*.md"):
            page.write_text(self.links(page, page.read_text(encoding="utf-8")), encoding="utf-8")

    def write(self, name, text):
        path = self.docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def reference(self):
        names, index = set(), ["# Reference\n", "Every public name, written from the comments of the headers. "
                               "[The functions by group](../bnns.md) has types and limits in tables.\n", "## C\n"]
        pages = []
        forgotten = {path.name for path in (self.root / "include/bnns").glob("*.h")} - {pathlib.Path(h[0]).name for h in C_HEADERS}
        if forgotten:
            raise SystemExit(f"stage.py: C_HEADERS lacks {sorted(forgotten)}")
        for include, title, about in C_HEADERS:
            text, found = c_reference.page(title, include, about, (self.root / "include" / include).read_text(encoding="utf-8"))
            stem = pathlib.Path(include).stem
            self.write(f"reference/{stem}.md", text)
            names |= found
            pages.append(stem)
            index.append(f"- [{title}]({stem}.md), `<{include}>`: {len(found)} names")
        index.append("\n## C++ and more\n")
        for stem, title, folder, pattern, about in CPP_FOLDERS:
            children, list_of = [], [f"# {title}\n", about + "\n"]
            for path in sorted((self.root / "include" / folder).glob(pattern)):
                if path.name in FORWARDERS:
                    continue
                language = "cpp" if path.suffix == ".hpp" else "c"
                text, found = cpp_reference.page(path.stem, f"{folder}/{path.name}" if stem != "overlay" else "bnns/bnns.hpp",
                                                 path.read_text(encoding="utf-8"), language)
                self.write(f"reference/{stem}/{path.stem}.md", text)
                names |= found
                children.append(path.stem)
                said = ", ".join(f"`{name}`" for name in sorted(found))
                list_of.append(f"- [{path.stem}]({stem}/{path.stem}.md)" + (f": {said}" if said else ""))
            list_of.append("\n```{toctree}\n:hidden:\n" + "\n".join(f"{stem}/{c}" for c in children) + "\n```\n")
            self.write(f"reference/{stem}.md", "\n".join(list_of))
            pages.append(stem)
            index.append(f"- [{title}]({stem}.md): {about}")
        index.append("\n```{toctree}\n:hidden:\n" + "\n".join([*pages, "../bnns"]) + "\n```\n")
        self.write("reference/index.md", "\n".join(index))
        print(f"reference: {len(names)} names")

    def changelog(self):
        self.write("changelog.md", (self.root / "CHANGELOG.md").read_text(encoding="utf-8"))

    def insides(self):
        """READMEs beside the sources: notes for those who change the library."""
        listed = ["# Notes beside the sources\n", "One folder of the sources, one page: what it computes, which algorithm runs "
                  "when, precision, memory and tests. They are for those who change the library. Numbers such as K8 "
                  "stand for [decisions](../decisions.md).\n"]
        paths = [*sorted((self.root / "src").rglob("README.md")), self.root / "examples/operator_skeleton/README.md",
                 self.root / "bench/README.md", self.root / "tests/api/README.md", self.root / "python/README.md"]
        names = []
        for path in paths:
            folder = path.parent.relative_to(self.root)
            name = "-".join(folder.parts)
            self.inside[path] = self.docs / "inside" / f"{name}.md"
            text = path.read_text(encoding="utf-8")
            self.write(f"inside/{name}.md", self.links_from(path, self.inside[path], text))
            title = re.search(r"^# (.*)$", text, re.M).group(1)
            listed.append(f"- [{title}]({name}.md), `{folder}`")
            names.append(name)
        listed.append("\n```{toctree}\n:hidden:\n" + "\n".join(names) + "\n```\n")
        self.write("inside/index.md", "\n".join(listed))

    def examples(self):
        text = ["# Examples\n", "Complete programs. The tests compile and run each of them.\n"]
        for title, folder, pattern in (("C", ".", "*.c"), ("Guides", "guides", "*.c"), ("Operators", "operators", "*.c"),
                                       ("C++", ".", "*.cc"), ("Python", "python", "*.py"), ("Swift", "swift", "*.swift")):
            found = sorted((self.root / "examples" / folder).glob(pattern))
            if found:
                text.append(f"\n## {title}\n")
            for path in found:
                relative = path.relative_to(self.root)
                text.append(f"- [{path.name}](../{relative}): {c_reference.escape(first_words(path))}")
        self.write("examples.md", "\n".join(text) + "\n")

    def operators(self):
        """The list of the operators' pages is made of their first lines."""
        index = self.docs / "operators/index.md"
        if not index.exists():
            return
        lines, names = [], []
        for path in sorted(self.docs.glob("operators/*.md")):
            if path != index:
                text = path.read_text(encoding="utf-8")
                title = re.match(r"# (.*)\n", text).group(1)
                first = re.split(r"(?<=\.)\s", text.split("\n", 2)[2].strip())[0].replace("\n", " ")
                lines.append(f"| [{title}]({path.name}) | {first} |")
                if re.search(r"examples/operators/\w+\.c$", text, re.M):
                    path.write_text(text + "\n`tensor.h` is [the helper of these programs](index.md#the-helper-of-the-programs).\n", encoding="utf-8")
                names.append(path.stem)
        text = index.read_text(encoding="utf-8").replace("<!-- operators -->", "| operator | what it does |\n| --- | --- |\n" + "\n".join(lines))
        index.write_text(text + "\n```{toctree}\n:hidden:\n" + "\n".join(names) + "\n```\n", encoding="utf-8")

    def unlisted(self):
        """Pages of docs/ that no list names are put into the last one, so that a new page needs no second place."""
        listed = set()
        for page in self.docs.rglob("*.md"):
            for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
                for entry in re.findall(r"^(?:.*<)?([\w./-]+)>?$", block, re.M):
                    listed.add(os.path.normpath(page.parent / entry))
        missing = [page for page in sorted(self.docs.rglob("*.md"))
                   if str(page.with_suffix("")) not in listed and page != self.docs / "index.md" and "site" not in page.parts]
        index = self.docs / "index.md"
        entries = "".join(f"{page.relative_to(self.docs).with_suffix('')}\n" for page in missing)
        index.write_text(index.read_text(encoding="utf-8").replace("<!-- unlisted -->\n", entries), encoding="utf-8")
        if missing:
            print("not listed, put at the end:", *(page.name for page in missing))

    def part(self, name):
        """What stands between `<!-- name -->` and `<!-- end name -->` in the README: the site does not say it twice."""
        text = (self.root / "README.md").read_text(encoding="utf-8")
        found = re.search(rf"<!-- {name} -->\n(.*?)<!-- end {name} -->\n", text, re.S)
        if not found:
            raise SystemExit(f"README.md has no part '{name}'")
        return found.group(1)

    def links(self, page, text):
        """Links of a page of docs/, as if it stood in the repository."""
        if "reference" in page.parts or "inside" in page.parts:
            return text
        return self.links_from(self.root / page.relative_to(self.tree), page, text)

    def links_from(self, source, page, text):
        """`source` is where the text stands in the repository, `page` where it goes."""
        def turn(match):
            target, hash_, anchor = match.group(1).partition("#")
            if not target or "://" in target or " " in target or target.startswith("mailto:"):
                return match.group(0)
            path = pathlib.Path(os.path.normpath(source.parent / target))
            inside_docs = (self.root / "docs") in path.parents
            if inside_docs and page.is_relative_to(self.docs) and source.is_relative_to(self.root / "docs"):
                return match.group(0)
            if path.is_dir() and (path / "README.md").exists():
                path = path / "README.md"
            if path == self.root / "CHANGELOG.md":
                path = self.docs / "changelog.md"
            elif inside_docs:
                path = self.tree / path.relative_to(self.root)
            elif path.is_dir() and (self.root / "examples") in [path, *path.parents]:
                path = self.docs / "examples.md"
            elif path.name == "README.md" and path.parent != self.root:
                folder = path.parent.relative_to(self.root)
                path = self.docs / "inside" / ("-".join(folder.parts) + ".md")
            elif path.name.endswith(".md"):
                path = self.docs / "index.md"
            elif not path.is_file():
                return match.group(0)   # Sphinx says that it leads nowhere
            return f"]({os.path.relpath(path, page.parent)}{hash_}{anchor})"
        def included(match):
            return match.group(1) + os.path.relpath(os.path.normpath(source.parent / match.group(2)), page.parent)

        text = re.sub(r"^(```\{literalinclude\} )(\S+)", included, text, flags=re.M)
        text = re.sub(r"^<!-- from README: (\w+) -->\n", lambda m: self.links_from(
            self.root / "README.md", page, self.part(m.group(1))), text, flags=re.M)
        pieces = re.split(r"(^```.*?^```$|`[^`\n]*`)", text, flags=re.M | re.S)
        return "".join(p if p.startswith("`") else re.sub(r"\]\(([^()\s]+)\)", turn, p) for p in pieces)
