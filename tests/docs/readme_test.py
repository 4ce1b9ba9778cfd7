"""The programs of the README and of docs/saving.md, compiled by the line that each has at its top, print what the line
below it says.

Usage: readme_test.py FOLDER_OF_THE_LIBRARY C_COMPILER CXX_COMPILER
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
library, compilers = os.path.abspath(sys.argv[1]), {"cc": sys.argv[2], "c++": sys.argv[3]}
programs = []
for document in ("README.md", "docs/saving.md"):
    found = re.findall(r"^```(cpp|c)\n(.*?)^```$", (ROOT / document).read_text(encoding="utf-8"), re.M | re.S)
    assert sorted(language for language, _ in found) == ["c", "cpp"], (document, [language for language, _ in found])
    programs += found

# The library as it is in the build folder, instead of an installed one.
environment = {**os.environ, "CPATH": str(ROOT / "include"), "LIBRARY_PATH": library, "LD_LIBRARY_PATH": library}
for language, program in programs:
    lines = program.splitlines()
    shown = re.fullmatch(r"// ((c\+\+|cc) .* (\S+\.(?:c|cc)) .*) && (\./\S+)", lines[0])
    prints = re.fullmatch(r"// prints: (.*)", lines[1])
    assert shown and prints, f"the first lines do not say how to compile and what is printed: {lines[:2]}"
    command, compiler, source, binary = shown.groups()
    assert compiler == {"c": "cc", "cpp": "c++"}[language], command
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / source).write_text(program, encoding="utf-8")
        words = [compilers[compiler], *command.split()[1:], "-Wall", "-Wextra", "-Werror"]
        subprocess.run(words, cwd=folder, env=environment, check=True)
        done = subprocess.run([binary], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    print(command, "->", done.stdout.strip())
    assert done.returncode == 0, f"{binary}: exit code {done.returncode}: {done.stderr}"
    assert done.stdout == prints.group(1) + "\n", f"{done.stdout!r}, but the document says {prints.group(1)!r}"
    assert done.stderr == "", done.stderr
