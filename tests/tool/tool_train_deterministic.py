"""A small training run of each network gives the same weights with 1, 2 and 3 threads, a falling loss, and another seed other weights."""
import json
import subprocess
import sys

TOOL = sys.argv[1]


def train(model, *options):
    sizes = ["--train-size", "3000", "--hidden", "64"] if model == "mlp" else ["--train-size", "2000"]
    command = [TOOL, "train", "--model", model, "--test-size", "500", "--batch", "50", "--epochs", "3", *sizes, "--no-report",
               "--quiet", "--json", *options]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{command} exited with {run.returncode}: {run.stderr}"
    assert run.stderr == "", f"--quiet wrote to stderr: {run.stderr}"
    return json.loads(run.stdout)


for model in ("mlp", "cnn"):
    runs = {threads: train(model, "--threads", str(threads)) for threads in (1, 2, 3)}
    for threads, figures in runs.items():
        print(model, threads, "threads:", figures["weights_sha256"], figures["epoch_loss"], figures["test_accuracy"])
        assert figures["threads"] == threads
        assert figures["model"] == model
        assert figures["weights_sha256"] == runs[1]["weights_sha256"], "the weights depend on the number of threads"
        assert figures["epoch_loss"] == runs[1]["epoch_loss"]
        losses = figures["epoch_loss"]
        assert len(losses) == figures["epochs"] and losses[-1] == figures["train_loss"]
        assert all(a > b for a, b in zip(losses, losses[1:])), f"the loss does not fall: {losses}"
        assert figures["test_accuracy"] > 0.85, figures["test_accuracy"]  # chance is 0.10
        assert figures["seconds"] > 0
    again = train(model, "--threads", "2")
    assert again["weights_sha256"] == runs[2]["weights_sha256"], "a repeated run differs"
    other = train(model, "--threads", "2", "--seed", "2")
    assert other["weights_sha256"] != runs[2]["weights_sha256"], "the seed changes nothing"
