#!/usr/bin/env python3
"""libbnns_mpi on 1, 2, 4 and 8 ranks of this machine: sums to the bit, equal weights, ranks that disagree or die.

  mpi_test.py MPIEXEC WORKER EXAMPLE TOOL [--steps 100] [--faults 500]

Without options it takes seconds. --steps N: the LSTM example and `bnns train` take at least N steps, on each number of
ranks with one and two threads. --faults N: N runs with a rank that is killed at a random moment and N with a mismatch."""
import argparse
import hashlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mpi_launch import Launcher

ROOT = Path(__file__).resolve().parents[3]
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("mpiexec")
parser.add_argument("worker")
parser.add_argument("example")
parser.add_argument("tool")
parser.add_argument("--steps", type=int, default=0)
parser.add_argument("--faults", type=int, default=0)
parser.add_argument("--only", help="a part: sums, weights, tool, mismatches, faults")
options = parser.parse_args()
launcher = Launcher(options.mpiexec)
began = time.monotonic()
failures = []


def expect(good, what):
    if not good:
        failures.append(what)
        print(f"FAILED: {what}", flush=True)


def part(name):
    print(f"{launcher.name} {name} (at {time.monotonic() - began:.1f} s)", flush=True)


def every_rank_is_ok(output, ranks, mode):
    return "WRONG" not in output and all(f"rank {r}: ok {mode}" in output for r in range(ranks))


def sums():
    """Each rank compares every bit with the tree written down, so all numbers of ranks agree with each other."""
    for ranks in (1, 2, 4, 8) if options.steps else (2, 8):
        code, output = launcher.run(ranks, [options.worker, "all"])
        expect(code == 0 and every_rank_is_ok(output, ranks, "all"), f"sums on {ranks} ranks: {output}")
    code, output = launcher.run(3, [options.worker, "fast"])  # fast mode takes any number
    expect(code == 0 and every_rank_is_ok(output, 3, "fast"), f"fast mode on 3 ranks: {output}")
    code, output = launcher.run(3, [options.example, str(ROOT / "README.md"), "--steps", "1"], BNNS_VERBOSE="")
    expect(code != 0 and "8 shards are not a multiple of 3 ranks" in output, f"3 ranks and 8 shards: {output}")


def weights():
    """Equal SHA-256 of the weights for any number of ranks and threads, and of a process without mpirun."""
    steps = options.steps or 2
    configurations = [(r, t) for r in (1, 2, 4, 8) for t in (1, 2)] if options.steps else [(1, 1), (2, 2), (4, 1)]
    with tempfile.TemporaryDirectory() as folder:
        digests = {}
        for ranks, threads in configurations:
            file = f"{folder}/{ranks}_{threads}.safetensors"
            code, output = launcher.run(ranks, [options.example, str(ROOT / "LICENSE"), "--steps", str(steps),
                                                "--save", file], threads=threads, timeout=600)
            expect(code == 0 and os.path.exists(file), f"the LSTM on {ranks} ranks: {output}")
            if os.path.exists(file):
                digests.setdefault(hashlib.sha256(Path(file).read_bytes()).hexdigest(), []).append((ranks, threads))
        print(f"  LSTM, {steps} steps: {digests}")
        expect(len(digests) == 1, f"weights of the LSTM differ: {digests}")


def train(ranks, threads, epochs, *more):
    """`bnns train` on drawn digits, 4 steps in an epoch: exit code, the SHA-256 of the weights (or None), output."""
    command = [options.tool, "train", "--train-size", "256", "--test-size", "50", "--epochs", str(epochs), "--no-report", "--json",
               "--quiet", *more]
    code, output = launcher.run(ranks, command, threads=threads, timeout=600)
    found = re.search(r'"weights_sha256": "(\w+)"', output)
    return code, found and found[1], output


def tool():
    """`mpirun bnns train`: equal weights, and a run that was stopped in one process goes on in several."""
    epochs = -(-options.steps // 4) or 2
    configurations = [(r, t) for r in (1, 2, 4, 8) for t in (1, 2)] if options.steps else [(1, 2), (4, 1)]
    digests = {}
    for ranks, threads in configurations:
        code, digest, output = train(ranks, threads, epochs)
        expect(code == 0 and digest, f"bnns train on {ranks} ranks: {output}")
        digests.setdefault(digest, []).append((ranks, threads))
    print(f"  digits, {4 * epochs} steps: {digests}")
    expect(len(digests) == 1, f"weights of the digits differ: {digests}")

    rows()
    code, _, output = train(2, 1, 1, "--batch", "100")
    expect(code != 0 and "--batch is 100, expected a multiple of 8 = shards" in output, f"a batch of 100: {output}")
    with tempfile.TemporaryDirectory() as folder:
        # As if by mpirun -n 1: a group of one rank, told to stop after its first epoch.
        file = f"{folder}/run.safetensors"
        alone = subprocess.Popen([options.tool, "train", "--train-size", "256", "--test-size", "50", "--epochs", "16", "--no-report",
                                  "--save", file, "--shards", "8"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = ""
        for line in alone.stdout:
            said += line
            if line.startswith("epoch"):
                alone.send_signal(signal.SIGINT)
                break
        said += alone.communicate(timeout=120)[0]
        expect(alone.returncode == 130, f"the run that was stopped: {said}")
        code, resumed, output = train(2, 1, 16, "--save", file, "--resume")
        expect(code == 0, f"--resume on 2 ranks: {output}")
    expect(resumed == train(4, 1, 16)[1], "a run that was resumed on 2 ranks has other weights")


def rows():
    """A table of the user's own, with patience and a schedule."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        table.write_text("".join(f"{i % 3 + i % 11 / 20},{i % 7},{'abc'[i % 3]}\n" for i in range(240)), encoding="utf-8")
        found = {}
        for ranks in (1, 4):
            file = Path(folder) / f"{ranks}.safetensors"
            code, output = launcher.run(ranks, [options.tool, "train", "--data", str(table), "--epochs", "12", "--patience", "3", "--schedule",
                                                "cosine", "--no-report", "--quiet", "--save", str(file), "--shards", "8"], timeout=600)
            expect(code == 0 and file.exists(), f"a table on {ranks} ranks: {output}")
            found[ranks] = file.read_bytes() if file.exists() else ranks
        expect(found[1] == found[4], "the files of a table on 1 and 4 ranks differ")


def mismatches():
    """Ranks that disagree: `named` is checked by the worker on every rank. Once with MPI that allows no threads."""
    runs = options.faults or 8
    for ranks, seed, count in ((4, 1, runs), (2, -7, min(runs, 8))):
        code, output = launcher.run(ranks, [options.worker, "mismatch", str(seed), str(count)], timeout=60 + 5 * count, survive=True)
        expect(every_rank_is_ok(output, ranks, "mismatch"), f"mismatches on {ranks} ranks: {output}")
        for line in output.splitlines() if not options.faults else []:
            if line.startswith("mismatch"):
                print(f"  {line}")


def fault_run(what, ranks, victim, milliseconds, limit):
    """One run with a rank that fails; what each rank wrote. A stopped rank is ended when the others have."""
    with tempfile.TemporaryDirectory() as folder:
        command = [options.worker, what, str(victim), str(milliseconds), str(limit)]
        run = launcher.start(ranks, command, MPI_WORKER_OUTPUT=folder)
        files = [Path(folder, f"rank{r}") for r in range(ranks)]
        said = [""] * ranks
        deadline = time.monotonic() + 40
        while time.monotonic() < deadline:
            said = [file.read_text(errors="replace") if file.exists() else "" for file in files]
            if all(f"ok {what}" in text or "WRONG" in text for r, text in enumerate(said)
                   if r != victim or what == "busy"):
                break
            if run.poll() is not None and what != "kill":
                break
            time.sleep(0.05)
        stopped = re.search(r"^pid (\d+)$", said[victim], re.M)
        if what == "stop" and stopped:
            os.kill(int(stopped[1]), signal.SIGKILL)
        try:
            launched = run.communicate(timeout=30)[0]
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            launched = "mpiexec did not end"
        return said, launched


def faults():
    """A rank that dies at a random moment, or is busy for too long: every other rank names it within the timeout. OpenMPI's
    launcher leaves the others alone when a rank is killed; MPICH's ends them, so there the rank is stopped, as a host that
    hangs."""
    draw = random.Random(5)
    dead = "kill" if launcher.is_open_mpi else "stop"
    runs = [(dead, 4), ("busy", 2)] if not options.faults else [(dead, (2, 4)[i % 2]) for i in range(options.faults)]
    limit, longest = 2, 0
    for number, (what, ranks) in enumerate(runs):
        victim, milliseconds = draw.randrange(ranks), draw.randrange(400 if options.faults else 100)
        said, launched = fault_run(what, ranks, victim, milliseconds, limit)
        good = all(f"ok {what}" in text for r, text in enumerate(said) if r != victim or what == "busy") and \
            "WRONG" not in "".join(said)
        expect(good, f"run {number}: {what} rank {victim} of {ranks} after {milliseconds} ms: {said} {launched}")
        waits = [float(w) for w in re.findall(r"steps and ([0-9.]+) s", "".join(said))]
        longest = max([longest, *waits])
        if not options.faults:
            print("  " + "  ".join("".join(said).splitlines(True)), end="")
    print(f"  {len(runs)} runs, the longest wait {longest:.2f} s of {limit} s")


for each in (sums, weights, tool, mismatches, faults):
    if options.only in (None, each.__name__):
        part(each.__name__)
        each()
part("done")
sys.exit(1 if failures else 0)
