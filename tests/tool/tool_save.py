"""Saved weights: PyTorch's names and shapes; a run that was ended and resumed leaves the same file as one that was not;
what --save, --load and --resume refuse."""
import json
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile

from tool_files import TOOL, header, refused, run, write_digits

SHAPES = {
    "cnn": {"conv1.weight": [16, 1, 3, 3], "bn1.weight": [16], "bn1.bias": [16], "bn1.running_mean": [16],
            "bn1.running_var": [16], "conv2.weight": [32, 16, 3, 3], "bn2.weight": [32], "bn2.bias": [32],
            "bn2.running_mean": [32], "bn2.running_var": [32], "fc.weight": [10, 288], "fc.bias": [10]},
    "mlp": {"fc1.weight": [24, 144], "fc1.bias": [24], "fc2.weight": [10, 24], "fc2.bias": [10]},
}


def train(model, data, *options, **more):
    sizes = ["--hidden", "24"] if model == "mlp" else []
    return run("train", "--model", model, "--data", data, "--batch", "64", *sizes, "--no-report", "--json", *options, **more)


def ended(command, line, how):
    """Starts a run and ends it by a signal after this line."""
    process = subprocess.Popen([TOOL, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while line not in (seen := process.stderr.readline()):
        assert seen, "the run ended by itself"
    process.send_signal(how)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def names_and_shapes(folder, data):
    for model, shapes in SHAPES.items():
        file = folder / f"{model}.safetensors"
        figures = json.loads(train(model, data, "--epochs", "1", "--save", file).stdout)
        assert figures["saved"] == str(file)
        found = header(file)
        metadata = found.pop("__metadata__")
        assert {name: entry["shape"] for name, entry in found.items()} == shapes, found
        assert {entry["dtype"] for entry in found.values()} == {"F32"}
        assert metadata["model"] == model and metadata["format"] == "pt" and metadata["rows"] == "12", metadata
        assert list(folder.glob("*.tmp")) == []


def resumed_runs(folder, data):
    """Ended by Ctrl-C within an epoch, once and again with another number of threads, or killed: the same file in the end."""
    # Enough epochs that the signal finds the run still under way on a fast machine.
    for model, epochs in (("mlp", "150"), ("cnn", "12")):
        whole, part = folder / f"whole-{model}", folder / f"part-{model}"
        options = ["--epochs", epochs, "--save"]
        figures = json.loads(train(model, data, *options, whole, "--threads", "1").stdout)
        sizes = ["--hidden", "24"] if model == "mlp" else []
        command = ["train", "--model", model, "--data", data, "--batch", "64", *sizes, "--no-report", "--json", *options, part]
        width = len(epochs)
        code, out, err = ended(command, f"epoch {2:{width}}/{epochs}", signal.SIGINT)
        assert code == 130 and "--resume goes on from there" in err, (code, err)
        stopped = json.loads(out)
        assert stopped["interrupted"] and stopped["weights_sha256"] != figures["weights_sha256"]
        assert any(name.startswith("optimizer.exp_avg_sq.") for name in header(part)), "no state of the optimizer"
        assert set(SHAPES[model]) < set(header(part))

        again = ["train", "--save", part, "--resume", "--no-report", "--json"]
        killed = folder / "killed"
        shutil.copy(part, killed)
        after = len(stopped["epoch_loss"]) + 1
        code, _, _ = ended([*again, "--threads", "2"], f"epoch {after:{width}}/{epochs}", signal.SIGINT)
        assert code == 130, code
        resumed = json.loads(run(*again, "--threads", "3").stdout)
        for key in ("weights_sha256", "epoch_loss", "epoch_accuracy", "test_accuracy", "epochs", "seed"):
            assert resumed[key] == figures[key], f"{model}: {key} is {resumed[key]}, uninterrupted {figures[key]}"
        assert part.read_bytes() == whole.read_bytes(), f"{model}: the file differs"
        print(f"{model}: ended in epoch {after - 1} and later, resumed twice: the same {len(part.read_bytes())} bytes")

        part.write_bytes(killed.read_bytes())
        code, _, _ = ended([*again], f"epoch {after:{width}}/{epochs}", signal.SIGKILL)
        assert code == -signal.SIGKILL
        run(*again)
        assert part.read_bytes() == whole.read_bytes(), f"{model}: the file of a killed run differs"
        refused("the run is finished, there is nothing to resume", *again)


def loaded(folder, data):
    file = folder / "mlp.safetensors"
    first = json.loads(train("mlp", data, "--epochs", "1").stdout)
    on = json.loads(run("train", "--load", file, "--data", data, "--batch", "64", "--epochs", "1", "--no-report", "--json").stdout)
    assert on["model"] == "mlp" and on["train_loss"] < first["train_loss"], (on["train_loss"], first["train_loss"])


def refusals(folder, data):
    mlp, cnn = folder / "mlp.safetensors", folder / "cnn.safetensors"
    common = ["train", "--data", data, "--no-report"]
    refused("--resume is for --save FILE", *common, "--resume")
    refused("--resume excludes --load", *common, "--resume", "--load", mlp, "--save", mlp)
    refused("--save is empty", *common, "--save", "")
    refused("--load is empty", *common, "--load", "")
    refused("absent: cannot be opened: No such file", *common, "--load", folder / "absent")
    refused("absent: cannot be opened: No such file", *common, "--save", folder / "absent", "--resume")
    refused("its folder does not exist", *common, "--save", folder / "no" / "file")
    refused("is a folder", *common, "--save", folder)
    refused("/dev/null: is no regular file", *common, "--save", "/dev/null")
    refused("--model is cnn, expected mlp as in", *common, "--load", mlp, "--model", "cnn")
    refused("--hidden is 25, expected 24 as in", *common, "--load", mlp, "--hidden", "25")
    refused("--hidden is for --model mlp", *common, "--load", cnn, "--hidden", "25")
    refused("the run is finished", *common, "--save", mlp, "--resume")
    for damage, expected in ((lambda b: b[:-1], "data_offsets end at"), (lambda b: b + b"x", "expected"),
                             (lambda b: b[:5], "the file has 5 bytes"), (lambda b: b"", "the file has 0 bytes"),
                             (lambda b: b.replace(b"fc1.weight", b"fc9.weight"), "holds no network of bnns"),
                             (lambda b: b.replace(b"fc1.bias", b"fc1.bios"), "fc1.bias is not there"),
                             (lambda b: b.replace(b"\"F32\",\"shape\":[24,144]", b"\"I32\",\"shape\":[24,144]"), "data_type"),
                             (lambda b: b.replace(b"[24,144]", b"[144,24]"), "fc1.weight: the array is"),
                             (lambda b: b.replace(b"[24,144]", b"[24,145]"), "expected 13920 bytes between them")):
        (folder / "damaged").write_bytes(damage(mlp.read_bytes()))
        refused(expected, *common, "--load", folder / "damaged")

    # A run that is not finished, and options or digits that are not its own.
    part = folder / "unfinished"
    ended([*common, "--model", "mlp", "--hidden", "24", "--batch", "64", "--epochs", "10000", "--json", "--save", part],
          "epoch     2/", signal.SIGINT)
    resume = ["train", "--no-report", "--save", part, "--resume"]
    refused("--batch is 32, expected 64 as in", *resume, "--batch", "32")
    refused("--lr is 0.5, expected 0.002 as in", *resume, "--lr", "0.5")
    refused("--seed is 2, expected 1 as in", *resume, "--seed", "2")
    refused("--model is cnn, expected mlp as in", *resume, "--model", "cnn")
    refused("are not the digits that the run in", *resume, "--data", write_digits(folder / "other", seed=2))
    content = part.read_bytes()
    for old, new, expected in ((b'"epochs":"10000"', b'"epochs":"10001"', "epochs is 10001, expected 1 to 10000"),
                               (b'"lr":"0.002', b'"lr":"-.002', "lr is damaged"),
                               (b'"right":"', b'"right":"x', "right is x"),
                               (b'"steps":"', b'"steps":"9', "expected"),
                               (b"history.step_loss", b"history.step_last", "history.step_loss is not there")):
        length = len(new) - len(old)
        damaged = content.replace(old, new)
        damaged = (int.from_bytes(damaged[:8], "little") + length).to_bytes(8, "little") + damaged[8:]
        assert damaged != content
        (folder / "damaged").write_bytes(damaged)
        refused(expected, "train", "--no-report", "--save", folder / "damaged", "--resume")


def lost(folder, data):
    """A file that may not grow, as on a full disk: the figures stay, the old file too, and the exit code is 1."""
    file = folder / "full"
    file.write_bytes(b"old")
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    done = train("mlp", data, "--epochs", "2", "--save", file, code=1, preexec_fn=limit, restore_signals=False)
    assert "not saved  " in done.stderr and "full: could not be written: File too large" in done.stderr, done.stderr
    assert json.loads(done.stdout)["saved"] is None and file.read_bytes() == b"old"
    assert list(folder.glob("*.tmp")) == [], "a temporary file is left"


with tempfile.TemporaryDirectory() as temporary:
    root = pathlib.Path(temporary)
    digits = write_digits(root / "digits")
    names_and_shapes(root, digits)
    loaded(root, digits)
    refusals(root, digits)
    lost(root, digits)
    resumed_runs(root, digits)
