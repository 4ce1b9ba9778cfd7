"""Reference pages of the C++ headers, and of the C headers that are lists: what a user can name, with its comment, without
function bodies, private parts and the namespace `detail`."""
import re

DECORATION = re.compile(r"\b(?:BNNS_MPS_API|BNNS_API|VECLIB_API|VECLIB_NOEXCEPT|VECLIB_NULLABLE) ?")
COMMENT = re.compile(r"//[^\n]*")


def skip(text, at):
    """Behind the comment, text or character that begins at `at`; else `at`."""
    if text.startswith("//", at):
        end = text.find("\n", at)
        return len(text) if end < 0 else end
    if text[at] == '"' or text[at] == "'" and not text[at - 1:at].isalnum():
        end = at + 1
        while text[end] != text[at]:
            end += 2 if text[end] == "\\" else 1
        return end + 1
    return at


def closing(text, at):
    """Behind the brace that closes the one at `at`."""
    depth = 0
    while True:
        end = skip(text, at)
        if end != at:
            at = end
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            return at


def declarations(text):
    """(head, body, tail) of each declaration of a scope: the body is what stands between the braces of a class, an
    enumeration or a namespace, "" of a function, None where there is none."""
    at = begin = parens = 0
    while at < len(text):
        end = skip(text, at)
        if end != at:
            at = end
            continue
        char = text[at]
        parens += {"(": 1, ")": -1}.get(char, 0)
        at += 1
        if parens:
            continue
        head = text[begin:at - 1]
        code = COMMENT.sub("", head).strip()
        if char == ":" and re.search(r"(?:^|\s)(?:public|private|protected)$", code):
            yield text[begin:at], None, ""
            begin = at
        elif char == ";":
            yield head, None, ";"
            begin = at
        elif char == "{":
            end = closing(text, at - 1)
            scope = re.match(r"(?:template <[^{]*>\s*)?(?:typedef )?(?:inline )?(namespace|extern|class|struct|union|enum)\b", code)
            if scope and "(" not in DECORATION.sub("", code):
                rest = re.compile(r"[^;]*;").match(text, end) if scope.group(1) not in ("namespace", "extern") else None
                yield head, text[at:end - 1], rest.group(0) if rest else ""
                at = begin = rest.end() if rest else end
            elif re.search(r"(?:\)|\}|&|\bconst|\bnoexcept|\boverride|\bfinal)$|->[^{]*$", code) and "(" in code:
                yield without_initializers(head), "", ";"
                at = begin = end
            else:   # the initial value of something
                at = end
    if COMMENT.sub("", text[begin:]).strip():
        raise SystemExit(f"cpp_reference: not understood: {text[begin:][:200]}")


def without_initializers(head):
    """`X(int a) : a_(a)` without what follows the colon."""
    depth = 0
    for at, char in enumerate(head):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(char, 0)
        before = COMMENT.sub("", head[:at]).rstrip()
        if char == ":" and depth == 0 and "::" not in head[at - 1:at + 2] and before.endswith((")", "noexcept")):
            return head[:at].rstrip()
    return head


def tidy(text):
    text = DECORATION.sub("", text)
    text = re.sub(r"^[ \t]*//[^\n]*clang-format[^\n]*\n|^[ \t]*//\s*namespace[^\n]*\n", "", text, flags=re.M)
    text = re.sub(r"[ \t]+$", "", text, flags=re.M)
    text = re.sub(r"[ ]+;", ";", text)
    return re.sub(r"\n{3,}", "\n\n", text)


def inside(body):
    """The public part of a class."""
    out, public = "", True
    for head, content, tail in declarations(body):
        if label := re.search(r"\b(public|private|protected):$", head):
            public = label.group(1) == "public"
        elif public and not COMMENT.sub("", head).strip().startswith("friend"):
            out += shown(head, content, tail)
    return out.rstrip() + "\n"


def shown(head, body, tail):
    if not body:
        return head.rstrip() + tail
    if re.search(r"\benum\b", COMMENT.sub("", head)):
        return head + "{" + body + "}" + tail
    indent = re.search(r"(?:^|\n)([ \t]*)(?!//)\S[^\n]*$", head.rstrip())
    return head + "{\n" + inside(body).lstrip("\n") + (indent.group(1) if indent else "") + "}" + tail


def scopes(text, found):
    """Adds (name or None, code) of everything that a file declares to `found`."""
    for head, body, tail in declarations(text):
        code = COMMENT.sub("", head).strip()
        if re.match(r"(?:inline )?namespace\b|extern\b", code) and body is not None:
            if not re.search(r"\bdetail\b|^namespace$", code):
                scopes(body, found)
            continue
        if re.match(r"#|friend\b", code) or not code and body is None:
            continue
        bare = DECORATION.sub("", re.sub(r"alignas\([^)]*\)|\[\[\w+\]\]", "", code))
        name = re.match(r"(?:template <[^{]*?>\s*(?:requires [^\n]*\n\s*)?)?(?:typedef )?(?:class|struct|union|enum class|enum)\s+(\w+)", bare)
        piece = tidy(shown(head, body, tail))
        if name and body:
            found.append((name.group(1), piece))
        elif found and found[-1][0] is None:
            found[-1] = (None, found[-1][1] + piece)
        else:
            found.append((None, piece))


def page(title, include, text, language="cpp"):
    """A page: the comment at the top of the file, then what the header declares; classes have headings of their own."""
    lines = text.splitlines()
    top = []
    while lines and lines[0].startswith("//"):
        top.append(re.sub(r"^// ?", "", lines.pop(0)))
    found = []
    scopes(re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*\n", "", "\n".join(lines) + "\n", flags=re.M), found)
    top = "\n".join(top)
    out = [f"# {title}\n", f"`#include <{include}>`\n",
           f"```text\n{top}\n```\n" if "  " in top else re.sub(r"([*<>_\[\]])", r"\\\1", top) + "\n"]
    for name, code in found:
        if not code.strip():
            continue
        if name:
            out.append(f"\n## {name}\n")
        elif len(found) > 1:
            out.append("\n## " + ("Functions" if "(" in COMMENT.sub("", code) else "Names") + "\n")
        out.append(f"```{language}\n{code.strip()}\n```\n")
    return "\n".join(out), {name for name, _ in found if name}
