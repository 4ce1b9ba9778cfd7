"""The networks of bnns, computed once more in plain Python from the weights in their files: the same probabilities. So the names in
a file mean what PyTorch's and torchvision's mean."""
import json
import math
import pathlib
import random
import struct
import tempfile

from tool_files import SIDE, header, run, write_digits


def arrays(file):
    content = file.read_bytes()
    start = 8 + struct.unpack("<Q", content[:8])[0]
    found = {}
    for name, entry in header(file).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            found[name] = entry["shape"], struct.unpack(f"<{(end - begin) // 4}f", content[start + begin:start + end])
    return found


def softmax(z):
    e = [math.exp(v - max(z)) for v in z]
    return [v / sum(e) for v in e]


def full(w, name, x):
    (out, n), values = w[f"{name}.weight"]
    bias = w[f"{name}.bias"][1]
    assert n == len(x), name
    return [bias[o] + sum(values[o * n + i] * x[i] for i in range(n)) for o in range(out)]


def convolution_norm(w, conv, norm, x, stride, relu):
    """x: channels of rows. Padding keeps the size but for the stride."""
    (out, n, k, _), values = w[f"{conv}.weight"]
    gamma, beta, mean, variance = (w[f"{norm}.{part}"][1] for part in ("weight", "bias", "running_mean", "running_var"))
    rows, columns, pad, y = len(x[0]), len(x[0][0]), k // 2, []
    for o in range(out):
        scale = gamma[o] / math.sqrt(variance[o] + 1e-5)
        plane = []
        for r in range(0, rows, stride):
            line = []
            for c in range(0, columns, stride):
                total = 0
                for i in range(n):
                    for dy in range(k):
                        if not 0 <= r + dy - pad < rows:
                            continue
                        row, at = x[i][r + dy - pad], ((o * n + i) * k + dy) * k
                        for dx in range(k):
                            if 0 <= c + dx - pad < columns:
                                total += values[at + dx] * row[c + dx - pad]
                value = (total - mean[o]) * scale + beta[o]
                line.append(max(value, 0) if relu else value)
            plane.append(line)
        y.append(plane)
    return y


def resnet(w, x):
    y = convolution_norm(w, "conv1", "bn1", x, 1, True)
    for block, stride in ((1, 1), (2, 2), (3, 2)):
        name = f"layer{block}.0."
        f = convolution_norm(w, name + "conv1", name + "bn1", y, stride, True)
        f = convolution_norm(w, name + "conv2", name + "bn2", f, 1, False)
        g = convolution_norm(w, name + "downsample.0", name + "downsample.1", y, stride, False) if stride > 1 else y
        y = [[[max(a + b, 0) for a, b in zip(*rows)] for rows in zip(*planes)] for planes in zip(f, g)]
    return softmax(full(w, "fc", [sum(map(sum, plane)) / (len(plane) * len(plane[0])) for plane in y]))


def pooled(x):
    return [[[max(p[r][c], p[r][c + 1], p[r + 1][c], p[r + 1][c + 1]) for c in range(0, len(p[0]) - 1, 2)]
             for r in range(0, len(p) - 1, 2)] for p in x]


def cnn(w, x):
    for k in "12":
        x = pooled(convolution_norm(w, f"conv{k}", f"bn{k}", x, 1, True))
    return softmax(full(w, "fc", [v for plane in x for row in plane for v in row]))


def mlp(w, x):
    return softmax(full(w, "fc2", [max(v, 0) for v in full(w, "fc1", [v for row in x[0] for v in row])]))


def lstm_right(w, symbols, steps):
    """How many of the next characters come first, over windows that begin with zeros."""
    (gates, inputs), into = w["lstm.weight_ih_l0"]
    hidden, recurrent = gates // 4, w["lstm.weight_hh_l0"][1]
    bias = [a + b for a, b in zip(w["lstm.bias_ih_l0"][1], w["lstm.bias_hh_l0"][1])]
    sigmoid = lambda v: 1 / (1 + math.exp(-v))
    right = count = 0
    for begin in range(0, len(symbols) - steps, steps):
        h, c = [0.0] * hidden, [0.0] * hidden
        for t in range(begin, begin + steps):
            a = [bias[g] + into[g * inputs + symbols[t]] + sum(recurrent[g * hidden + j] * h[j] for j in range(hidden)) for g in range(gates)]
            c = [sigmoid(a[hidden + u]) * c[u] + sigmoid(a[u]) * math.tanh(a[2 * hidden + u]) for u in range(hidden)]
            h = [sigmoid(a[3 * hidden + u]) * math.tanh(c[u]) for u in range(hidden)]
            z = full(w, "fc", h)
            right += z.index(max(z)) == symbols[t + 1]
            count += 1
    return right, count


def pictures(root):
    data = write_digits(root / "digits")
    images = data / "t10k-images-idx3-ubyte"
    pixels = images.read_bytes()[16:]
    for model, forward in (("mlp", mlp), ("cnn", cnn), ("resnet", resnet)):
        file = root / f"{model}.safetensors"
        run("train", "--model", model, "--data", data, "--epochs", "3", "--no-report", "--quiet", "--save", file)
        w, worst = arrays(file), 0
        for each in json.loads(run("predict", file, images, "--json").stdout)["pictures"][:3]:
            at = each["index"] * SIDE * SIDE
            x = [[[pixels[at + r * SIDE + c] / 255 for c in range(SIDE)] for r in range(SIDE)]]
            expected = forward(w, x)
            worst = max([worst] + [abs(expected[top["class"]] - top["probability"]) for top in each["top"]])
        print(f"{model}: largest difference of a probability {worst:.1e}")
        assert worst < 1e-4, model


def text(root):
    generator = random.Random(1)
    file, fresh, weights = root / "text.txt", root / "fresh.txt", root / "lstm.safetensors"
    for each, words in ((file, 2000), (fresh, 60)):
        each.write_text(" ".join(generator.choice(["one", "three", "seven", "nineteen"]) for _ in range(words)), encoding="utf-8")
    run("train", "--data", file, "--hidden", "12", "--epochs", "20", "--batch", "8", "--no-report", "--quiet", "--save", weights)
    said = run("predict", weights, fresh).stdout.splitlines()[-1]
    metadata = header(weights)["__metadata__"]
    classes = [{"space": " "}.get(name, name) for name in json.loads(metadata["classes"])]
    right, count = lstm_right(arrays(weights), [classes.index(c) for c in fresh.read_text(encoding="utf-8")], int(metadata["columns"]))
    print(f"lstm: {right} of {count}; {said}")
    # Two characters that come out nearly equal may change places.
    told = int(said.split("(")[1].split(" ")[0].replace(",", ""))
    assert f"of {count})" in said and abs(told - right) <= 1 and right > count / 2, said


with tempfile.TemporaryDirectory() as temporary:
    pictures(pathlib.Path(temporary))
    text(pathlib.Path(temporary))
