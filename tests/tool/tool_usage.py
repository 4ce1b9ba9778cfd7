"""The program as people use it: help, version, info, plain progress lines, the report, JSON alone on stdout."""
import json
import os
import pathlib
import pty
import subprocess
import sys
import tempfile

TOOL = sys.argv[1]
SMALL = ["--model", "mlp", "--train-size", "600", "--test-size", "200", "--epochs", "2", "--hidden", "16"]


def run(*options, code=0, **more):
    done = subprocess.run([TOOL, *options], capture_output=True, text=True, check=False, **more)
    assert done.returncode == code, f"{options}: exit code {done.returncode}, expected {code}: {done.stderr}"
    return done


def run_on_terminal(options, environment):
    """Runs with stdout on a pseudo-terminal and returns what would be drawn."""
    main_end, tool_end = pty.openpty()
    process = subprocess.Popen([TOOL, *options], stdout=tool_end, env={**os.environ, **environment})
    os.close(tool_end)
    drawn = b""
    while True:
        try:
            part = os.read(main_end, 65536)
        except OSError:
            break
        if not part:
            break
        drawn += part
    assert process.wait() == 0
    os.close(main_end)
    return drawn.decode()


for options in (["--help"], ["train", "--help"], ["predict", "--help"], ["info", "--help"], ["bench", "--help"], ["explain", "--help"]):
    text = run(*options).stdout
    assert "Usage: bnns" in text, text
help_text = run("train", "--help").stdout
for option in ("--model", "--epochs", "--batch", "--hidden", "--lr", "--seed", "--threads", "--data", "--train-size",
               "--test-size", "--schedule", "--patience", "--augment", "--test-share", "--size", "--target", "--generate", "--save", "--load", "--resume", "--report", "--no-report", "--json", "--quiet"):
    assert option in help_text, f"{option} is not in the help"
assert run("--version").stdout.startswith("bnns ")
assert run(code=2).stderr.count("\n") == 1

info = json.loads(run("info", "--json").stdout)
assert len(info["functions"]) == 97
assert "BNNSFilterCreateLayerFullyConnected" in [f["name"] for f in info["functions"]]
assert info["threads"] >= 1
text = run("info").stdout
assert info["version"] in text and info["best_isa"] in text
limited = json.loads(run("info", "--json", env={**os.environ, "BNNS_MAX_ISA": "sse4"}).stdout)
assert limited["best_isa"] == info["best_isa"], "a limit changes what the machine has"
assert 1 <= info["cores_allowed"] <= info["cores"] and (info["cores_quota"] is None or info["cores_quota"] > 0)
assert limited["settings"]["BNNS_MAX_ISA"] == "sse4"
odd = run("info", "--json", env={**os.environ, "BNNS_SKIP": "\udcff"}).stdout   # a byte that is not UTF-8
assert "BNNS_SKIP" in json.loads(odd)["settings"]
fixed = {**os.environ, "BNNS_NUM_THREADS": "1"}
fixed.pop("VECLIB_MAXIMUM_THREADS", None)
assert json.loads(run("info", "--json", env=fixed).stdout)["threads_from"] == "BNNS_NUM_THREADS"
assert "BNNS_NUM_THREADS=1" in run("info", env=fixed).stdout and "1, from BNNS_NUM_THREADS" in run("info", env=fixed).stdout

with tempfile.TemporaryDirectory() as folder:
    report = pathlib.Path(folder) / "report.html"
    done = run("train", *SMALL, "--report", str(report))
    lines = done.stdout.splitlines()
    assert done.stderr == "" and "\r" not in done.stdout and "\x1b" not in done.stdout, "not plain"
    assert sum(line.startswith("epoch") for line in lines) == 2, done.stdout
    assert all("digits/s" in line and "loss" in line for line in lines if line.startswith("epoch"))
    assert str(report) in lines[-1] and lines[-2].startswith("accuracy"), done.stdout
    html = report.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>") and html.rstrip().endswith("</html>") and "http" not in html

    done = run("train", *SMALL, "--json", "--report", str(report))
    figures = json.loads(done.stdout)
    assert {"model", "epochs", "train_loss", "test_accuracy", "seconds", "threads", "weights_sha256"} <= set(figures)
    speed = 2 * 600 / figures["seconds"]   # all time of an epoch counts
    assert abs(figures["digits_per_second"] / speed - 1) < 1e-6, (figures["digits_per_second"], speed)
    assert 0 <= figures["test_accuracy"] <= 1 and len(figures["weights_sha256"]) == 64
    assert "epoch 2/2" in done.stderr

    done = run("train", *SMALL, "--report", str(pathlib.Path(folder) / "absent" / "r.html"), code=2)
    assert done.stderr.count("\n") == 1 and "its folder does not exist" in done.stderr
    done = run("train", *SMALL, "--report", folder, code=2)
    assert "is a folder" in done.stderr

    try:
        for end in pty.openpty():
            os.close(end)
    except OSError as error:
        print(f"not checked: drawing on a terminal ({error})")
        sys.exit(0)
    coloured = {"TERM": "xterm", "NO_COLOR": "", "LC_ALL": "C.UTF-8"}
    drawn = run_on_terminal(["train", *SMALL, "--no-report"], coloured)
    assert "\r" in drawn and "\x1b[32m" in drawn and "\u2501" in drawn, drawn
    drawn = run_on_terminal(["train", *SMALL, "--no-report"], {**coloured, "NO_COLOR": "1"})
    assert "\x1b[K" in drawn and "\x1b[32m" not in drawn and "\x1b[90m" not in drawn, drawn
    drawn = run_on_terminal(["train", *SMALL, "--no-report"], {**coloured, "TERM": "dumb"})
    assert "\x1b" not in drawn, drawn
