"""bnns predict: IDX and PNG pictures, with and without labels; the accuracy is that of the training's last line; refusals;
lines that fit 40 columns."""
import fcntl
import gzip
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import tempfile
import termios

from tool_files import SIDE, TOOL, png, refused, run, write_digits


def on_terminal(options, columns):
    main_end, tool_end = pty.openpty()
    fcntl.ioctl(tool_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([TOOL, *map(str, options)], stdout=tool_end, stderr=tool_end)
    os.close(tool_end)
    drawn = b""
    while True:
        try:
            part = os.read(main_end, 65536)
        except OSError:
            break
        drawn += part
    os.close(main_end)
    process.wait()
    return drawn.decode().replace("\r\n", "\n").split("\n")


with tempfile.TemporaryDirectory() as temporary:
    root = pathlib.Path(temporary)
    data = write_digits(root / "digits")
    images, labels = data / "t10k-images-idx3-ubyte", data / "t10k-labels-idx1-ubyte"
    pixels = images.read_bytes()[16:]
    for model in ("mlp", "cnn"):
        weights = root / f"{model}.safetensors"
        trained = json.loads(run("train", "--model", model, "--data", data, "--epochs", "4", "--no-report", "--json", "--quiet",
                                 "--save", weights).stdout)
        out = run("predict", weights, images).stdout
        lines = out.splitlines()
        assert lines[0].startswith(f"network    {model} ") and "100, with labels" in lines[1], lines[:2]
        assert len(lines) == 103 and lines[-1].startswith("accuracy   "), lines[-1]
        found = json.loads(run("predict", weights, images, "--json", "--threads", "1").stdout)
        assert found["accuracy"] == trained["test_accuracy"], (found["accuracy"], trained["test_accuracy"])
        assert run("predict", "--quiet", weights, images).stdout == lines[-1] + "\n"
        truth = labels.read_bytes()[8:]
        right = 0
        for i, each in enumerate(found["pictures"]):
            assert each["index"] == i and each["label"] == truth[i]
            tops = [top["probability"] for top in each["top"]]
            assert tops == sorted(tops, reverse=True) and len(tops) == 3 and 0 < sum(tops) <= 1.0001
            right += each["class"] == truth[i]
            words = re.fullmatch(r" *(\d+)((?:  \d +[\d.]+ %){3})(?:  is (\d))?", lines[2 + i])
            assert words and int(words[1]) == i and words[2].split()[0] == str(each["class"]), lines[2 + i]
            assert words[3] == (None if each["class"] == truth[i] else str(truth[i])), lines[2 + i]
        assert right / 100 == found["accuracy"]

        # The same picture from anywhere: gzip, no labels, PNG, grey as three colours, dark on light.
        packed, alone = root / "t10k-images-idx3-ubyte.gz", root / "alone"
        packed.write_bytes(gzip.compress(images.read_bytes()))
        alone.write_bytes(images.read_bytes())
        for file in (packed, alone):
            each = json.loads(run("predict", weights, file, "--json").stdout)
            assert each["accuracy"] is None
            assert [p["top"] for p in each["pictures"]] == [p["top"] for p in found["pictures"]]
        first = pixels[:SIDE * SIDE]
        forms = {"grey.png": (png(first, SIDE, SIDE), []), "colour.png": (png(first, SIDE, SIDE, 3), []),
                 "dark.png": (png(bytes(255 - p for p in first), SIDE, SIDE), ["--invert"])}
        for name, (content, options) in forms.items():
            (root / name).write_bytes(content)
        said = subprocess.run([TOOL, "predict", str(weights), str(root / "grey.png")], capture_output=True, text=True, check=False)
        without_png = "was built without libpng" in said.stderr
        if without_png:
            print("PNG is not checked:", said.stderr.strip())
            assert said.returncode == 2
        for name, (_, options) in {} if without_png else forms.items():
            each = json.loads(run("predict", *options, weights, root / name, "--json").stdout)
            top = each["pictures"][0]["top"]
            # A batch of one may take another algorithm, and libpng rounds when it makes grey of colours.
            for a, b in zip(top, found["pictures"][0]["top"]):
                assert a["class"] == b["class"] and abs(a["probability"] - b["probability"]) < 1e-3, (name, a, b)
            line = run("predict", *options, weights, root / name).stdout.splitlines()[1]
            assert line.startswith(name), line
        two = run("predict", weights, images, root / "alone", "--quiet").stdout
        assert two.startswith("accuracy") and "of 100)" in two, two
        quiet = run("predict", weights, alone, "--quiet").stdout.splitlines()   # without labels, the classes
        assert quiet == [f"{i}  {each['name']}" for i, each in enumerate(found["pictures"])], quiet[:3]

    refused("WEIGHTS is missing", "predict")
    refused("FILES is missing", "predict", weights)
    refused("did you mean --quiet?", "predict", weights, images, "--quite")
    refused("absent: cannot be opened", "predict", root / "absent", images)
    refused("absent: cannot be read", "predict", weights, root / "absent")
    refused("is a folder, expected PNG files, JPEG files", "predict", weights, data)
    (root / "none").write_bytes((2).to_bytes(8, "little") + b"{}")
    refused("holds no network of bnns", "predict", root / "none", images)
    (root / "text").write_text("no picture", encoding="utf-8")
    refused("text: is a text; this network reads pictures", "predict", weights, root / "text")
    (root / "wide").write_bytes(struct.pack(">IIII", 0x803, 1, SIDE, SIDE + 1) + bytes(SIDE * (SIDE + 1)))
    refused("pictures are of 12 x 13 pixels, expected 12 x 12", "predict", weights, root / "wide")
    content = weights.read_bytes()
    assert b'"rows":"12"' in content
    silent = root / "silent"  # a file of another program does not say how large its pictures are
    silent.write_bytes(content.replace(b'"rows":"12"', b'"rrrr":"12"'))
    assert run("predict", silent, images, "--quiet").stdout == run("predict", weights, images, "--quiet").stdout
    large = root / "large"
    large.write_bytes(struct.pack(">IIII", 0x803, 1, 2000, 2000) + bytes(4000000))
    refused("fc.weight has 288 columns, expected 8000000 for pictures of 2000 x 2000 pixels", "predict", silent, large)
    if not without_png:
        (root / "wide.png").write_bytes(png(bytes(SIDE * SIDE * 4), SIDE * 2, SIDE * 2))
        refused("wide.png: is of 24 x 24 pixels, expected 12 x 12", "predict", weights, root / "wide.png")
        (root / "huge.png").write_bytes(png(b"\0", 1, 1, claimed=(900000, 900000)))
        refused("huge.png: is of 900000 x 900000 pixels, expected at most 4096 x 4096", "predict", silent, root / "huge.png")
        good = png(pixels[:SIDE * SIDE], SIDE, SIDE)
        for at in (20, 30, len(good) // 2, len(good) - 20):
            (root / "cut.png").write_bytes(good[:at])
            refused("cut.png: ", "predict", weights, root / "cut.png")

    try:
        for end in pty.openpty():
            os.close(end)
        for columns in (40, 60, 80):
            for options in (["predict", "--help"], ["predict", weights.name, data.name + "/t10k-images-idx3-ubyte"], ["predict", "x", "y"]):
                os.chdir(root)
                for line in on_terminal(options, columns):
                    assert len(line) <= columns, f"{len(line)} characters on a terminal of {columns}: {line!r}"
    except OSError as error:
        print(f"not checked: terminals ({error})")
