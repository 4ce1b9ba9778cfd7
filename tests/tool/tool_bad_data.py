"""Damaged data and wrong options: exit code 2, exactly one line on stderr that says what is wrong, nothing on stdout."""
import gzip
import pathlib
import struct
import subprocess
import sys
import tempfile

TOOL = sys.argv[1]


def images(count, rows, columns, size):
    return struct.pack(">IIII", 0x803, count, rows, columns) + bytes(size)


def labels(count, value=0):
    return struct.pack(">II", 0x801, count) + bytes([value]) * count


def refused(expected, *options):
    run = subprocess.run([TOOL, "train", "--no-report", *options], capture_output=True, text=True, check=False)
    print(run.returncode, run.stderr.strip())
    assert run.returncode == 2, f"{options}: exit code {run.returncode}, expected 2"
    assert run.stdout == "", f"{options}: stdout {run.stdout!r}"
    assert run.stderr.endswith("\n") and run.stderr.count("\n") == 1, f"{options}: {run.stderr!r} is not one line"
    assert expected in run.stderr, f"{options}: {run.stderr!r} does not say {expected!r}"


with tempfile.TemporaryDirectory() as temporary:
    root = pathlib.Path(temporary)

    def folder(name, image_bytes, label_bytes, ending=""):
        path = root / name
        path.mkdir()
        (path / f"t10k-images-idx3-ubyte{ending}").write_bytes(image_bytes)
        (path / f"t10k-labels-idx1-ubyte{ending}").write_bytes(label_bytes)
        return str(path)

    good = images(10, 4, 4, 160)
    packed = gzip.compress(good)
    refused("no such folder", "--data", str(root / "absent"))
    (root / "empty").mkdir()
    refused("holds no IDX files", "--data", str(root / "empty"))
    refused("t10k-images-idx3-ubyte: header is 3 bytes", "--data", folder("header", good[:3], labels(10)))
    refused("data is 159 bytes, expected 160 = 10 x 4 x 4", "--data", folder("data", good[:-1], labels(10)))
    refused("magic number is 0x00000801", "--data", folder("magic", labels(10), labels(10)))
    refused("expected at most", "--data", folder("huge", images(2**32 - 1, 2**32 - 1, 2**32 - 1, 8), labels(10)))
    refused("at least 1", "--data", folder("zero", images(0, 4, 4, 0), labels(0)))
    refused("holds 9 labels, expected 10", "--data", folder("counts", good, labels(9)))
    refused("label 0 is 10, expected 0 to 9", "--data", folder("label", good, labels(10, 10)))
    refused("gzip data ends early", "--data", folder("cut", packed[:-9], gzip.compress(labels(10)), ".gz"))
    damaged = packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:]
    refused("damaged gzip data", "--data", folder("crc", damaged, gzip.compress(labels(10)), ".gz"))
    refused("", "--data", folder("new\nline", good[:-1], labels(10)))
    refused("--epochs", "--epochs", "0")
    refused("--batch", "--batch", "-1")
    refused("--lr", "--lr", "nan")
    refused("--model", "--model", "transformer")
    refused("--hidden is for --model mlp", "--model", "cnn", "--hidden", "64")
    refused("too small for the cnn", "--model", "cnn", "--data", folder("tiny", images(10, 3, 3, 90), labels(10)))
    refused("--train-size", "--train-size", "5")
    refused("--data", "--data", str(root / "empty"), "--train-size", "500")
    refused("--no-such-option", "--no-such-option")
