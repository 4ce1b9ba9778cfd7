"""bnns train on a user's own data: folders of PNG files, CSV files and texts are learned, class names reach predict, the report and the
file, a run with schedule, patience and mirrored pictures resumes to the same bytes, any number of threads gives the same weights."""
import json
import math
import pathlib
import random
import signal
import subprocess
import tempfile

from tool_files import TOOL, header, png, run

NAMES = ["cross", "disc", "left bar"]


def shape(generator, name, rows, columns):
    """A bright shape somewhere near the middle, and noise."""
    y0, x0 = rows / 2 + generator.uniform(-1.5, 1.5), columns / 2 + generator.uniform(-1.5, 1.5)
    size = generator.uniform(3.5, 5)
    pixels = []
    for y in range(rows):
        for x in range(columns):
            dy, dx = y + 0.5 - y0, x + 0.5 - x0
            inside = {"cross": min(abs(dx), abs(dy)) < 1 and max(abs(dx), abs(dy)) < size,
                      "disc": math.hypot(dx, dy) < size, "left bar": -size < dx < 0 and abs(dy) < size}[name]
            pixels.append(generator.randrange(60) + (180 if inside else 0))
    return bytes(pixels)


def write_pictures(folder, count=40, seed=1, channels=1, rows=16, columns=14):
    generator = random.Random(seed)
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        for i in range(count):
            (folder / name / f"{i}.png").write_bytes(png(shape(generator, name, rows, columns), rows, columns, channels))
        (folder / name / ".hidden").write_bytes(b"no picture")
    return folder


def write_table(file, count=240, seed=1, separator=",", with_header=True, labels=True, target_at=3):
    """Three clouds on very different scales; a column that never changes."""
    generator = random.Random(seed)
    lines = []
    if with_header:
        lines.append(["width", "height", "constant"])
    for i in range(count):
        kind = i % 3
        lines.append([f"{1000 + 400 * math.cos(2.1 * kind) + generator.gauss(0, 90):.3f}",
                      f"{0.002 * math.sin(2.1 * kind) + generator.gauss(0, 0.0004):.6f}", "7"])
        if labels:
            lines[-1].insert(target_at, ["setosa", "versi\"color\"", "virginica, pale"][kind])
    if with_header and labels:
        lines[0].insert(target_at, "species")
    def quoted(field):
        return '"' + field.replace('"', '""') + '"' if '"' in field or separator in field else field
    file.write_text("\n".join(separator.join(map(quoted, line)) for line in lines) + "\n", encoding="utf-8")
    return file


def figures(*options, **more):
    return json.loads(run("train", *options, "--json", "--quiet", **more).stdout)


def pictures(root):
    data = write_pictures(root / "pictures")
    for model in ("cnn", "resnet", "mlp"):
        weights, report = root / f"{model}.safetensors", root / f"{model}.html"
        got = figures("--model", model, "--data", data, "--epochs", "12", "--batch", "16", "--save", weights, "--report", report)
        print(f"{model}: {got['test_accuracy']:.3f} on {got['test_digits']} held-out pictures after {got['seconds']:.1f} s")
        assert got["classes"] == NAMES and got["train_digits"] == 96 and got["test_digits"] == 24, got
        assert got["test_accuracy"] >= 0.95, f"{model}: {got['test_accuracy']}"
        metadata = header(weights)["__metadata__"]
        assert json.loads(metadata["classes"]) == NAMES and metadata["rows"] == "16" and metadata["columns"] == "14"
        html = report.read_text(encoding="utf-8")
        assert "left bar" in html and "Classifier of pictures" in html and "digit" not in html
        # A folder like that of the training: the accuracy.
        counted = run("predict", weights, data).stdout.splitlines()
        assert counted[1] == "pictures   pictures: 120, with labels" and len(counted) == 123, counted[:3]
        assert counted[2].startswith("cross/0.png  ") and counted[-1].startswith("accuracy   ") and counted[-1].endswith(" of 120)"), counted
        together = json.loads(run("predict", weights, data, "--json").stdout)
        assert together["accuracy"] >= 0.95 and together["pictures"][-1]["origin"] == "left bar/9.png", together["pictures"][-1]
        # Fresh pictures: names, in words and as JSON.
        fresh = write_pictures(root / f"fresh-{model}", count=8, seed=9)
        files = [file for name in NAMES for file in sorted((fresh / name).glob("*.png"))]
        said = json.loads(run("predict", weights, *files, "--json").stdout)
        right = sum(pathlib.Path(p["file"]).parent.name == p["name"] == NAMES[p["class"]] for p in said["pictures"])
        assert said["classes"] == NAMES and right >= 22, f"{right} of 24"
        line = run("predict", weights, files[-1]).stdout.splitlines()[1]
        assert line.startswith("7.png  left bar  "), line
    names = set(header(root / "resnet.safetensors")) - {"__metadata__"}
    assert {"conv1.weight", "bn1.running_var", "layer1.0.conv2.weight", "layer2.0.downsample.0.weight",
            "layer3.0.downsample.1.running_mean", "fc.bias"} < names and "layer1.0.downsample.0.weight" not in names
    # Colour, two parts, scaling; then predict scales too.
    colour = root / "colour"
    write_pictures(colour / "train", channels=3)
    write_pictures(colour / "test", count=10, seed=5, channels=3)
    weights = root / "colour.safetensors"
    got = figures("--data", colour, "--size", "12", "--epochs", "10", "--batch", "16", "--save", weights, "--report", root / "colour.html")
    assert got["train_digits"] == 120 and got["test_digits"] == 30 and got["test_accuracy"] >= 0.9, got
    assert header(weights)["conv1.weight"]["shape"] == [16, 3, 3, 3]
    large = root / "large.png"
    large.write_bytes(png(shape(random.Random(3), "disc", 16, 14), 16, 14))
    assert json.loads(run("predict", weights, large, "--json").stdout)["pictures"][0]["name"] == "disc"
    share = figures("--data", data, "--test-share", "0.5", "--epochs", "1", "--no-report")
    assert share["test_digits"] == 60 and share["train_digits"] == 60
    return data


def tables(root):
    weights, report = root / "table.safetensors", root / "table.html"
    table = write_table(root / "flowers.csv")
    got = figures("--data", table, "--save", weights, "--report", report)
    print(f"table: {got['test_accuracy']:.3f} on {got['test_digits']} held-out rows after {got['seconds']:.1f} s")
    names = ["setosa", "versi\"color\"", "virginica, pale"]
    assert got["model"] == "mlp" and got["classes"] == names and got["test_digits"] == 48
    assert got["test_accuracy"] >= 0.95, got["test_accuracy"]
    assert "Classifier of rows" in report.read_text(encoding="utf-8")
    # Other separators, no header, the class in another place: the same rows teach the same weights.
    for name, options, where in (("semicolons", {"separator": ";"}, []), ("tabs", {"separator": "\t"}, []),
                                 ("plain", {"with_header": False}, []),
                                 ("first", {"target_at": 0}, ["--target", "species"]),
                                 ("second", {"target_at": 1, "with_header": False}, ["--target", "2"])):
        other = figures("--data", write_table(root / f"{name}.csv", **options), *where, "--no-report")
        assert other["weights_sha256"] == got["weights_sha256"], name
    windows = root / "windows.csv"
    windows.write_bytes(b"\xef\xbb\xbf" + table.read_bytes().replace(b"\n", b"\r\n\r\n"))
    assert figures("--data", windows, "--no-report")["weights_sha256"] == got["weights_sha256"]
    # Rows with and without their class.
    fresh = write_table(root / "fresh.csv", count=60, seed=7)
    said = json.loads(run("predict", weights, fresh, "--json").stdout)
    assert said["accuracy"] >= 0.95 and said["classes"] == names
    bare = json.loads(run("predict", weights, write_table(root / "bare.csv", count=60, seed=7, labels=False), "--json").stdout)
    assert bare["accuracy"] is None
    assert [p["top"] for p in bare["pictures"]] == [p["top"] for p in said["pictures"]]
    lines = run("predict", weights, fresh).stdout.splitlines()
    assert lines[2].startswith("line 2   ") and lines[-2].startswith("line 61  "), lines   # as in the report
    assert lines[1] == "rows       fresh.csv: 60, with labels" and lines[-1].startswith("accuracy"), lines
    # Ended by Ctrl-C and resumed: the same bytes, though the scales are computed anew.
    whole, part = root / "whole-table", root / "part-table"
    command = ["train", "--data", root / "first.csv", "--target", "species", "--epochs", "150", "--hidden", "16", "--schedule",
               "cosine", "--no-report", "--json"]
    run(*command, "--save", whole)
    ended([*command, "--save", part], "epoch   2/150")
    run("train", "--save", part, "--resume", "--no-report", "--threads", "1")
    assert part.read_bytes() == whole.read_bytes(), "the file of a table differs"
    # Numbers as classes are in order of size.
    numbers = root / "numbers.csv"
    numbers.write_text("".join(f"{i % 7},{i % 3},{[2, 10, -1][i % 3]}\n" for i in range(60)), encoding="utf-8")
    assert figures("--data", numbers, "--no-report", "--epochs", "1")["classes"] == ["-1", "2", "10"]


def write_text(file, lines=300, seed=1):
    words = ["the", "quick", "brown", "fox", "jumps", "over", "häßliche", "dog", "and", "sleeps", "under", "blue", "sky"]
    generator = random.Random(seed)
    text = "\n".join(" ".join(generator.choice(words) for _ in range(9)) + "." for _ in range(lines))
    file.write_text(text, encoding="utf-8")
    return text


def texts(root):
    """The next character: words are learned, what is written is made of them; saved, loaded and resumed as other networks."""
    file, weights, report = root / "words.txt", root / "text.safetensors", root / "text.html"
    text = write_text(file)
    options = ["--data", file, "--batch", "16", "--epochs", "24", "--lr", "0.005", "--hidden", "64"]
    got = figures(*options, "--save", weights, "--generate", "300", "--report", report)
    print(f"text: {got['test_accuracy']:.3f} of the next characters after {got['seconds']:.1f} s: {got['generated'][:60]!r}")
    # Where a word begins, one of 13 has to be guessed: about four in five characters can be known.
    assert got["model"] == "lstm" and got["test_accuracy"] >= 0.7, got["test_accuracy"]
    assert len(got["generated"]) == 300 and {"space", "newline", "ä", "ß"} < set(got["classes"])
    made = got["generated"].replace("\n", " ").replace(".", "").split(" ")[1:-1]
    known = sum(word in text for word in made) / len(made)
    assert known >= 0.7, f"{known:.2f} of the words are words: {made}"
    assert "Classifier of characters" in report.read_text(encoding="utf-8")
    assert set(header(weights)) - {"__metadata__"} == {"lstm.weight_ih_l0", "lstm.weight_hh_l0", "lstm.bias_ih_l0", "lstm.bias_hh_l0",
                                                       "fc.weight", "fc.bias"}
    assert header(weights)["lstm.weight_hh_l0"]["shape"] == [256, 64]
    write_text(root / "other.txt", lines=40, seed=2)
    said = json.loads(run("predict", weights, root / "other.txt", "--generate", "50", "--json").stdout)
    assert said["accuracy"] >= 0.7 and len(said["texts"][0]["generated"]) == 50, said
    assert json.loads(run("predict", weights, root / "other.txt", "--generate", "50", "--json", "--threads", "1").stdout) == said
    (root / "start.txt").write_text("the q", encoding="utf-8")
    shown = run("predict", weights, root / "start.txt", "--generate", "10").stdout
    assert "5 characters" in shown and "\nuick" in shown and "accuracy" not in shown, shown
    # Resumed, on other numbers of threads: the same bytes.
    whole, part = root / "whole-text", root / "part-text"
    common = ["train", *options[:4], "--epochs", "9", "--hidden", "32", "--schedule", "cosine", "--patience", "7", "--generate", "40", "--no-report", "--json"]
    expected = json.loads(run(*common, "--save", whole, "--threads", "1").stdout)
    ended([*common, "--save", part, "--threads", "2"], "epoch 2/9")
    resumed_run = json.loads(run("train", "--save", part, "--resume", "--generate", "40", "--no-report", "--json", "--threads", "3").stdout)
    assert part.read_bytes() == whole.read_bytes() and resumed_run["generated"] == expected["generated"]
    # The second bias of a PyTorch file counts: moved there from the first, the network is the same.
    shift_bias(whole, part)
    first, second = (json.loads(run("predict", each, root / "other.txt", "--generate", "80", "--json").stdout) for each in (whole, part))
    assert first["texts"] == second["texts"] and first["accuracy"] == second["accuracy"]


def shift_bias(source, target):
    content = bytearray(source.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    places = [header(source)[name]["data_offsets"] for name in ("lstm.bias_ih_l0", "lstm.bias_hh_l0")]
    (a, b), (c, d) = [(start + begin, start + end) for begin, end in places]
    assert content[c:d] == bytes(d - c) != content[a:b]
    content[c:d], content[a:b] = content[a:b], bytes(b - a)
    target.write_bytes(content)


def ended(command, line):
    process = subprocess.Popen([TOOL, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while line not in (seen := process.stderr.readline()):
        assert seen, "the run ended by itself"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, (process.returncode, err)
    return json.loads(out)


def resumed(root, data):
    """Ended by Ctrl-C and resumed: the bytes of an uninterrupted run, with all that a run can have."""
    # So many epochs that the signal finds the run still under way on a fast machine.
    for schedule, model, epochs in (("cosine", "resnet", 20), ("step", "cnn", 40), ("constant", "mlp", 150)):
        whole, part = root / f"whole-{model}", root / f"part-{model}"
        options = ["train", "--data", data, "--model", model, "--epochs", epochs, "--batch", "16", "--schedule", schedule, "--augment", "mirror",
                   "--shift", "2", "--patience", epochs * 2 // 3, "--test-share", "0.3", "--size", "12", "--lr", "0.0005", "--no-report", "--json"]
        expected = json.loads(run(*options, "--save", whole, "--threads", "1").stdout)
        stopped = ended([*options, "--save", part, "--threads", "2"], f"epoch {2:{len(str(epochs))}}/{epochs}")
        assert stopped["interrupted"]
        found = header(part)
        assert "best.fc.bias" in found or "best.fc2.bias" in found, "the best weights are not in the file"
        again = ["train", "--save", part, "--resume", "--no-report", "--json"]
        got = json.loads(run(*again, "--threads", "3").stdout)
        for key in ("weights_sha256", "epoch_loss", "epoch_accuracy", "kept_epoch", "schedule", "classes"):
            assert got[key] == expected[key], f"{model}: {key} is {got[key]}, uninterrupted {expected[key]}"
        assert part.read_bytes() == whole.read_bytes(), f"{model}: the file differs"
        print(f"{model}, {schedule}: resumed after epoch {len(stopped['epoch_loss'])} of {len(got['epoch_loss'])}, the same bytes")


def early(root, data):
    weights = root / "early.safetensors"
    options = ["--data", data, "--model", "mlp", "--epochs", "500", "--batch", "16", "--patience", "4", "--no-report"]
    got = figures(*options, "--save", weights)
    epochs = got["epoch_accuracy"]
    assert len(epochs) == got["kept_epoch"] + 4 < 500, (len(epochs), got["kept_epoch"])
    assert got["test_accuracy"] == max(epochs) == epochs[got["kept_epoch"] - 1]
    # The weights are those of that epoch: a run that ends there has the same, where the rate does not depend on the end.
    steady = figures(*options, "--schedule", "constant")
    assert len(steady["epoch_accuracy"]) == steady["kept_epoch"] + 4
    short = ["--data", data, "--model", "mlp", "--batch", "16", "--no-report", "--schedule", "constant", "--epochs", steady["kept_epoch"]]
    assert steady["weights_sha256"] == figures(*short)["weights_sha256"]
    said = run("train", *options).stdout
    assert f"kept are the weights of epoch {got['kept_epoch']}, the best" in said, said
    names = [name for name in header(weights) if name.startswith(("best.", "optimizer."))]
    assert not names, names


def choices(data):
    """Each schedule and mirroring change the weights; threads do not."""
    options = ["--data", data, "--epochs", "2", "--batch", "16", "--no-report"]
    found = {}
    for name, more in (("linear", []), ("constant", ["--schedule", "constant"]), ("step", ["--schedule", "step"]),
                       ("cosine", ["--schedule", "cosine"]), ("none", ["--augment", "none"]), ("mirror", ["--augment", "mirror"])):
        found[name] = figures(*options, *more, "--threads", "1")["weights_sha256"]
        assert figures(*options, *more, "--threads", "3")["weights_sha256"] == found[name], name
    assert len(set(found.values())) == len(found), found
    assert figures(*options, "--shift", "0")["weights_sha256"] == found["none"]
    resnet = [figures(*options, "--model", "resnet", "--threads", str(n))["weights_sha256"] for n in (1, 2, 3)]
    assert len(set(resnet)) == 1, "the weights of the resnet depend on the number of threads"


with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary)
    tables(folder)
    texts(folder)
    write_pictures(folder / "probe", count=2)
    probed = subprocess.run([TOOL, "train", "--data", str(folder / "probe"), "--epochs", "1", "--no-report"], capture_output=True, text=True, check=False)
    if "built without libpng" in probed.stderr:
        print("pictures are not checked:", probed.stderr.strip())
    else:
        drawn = pictures(folder)
        choices(drawn)
        early(folder, drawn)
        resumed(folder, drawn)
