#!/usr/bin/env python3
"""The manual page of the tool, written from what it says of itself, so that the two cannot differ.

Usage: man_page.py TOOL OUTPUT   (OUTPUT ends in .gz: compressed, the same bytes each time)
"""
import gzip
import pathlib
import re
import subprocess
import sys


def said(*words):
    return subprocess.run([sys.argv[1], *words, "--help"], capture_output=True, text=True, check=True).stdout


def roff(text):
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"), flags=re.M)


def section(help_text):
    """The options of a command as a list, and what stands around them as paragraphs."""
    out = []
    for block in help_text.strip().split("\n\n"):
        lines = block.splitlines()
        if lines[0] in ("Options:", "Subcommands:"):
            lines = lines[1:]
        entries = [re.match(r"  (\S.*?)  +(\S.*)$", line) for line in lines]
        if all(entries):
            out += [f".TP\n.B {roff(entry.group(1))}\n{roff(entry.group(2))}" for entry in entries]
        else:
            out.append(".PP\n" + roff("\n".join(line for line in lines if not line.startswith("Usage:"))))
    return "\n".join(out)


def main():
    top = said()
    version = subprocess.run([sys.argv[1], "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    commands = re.findall(r"^  ([a-z]+)  ", top.split("Subcommands:")[1], re.M)
    text = [f'.TH BNNS 1 "" "OpenBNNS {version}" "User Commands"', ".SH NAME",
            "bnns \\- train and run small neural networks, measure and look at the OpenBNNS library", ".SH SYNOPSIS",
            "\n.br\n".join(f".B bnns {command}\n{roff(re.search(r'Usage: bnns [a-z]+ (.*)', said(command)).group(1))}" for command in commands),
            ".SH DESCRIPTION", "OpenBNNS is Apple's classic BNNS C interface on Linux: layers of neural networks that run forward and backward.",
            "This tool trains a classifier of digits, pictures, tables or texts with it, uses what was learnt, says what the library finds on this",
            "machine, how fast its operators are there, and what it would do with a layer."]
    for command in commands:
        text += [f".SH BNNS {command.upper()}", section(said(command))]
    text += [".SH FILES", ".TP\n.B bnns\\-report.html\nThe report of a training, one file that any browser opens.",
             ".TP\n.B *.safetensors\nWeights, which PyTorch reads too.", ".SH SEE ALSO",
             "The documents in /usr/share/doc/libbnns\\-doc, or docs/ of the sources.", ""]
    page = "\n".join(text).encode()
    output = pathlib.Path(sys.argv[2])
    output.write_bytes(gzip.compress(page, 9, mtime=0) if output.suffix == ".gz" else page)


if __name__ == "__main__":
    main()
