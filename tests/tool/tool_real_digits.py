"""Real handwritten digits (MNIST's t10k pair, split 80 : 20): the perceptron recognises at least 96 % of the last 2,000,
the convolutional network 98.5 %.

The files are not part of the repository. They are looked for in the folder that BNNS_MNIST names, then in
../shared/data/mnist-t10k beside the source folder; where neither is there the test is skipped.
"""
import json
import os
import pathlib
import subprocess
import sys

SKIPPED = 77
TOOL = sys.argv[1]
beside = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data" / "mnist-t10k"
folder = pathlib.Path(os.environ.get("BNNS_MNIST") or beside)
if not folder.is_dir():
    print(f"skipped: no digits at {folder}; set BNNS_MNIST to a folder with MNIST's IDX files")
    sys.exit(SKIPPED)

for model, least, most_seconds in (("mlp", 0.96, 120), ("cnn", 0.985, 180)):
    run = subprocess.run([TOOL, "train", "--model", model, "--data", str(folder), "--no-report", "--quiet", "--json"],
                         capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    figures = json.loads(run.stdout)
    print(f"{model}: {figures['train_digits']} digits, {figures['seconds']:.1f} s: accuracy {figures['test_accuracy']:.4f}")
    assert figures["test_accuracy"] >= least, figures["test_accuracy"]
    assert figures["seconds"] < most_seconds, figures["seconds"]
