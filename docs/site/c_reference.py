"""Reference pages of the C headers, from their comments: every function, structure, enumeration, macro and type that a
header declares gets an entry of Sphinx's C domain. A declaration that this parser does not understand is an error."""
import re

NOISE = re.compile(r"\b(?:BNNS_API|BNNS_NOEXCEPT|BNNS_NONNULL|BNNS_NULLABLE|BNNS_NULL_UNSPECIFIED|_Nonnull|_Nullable)\b ?")
NAME = re.compile(r"\b(?:BNNS|OPENBNNS_|BNNSExt)\w+")


def plain(declaration):
    """A declaration without our macros, on one line."""
    text = re.sub(r"\s+", " ", NOISE.sub("", declaration)).strip()
    return re.sub(r"\s+([,;)])", r"\1", text).rstrip(";")


def words(comment):
    """The text of `///` lines as Markdown: parameters stay a list, a table drawn by indentation stays as it is."""
    lines = [re.sub(r"^\s*///<? ?", "", line) for line in comment.splitlines()]
    text, previous = [], ""
    for line in lines:
        if line.startswith("- ") and previous and not previous.startswith(("- ", "  ")):
            text.append("")
        elif previous.startswith(("- ", "  ")) and line and not line.startswith(("- ", "  ")):
            text.append("")
        if line.startswith("- "):
            line = re.sub(r"^- (\w+):", r"- `\1`:", line)
        elif re.match(r"^  \S", line) and not previous.startswith(("- ", "  ")) and previous:
            text.append("")  # an indented list of values
        if re.match(r"^  (?:\S+|\S+ or \S+)  +\S", line):
            line = "- `" + re.sub(r"  +", "` ", line.strip(), count=1)
        text.append(line)
        previous = line
    return escape("\n".join(text))


def escape(text):
    """Stars and brackets outside of code are meant as they stand."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([*\[\]<>$])", r"\\\1", p) for p in pieces)


def directive(kind, head, body, level=3):
    fence = ":" * 0 + "`" * level
    return f"{fence}{{c:{kind}}} {head}\n{body}\n{fence}\n"


def parse(text):
    """(kind, name, declaration, comment, members) for each declaration, in order, and ('section', title) for headings."""
    text = re.sub(r"^#ifdef __cplusplus\n(typedef enum : uint32_t \{)\n#else\ntypedef uint32_t (\w+);\nenum \{\n#endif\n",
                  r"BNNS_ENUM(\2) {\n", text, flags=re.M)
    text = re.sub(r"^#ifdef __cplusplus\n\} (\w+);\n#else\n\};\n#endif\n", r"} BNNS_ENUM_END(\1);\n", text, flags=re.M)
    lines, found, comment, i = text.splitlines(), [], [], 0
    while i < len(lines):
        line = lines[i]
        if heading := re.match(r"^// ---- (.*?) -*$", line):
            found.append(("section", heading.group(1), "", "", []))
        elif line.startswith("///"):
            comment.append(line)
            i += 1
            continue
        elif line.startswith("#define OPENBNNS_VERSION_TEXT_"):
            pass  # how the text is made
        elif macro := re.match(r"^#define ((?:OPENBNNS_|BNNS_MAX_)\w+)(\([^)]*\))?", line):
            above, back = list(comment), i - 1
            while not above and back >= 0 and lines[back].startswith(("// ", "#define OPENBNNS_", "  OPENBNNS_")):
                if lines[back].startswith("// "):
                    above = [lines[back].replace("// ", "/// ", 1), *above]
                    while lines[back - 1].startswith("// "):
                        back -= 1
                        above.insert(0, lines[back].replace("// ", "/// ", 1))
                    break
                back -= 1
            found.append(("macro", macro.group(1), macro.group(1) + (macro.group(2) or ""), "\n".join(above), []))
        elif start := re.match(r"^BNNS_ENUM\((\w+)\) \{", line):
            body = []
            while not lines[i].startswith("} "):
                i += 1
                body.append(lines[i])
            found.append(("enum", start.group(1), start.group(1), "\n".join(comment), members(body, "enum")))
        elif re.match(r"^typedef struct (?:\w+ )?\{", line):
            body = []
            while not lines[i].startswith("} "):
                i += 1
                body.append(lines[i])
            name = re.match(r"^\} (\w+);", lines[i]).group(1)
            found.append(("struct", name, name, "\n".join(comment), members(body, "struct")))
        elif line.startswith(("BNNS_API ", "typedef ")):
            declaration = line
            while not declaration.rstrip().endswith(";"):
                i += 1
                declaration += " " + lines[i].strip()
            if line.startswith("typedef "):
                name = re.search(r"\(\*\s*(?:BNNS_\w+ )?(\w+)\)|(\w+);$", declaration)
                found.append(("type", name.group(1) or name.group(2), plain(declaration).removeprefix("typedef "),
                              "\n".join(comment), []))
            else:
                name = re.search(r"(\w+)\(", NOISE.sub("", declaration)).group(1)
                found.append(("function", name, plain(declaration), "\n".join(comment), []))
        comment = []
        i += 1
    return found


def members(body, kind):
    """(name, declaration, comment) of what stands between the braces."""
    found, above, declaration = [], [], ""
    for line in body:
        if line.startswith("} "):
            break
        text = line.strip()
        if text.startswith("///<") and found:
            found[-1][2] += " " + text.removeprefix("///<").strip()
            continue
        if text.startswith("///"):
            above.append(text)
            continue
        if not text or text.startswith(("//", "#")):
            continue
        code, _, comment = text.partition("///<")
        declaration = (declaration + " " + code.strip()).strip()
        if not declaration.endswith((";", ",")) and not (kind == "enum" and "=" in declaration):
            continue
        declaration = plain(declaration).rstrip(",")
        said = comment.strip() or " ".join(re.sub(r"^/// ?", "", a) for a in above)
        name = declaration.split(" ")[0] if kind == "enum" else re.search(r"(\w+)(?:\[[^]]*\])*$", declaration).group(1)
        found.append([name, declaration, said])
        above, declaration = [], ""
    return found


def page(title, include, introduction, text):
    """The page of one header and the set of names it documents."""
    out, names = [f"# {title}\n", f"`#include <{include}>`\n", introduction, ""], set()
    for kind, name, declaration, comment, inside in parse(text):
        if kind == "section":
            out.append(f"\n## {name}\n")
            continue
        names.add(name)
        body = [words(comment), ""]
        for member, line, said in inside:
            names.add(member) if kind == "enum" else None
            head = line if kind == "enum" else line
            body.append(directive("enumerator" if kind == "enum" else "member", head, escape(said) + "\n"))
        out.append(directive(kind, declaration, "\n".join(body), 4))
    missing = set(NAME.findall(re.sub(r"//[^\n]*", "", text))) - names - MACROS_OF_THE_HEADERS
    missing = {name for name in missing if re.search(rf"(?:^|[^\w]){name}\(|\}} {name};|^  {name} =", text, re.M)}
    if missing:
        raise SystemExit(f"{include}: not understood: {sorted(missing)}")
    return "\n".join(out) + "\n", names


MACROS_OF_THE_HEADERS = {"BNNS_ENUM", "BNNS_ENUM_END", "BNNS_API", "BNNS_NOEXCEPT", "BNNS_NONNULL", "BNNS_NULLABLE",
                         "OPENBNNS_VERSION_TEXT_OF", "OPENBNNS_VERSION_TEXT_FROM"}
