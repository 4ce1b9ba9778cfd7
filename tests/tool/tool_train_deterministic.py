"""A small training run gives the same weights with 1, 2 and 3 threads, a falling loss, and another seed other weights."""
import json
import subprocess
import sys

TOOL = sys.argv[1]


def train(*options):
    command = [TOOL, "train", "--train-size", "3000", "--test-size", "500", "--epochs", "3", "--batch", "50",
               "--hidden", "64", "--no-report", "--quiet", "--json", *options]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{command} exited with {run.returncode}: {run.stderr}"
    assert run.stderr == "", f"--quiet wrote to stderr: {run.stderr}"
    return json.loads(run.stdout)


runs = {threads: train("--threads", str(threads)) for threads in (1, 2, 3)}
for threads, figures in runs.items():
    print(threads, "threads:", figures["weights_sha256"], figures["epoch_loss"], figures["test_accuracy"])
    assert figures["threads"] == threads
    assert figures["model"] == "mlp" and figures["epochs"] == 3
    assert figures["weights_sha256"] == runs[1]["weights_sha256"], "the weights depend on the number of threads"
    assert figures["epoch_loss"] == runs[1]["epoch_loss"]
    losses = figures["epoch_loss"]
    assert losses[0] > losses[1] > losses[2] == figures["train_loss"], f"the loss does not fall: {losses}"
    assert figures["test_accuracy"] > 0.85, figures["test_accuracy"]  # chance is 0.10
    assert figures["seconds"] > 0

again = train("--threads", "2")
assert again["weights_sha256"] == runs[2]["weights_sha256"], "a repeated run differs"
other = train("--threads", "2", "--seed", "2")
assert other["weights_sha256"] != runs[2]["weights_sha256"], "the seed changes nothing"
