"""What is wrong with a user's pictures, tables and options for them: one line each that names the place and what to change."""
import json
import os
import pathlib
import struct
import subprocess
import tempfile

from tool_files import header, png, refused, run

GOOD = png(bytes(range(64)) , 8, 8)


def main(root):
    def train(*options):
        return ("train", "--no-report", "--epochs", "1", "--data", *options)

    def folder(name, **classes):
        for kind, files in classes.items():
            (root / name / kind).mkdir(parents=True)
            for i, content in enumerate(files):
                (root / name / kind / f"{i}.png").write_bytes(content)
        return root / name

    def table(name, text):
        (root / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return root / name

    pictures(root, train, folder)
    rows = "".join(f"{i},{i % 3 + 1},{'abc'[i % 3]}\n" for i in range(30))
    tables(root, train, table, rows)
    options(root, train, table("good.csv", rows))
    example(table, "".join(f"{i % 3 * 2},{i % 7},{i % 3}\n" for i in range(60)))
    texts(root, train, table)


def pictures(root, train, folder):
    refused("/b: holds no pictures: add PNG or JPEG files, or remove this class folder", *train(folder("empty", a=[GOOD], b=[])))
    refused("holds 1 class folder, expected two or more", *train(folder("single", a=[GOOD, GOOD])))
    refused("/empty/a/0.png: is one file of several, expected the folder that they lie in", *train(root / "empty" / "a" / "0.png"))
    refused("idx3-ubyte.gz: is one file of several", *train(write(root / "train-images-idx3-ubyte.gz", b"x")))
    deep = folder("deep", a=[GOOD], b=[GOOD])
    (deep / "b" / "more").mkdir()
    refused("/b/more: is a folder, expected PNG or JPEG files in each class folder", *train(deep))
    pipe = folder("pipe", a=[GOOD], b=[GOOD])
    os.mkfifo(pipe / "b" / "pipe.png")
    refused("/b/pipe.png: is no regular file", *train(pipe))
    probe = folder("probe", a=[GOOD, GOOD], b=[GOOD, GOOD])
    if "built without libpng" in run("train", "--no-report", "--epochs", "1", "--data", probe, code=None).stderr:
        print("PNG is not checked: bnns was built without libpng")
        return
    text = folder("text", a=[GOOD], b=[GOOD, b"no picture"])
    refused("/b/1.png: is neither PNG nor JPEG; expected pictures here, move it away", *train(text))
    jpeg = root / "jpeg.jpg"
    jpeg.write_bytes(b"\xff\xd8\xff\xe0\0\x10JFIF\0")
    (folder("jpeg", a=[GOOD], b=[GOOD]) / "b" / "x.jpg").write_bytes(jpeg.read_bytes())
    refused("/b/x.jpg: is ", *train(root / "jpeg"))  # no good JPEG file; or a JPEG file, and there is no libjpeg
    wide = png(bytes(80), 8, 10)
    refused("/b/0.png: is of 8 x 10 pixels, 0.png of 8 x 8: --size N scales all pictures to N x N", *train(folder("sizes", a=[GOOD], b=[wide])))
    run(*train(folder("scaled", a=[GOOD, wide], b=[wide, GOOD]), "--size", "8"))
    refused("/b/1.png: is no good PNG file: ", *train(folder("cut", a=[GOOD], b=[GOOD, GOOD[:60]])))
    huge = png(b"\0", 1, 1, claimed=(900000, 900000))
    refused("/a/0.png: is of 900000 x 900000 pixels, expected at most 4096 x 4096", *train(folder("huge", a=[huge], b=[GOOD]), "--size", "8"))
    refused("every class has one example, expected two or more", *train(folder("lonely", a=[GOOD], b=[GOOD])))
    tiny = png(bytes(9), 3, 3)
    refused("too small for the resnet", *train(folder("tiny", a=[tiny] * 3, b=[tiny] * 3), "--model", "resnet"))
    parts = folder("parts/train", a=[GOOD], b=[GOOD]).parent
    folder("parts/test", a=[GOOD], c=[GOOD])
    refused("/test: has other class folders than train beside it", *train(parts))
    refused("leave out --test-share", *train(parts, "--test-share", "0.3"))
    refused("--target is for a CSV file", *train(probe, "--target", "x"))
    # Names that would move the cursor, and a network of other classes.
    weights = root / "probe.safetensors"
    run(*train(folder("odd", **{"a\x1b[2J": [GOOD] * 3, "b": [GOOD] * 3}), "--save", weights))
    assert "\x1b" not in run("predict", weights, probe / "a" / "0.png").stdout
    refused("class 0 is a?[2J, expected a as in", *train(probe, "--load", weights))
    refused("has 2 classes, expected 3 as in", *train(folder("three", a=[GOOD] * 2, b=[GOOD] * 2, c=[GOOD] * 2), "--load", weights))
    refused("wide.png: is of 8 x 10 pixels, expected 8 x 8: scale it, or train with --size N", "predict", weights, write(root / "wide.png", wide))
    refused("/probe/a: is no class of the network, expected folders named a?[2J, b", "predict", weights, probe)
    refused("/parts/test: is no class of the network; if its sub-folders are, name it", "predict", weights, parts)
    refused("wide.png: is a PNG file, expected weights", "predict", root / "wide.png", probe / "a" / "0.png")
    refused("numbers.csv: is a CSV file; this network reads pictures", "predict", weights, write(root / "numbers.csv", b"1,2,a\n"))
    damaged(weights, probe / "a" / "0.png")


def write(file, content):
    file.write_bytes(content)
    return file


def damaged(weights, picture):
    """Metadata that does not fit the arrays."""
    content = weights.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    for key, value, expected in (("classes", "[1,2]", "classes is damaged"), ("classes", "[\"a\"]", "classes has 1 names, expected 2"),
                                 ("classes", "[" * 10000, "classes is damaged"), ("scale_mean", "[0.5]", "the table's columns is damaged"),
                                 ("scale_mean", "[\"x\"]", "scale_mean is damaged"), ("rows", "x", "rows is x")):
        head = header(weights)
        head["__metadata__"].update({key: value, "target_at": "0"})
        text = json.dumps(head).encode()
        refused(expected, "predict", write(weights.with_name("damaged"), struct.pack("<Q", len(text)) + text + content[8 + length:]), picture)


def tables(root, train, table, rows):
    refused(":7: has 2 fields, expected 3 as in the lines before", *train(table("fields.csv", rows[:36] + "1,a\n")))
    refused(":3: column 2 is x7, expected a number: change it, or remove the column", *train(table("letter.csv", "1,2,a\n3,4,b\n5,x7,a\n")))
    refused(":3: column 2 (high) is empty, expected a number: change it, or remove the row", *train(table("missing.csv", "wide,high,kind\n3,4,b\n5,,a\n")))
    words = "".join(f"{'abc'[i % 3]},{i},{i % 4}\n" for i in range(30))
    refused(":2: column 1 (kind) is a, expected a number: change it, or remove the column; or is it the class? --target kind",
            *train(table("first.csv", "kind,wide,high\n" + words)))
    run(*train(root / "first.csv", "--target", "kind"))
    refused(":1: column 1 is 7,06, expected a number: write 7.06", *train(table("point.csv", "7,06;1;a\n6,07;2;b\n")))
    refused(":2: column 1 is inf, expected a number", *train(table("inf.csv", "1,2,a\ninf,4,b\n")))
    refused(":2: column 1 is 1e99, expected a number", *train(table("large.csv", "1,2,a\n1e99,4,b\n")))
    refused(":2: column 3 is empty, expected a class", *train(table("class.csv", "1,2,a\n3,4,\n")))
    refused("column 3 has one class only (a), expected two or more", *train(table("one.csv", "1,2,a\n3,4,a\n")))
    refused("column 2 has 40 different values in 40 rows: bnns train learns classes, not measured numbers",
            *train(table("price.csv", "".join(f"{i},{i * 1.5}\n" for i in range(40)))))
    refused("column 2 has more than 1000 different values", *train(table("many.csv", "".join(f"{i},{i // 2}\n" for i in range(3000)))))
    refused("is empty, expected a CSV file", *train(table("nothing.csv", "")))
    refused("is empty, expected a CSV file", *train(table("blank.csv", "\n \n")))
    refused("has no rows below its header", *train(table("header.csv", "wide,kind\n")))
    refused(":1: has one field, expected numbers and a class", *train(table("narrow.csv", "7\n8\n")))
    refused(":2: a field begins with a quote that never ends", *train(table("quote.csv", "1,2,a\n3,4,\"b\n5,6,a\n")))
    refused(":1: a letter follows the quotes of a field", *train(table("after.csv", "1,2,\"a\"x\n")))
    refused(":4: has 1 field, expected 3", *train(table("lines.csv", "1,2,\"a\nb\"\n3,4,c\n5\n")))
    refused(":1: --target kind is no column, expected one of 0, 1, a, or a number from 1 to 3", *train(table("target.csv", rows), "--target", "kind"))
    refused("--target 4 is no column", *train(root / "target.csv", "--target", "4"))
    refused("is empty, expected a CSV file", *train(table("zero.csv.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0")))
    for name, content in (("binary.csv", bytes(range(256)) * 40), ("commas.csv", b"," * 5000), ("quotes.csv", b"\"" * 5001), ("nul.csv", b"1,2,a\n\0,3,b\n")):
        refused("", *train(table(name, content)))


def texts(root, train, table):
    refused("byte 5 is not UTF-8, expected a text", *train(table("latin.txt", b"abcd\xe4f" * 100)))
    refused("has 100 characters, 2 different, expected two or more and 65 in each part", *train(table("short.txt", "ab" * 50)))
    refused("1 different", *train(table("same.txt", "a" * 5000)))
    refused("has more than 256 different characters", *train(table("many.txt", "".join(chr(0x4e00 + i) for i in range(300)))))
    text = table("good.txt", "abc \n" * 200)
    weights = root / "text.safetensors"
    run(*train(text, "--save", weights, "--generate", "5"))
    refused("good.txt:1: has one field, expected numbers and a class", *train(text, "--model", "mlp"))
    refused("--shift is for pictures", *train(text, "--shift", "1"))
    refused("--target is for a CSV file", *train(text, "--target", "2"))
    refused("--model lstm is for text, expected --data FILE.txt", "train", "--model", "lstm")
    refused("--generate is for --model lstm", "train", "--generate", "5")
    refused(":2: the character d was not in the text of the training", "predict", weights, table("new.txt", "a\nd"))
    refused("is empty, expected a text", "predict", weights, table("none.txt", ""))
    refused("picture: is a PNG file; this network reads texts", "predict", weights, write(root / "picture", GOOD))
    refused("is no lstm, expected one for --generate", "predict", root / "table.safetensors", text, "--generate", "5")


def options(root, train, table):
    weights = root / "table.safetensors"
    run(*train(table, "--save", weights))
    refused("--model cnn is for pictures, expected mlp for rows of numbers", *train(table, "--model", "cnn"))
    refused("--augment is for pictures", *train(table, "--augment", "mirror"))
    refused("--shift is for pictures", *train(table, "--shift", "1"))
    refused("--size is for a folder of pictures", *train(table, "--size", "8"))
    refused("--augment none excludes --shift", *train(table, "--augment", "none", "--shift", "1"))
    refused("--target is empty", *train(table, "--target", ""))
    for option, value in (("--test-share", "0.2"), ("--size", "8"), ("--target", "x")):
        refused(f"{option} is for --data", "train", option, value)
    refused("--schedule: quadratic is not linear or constant or step or cosine", "train", "--schedule", "quadratic")
    refused("--test-share: 1 is not in the range", *train(table, "--test-share", "1"))
    refused("absent.csv: no such folder or file", *train(root / "absent.csv"))

    def predict(name, text):
        (root / name).write_text(text, encoding="utf-8")
        return "predict", weights, root / name
    refused("png: is a PNG file; this network reads rows of CSV files", "predict", weights, write(root / "picture.png", GOOD))
    refused("good.csv: is a CSV file, expected weights", "predict", table, table)
    refused("words: is a text, expected weights", "predict", write(root / "words", b"some words\n"), table)
    refused(":1: has 4 fields, expected 2, or 3 with the class", *predict("p.csv", "1,2,3,4\n"))
    refused(":2: d is no class of the network", *predict("p.csv", "1,2,a\n3,4,d\n"))
    refused(":2: column 1 is x, expected a number", *predict("p.csv", "1,2\nx,3\n"))
    refused("has no rows below its header", *predict("p.csv", "a,b\n"))
    refused("is a folder, expected CSV files", "predict", weights, root)
    refused("--invert is for pictures", "predict", weights, table, "--invert")
    named = root / "named.csv"
    named.write_text("wide,high,kind\n" + table.read_text(encoding="utf-8"), encoding="utf-8")
    run(*train(named, "--save", weights))
    refused(":1: column 1 (high) is not wide, expected the columns of the training", *predict("p.csv", "high,wide\n1,2\n"))


def example(table, rows):
    """The program of docs/guides/own-data.md: what it reads, and that a refusal names file and line."""
    kept = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}   # its arrays go with the process
    def ran(content):
        return subprocess.run([os.environ["OWN_DATA_EXAMPLE"], str(table("example.csv", content))], env=kept, capture_output=True, text=True, check=False)
    for content in (rows, rows.replace(",", ";"), "\ufeffwide,high,kind\r\n" + rows.replace("\n", "\r\n\r\n"), "\n" + rows + " \n"):
        done = ran(content)
        assert done.stdout == "60 rows, 2 columns, 3 classes\n12 of 12 unseen rows are right\n", (content[:30], done)
    assert ran(rows * 2000).stdout.startswith("120000 rows")
    for content, said in (("1,2,0\n1,2\n", ":2: all rows need as many columns"), ("1,2,0\n\n1,x,0\n", ":3: a field is not a number"),
                          ("7,06;2;0\n", ":1: a field is not a number such as 6.07"), ("1,,0\n", ":1: a field"), ("1,2,0.5\n", ":1: the last column"),
                          ("1,2,-1\n", ":1: the last column"), ("1,nan,0\n", ":1: a field"), (",".join("1" * 1026), ":1: more columns than"),
                          ("1" * (1 << 20), ":1: the line is too long"), ("1,2,0\n", ": 1 rows and 1 classes")):
        done = ran(content)
        assert done.returncode == 1 and "example.csv" + said in done.stderr and done.stdout == "", (content[:30], done)
    done = subprocess.run([os.environ["OWN_DATA_EXAMPLE"], "absent.csv"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr == "absent.csv: No such file or directory\n", done


with tempfile.TemporaryDirectory() as temporary:
    main(pathlib.Path(temporary))
