"""What the tests of saved weights share: digits as IDX files, PNG files, the header of a safetensors file, runs of the tool."""
import json
import os
import random
import struct
import subprocess
import sys
import zlib

TOOL = os.path.abspath(sys.argv[1])
SIDE = 12


def run(*options, code=0, **more):
    done = subprocess.run([TOOL, *map(str, options)], capture_output=True, text=True, check=False, timeout=250, **more)
    assert code is None or done.returncode == code, f"{options}: exit code {done.returncode}, expected {code}: {done.stderr}"
    return done


def refused(expected, *options):
    done = run(*options, code=2)
    print(done.stderr.strip())
    assert done.stdout == "", f"{options}: stdout {done.stdout!r}"
    assert done.stderr.endswith("\n") and done.stderr.count("\n") == 1, f"{options}: {done.stderr!r} is not one line"
    assert expected in done.stderr, f"{options}: {done.stderr!r} does not say {expected!r}"


def picture(generator, digit, side=SIDE):
    """A bright row and a bright column whose places tell the digit, and noise."""
    rows = [[generator.randrange(60) for _ in range(side)] for _ in range(side)]
    for i in range(side):
        rows[1 + digit % 5 * 2][i] = 200
        rows[i][3 + digit // 5 * 5] = 220
    return bytes(value for row in rows for value in row)


def write_digits(folder, seed=1, counts=(("train", 300), ("t10k", 100))):
    folder.mkdir(exist_ok=True)
    generator = random.Random(seed)
    for name, count in counts:
        labels = bytes(generator.randrange(10) for _ in range(count))
        pixels = b"".join(picture(generator, label) for label in labels)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, count, SIDE, SIDE) + pixels)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)
    return folder


def png(pixels, rows, columns, channels=1, claimed=None):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    pixels = bytes(value for value in pixels for _ in range(channels))
    lines = b"".join(b"\0" + pixels[y * columns * channels:(y + 1) * columns * channels] for y in range(rows))
    header = struct.pack(">IIBBBBB", *(claimed or (columns, rows)), 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def header(file):
    content = file.read_bytes()
    return json.loads(content[8:8 + struct.unpack("<Q", content[:8])[0]])
