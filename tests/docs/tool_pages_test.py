"""The manual page has every command and option that the tool names, and bash completes them.

Usage: tool_pages_test.py TOOL
"""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
tool = os.path.abspath(sys.argv[1])
faults = []


def said(*words):
    return subprocess.run([tool, *words, "--help"], capture_output=True, text=True, check=True).stdout


def completed(*words):
    """What bash offers for the last of the words."""
    line = 'source "$0"; tool=$1; shift; COMP_WORDS=("$tool" "$@"); COMP_CWORD=$#; _bnns; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", line, ROOT / "packaging/completions/bnns.bash", tool, *words], capture_output=True, text=True,
                          check=True)
    return set(done.stdout.split())


commands = re.findall(r"^  ([a-z]+)  ", said().split("Subcommands:")[1], re.M)
assert len(commands) >= 3, commands
with tempfile.TemporaryDirectory() as folder:
    page = pathlib.Path(folder) / "bnns.1.gz"
    subprocess.run([sys.executable, "-B", ROOT / "packaging/man_page.py", tool, page], check=True)
    text = gzip.decompress(page.read_bytes()).decode().replace("\\-", "-")
    if shutil.which("man"):
        shown = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, check=False,
                               env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "100"})
        if shown.stderr.strip():
            faults.append(f"man: {shown.stderr.strip()[:300]}")
if completed("") - {"--help", "--version"} != set(commands):
    faults.append(f"completion offers {completed('')}, the tool has {commands}")
count = 0
for command in commands:
    options = set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", said(command), re.M))
    count += len(options)
    faults += [f"the manual page lacks {option} of bnns {command}" for option in options if option not in text]
    if completed(command, "--") != options:
        faults.append(f"completion of bnns {command} offers {sorted(completed(command, '--'))}, expected {sorted(options)}")
print(f"{len(commands)} commands, {count} options")
sys.exit("\n".join(faults) if faults else 0)
