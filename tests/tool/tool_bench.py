"""bnns bench: every family runs and says which algorithm did, a line that the library prints is timed again as the same
problem, figures are JSON, and what is misspelt gets one line."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tool_files import TOOL, refused, run  # noqa: E402

SHORT = ("--seconds", "1e-6", "--threads", "2")
NOT_READ = {"copy", "embedding", "gather", "gram", "padding", "resize", "tile", "topk", "optimizer"}   # their lines lack what a row needs


def results(*options):
    return json.loads(run("bench", *SHORT, "--json", "-", *options).stdout)["results"]


everything = results()
families = re.search(r"\((.*?)\)", run("bench", "nofamily", code=2).stderr).group(1).split(", ")
assert len(families) >= 15, families
for family in ("pooling", "loss"):
    assert [r["case"] for r in results(family)] == [r["case"] for r in everything if r["case"].split()[0] in ("pool", "loss") and
                                                    r["case"][:4] == family[:4]], family
again, seen = 0, set()
for row in everything:
    assert row["ms"] > 0 and row["samples"] >= 5 and row["gbytes"] > 0 and row["threads"] in (1, 2), row
    assert (row["gflops"] is None) == (row["problem"].split()[0] not in ("convolution", "fully_connected", "matmul", "attention",
                                                                        "lstm", "gram")), row
    operator = row["problem"].split()[0]
    assert row["implementation"], row
    kind = (operator, row["pass"], row["problem"].split()[1])
    if kind in seen:
        continue
    seen.add(kind)
    action = "backward" if "gradient" in row["pass"] and operator != "loss" else "apply"
    line = f"bnns_verbose,{action},{row['problem']},batch {row['batch']},{row['implementation']},{row['isa']},2 threads,1.0 us"
    if operator in NOT_READ:
        refused(f"lines of {operator} are not read", "bench", "--problem", line)
        assert [r["problem"] for r in results("--problem", row["case"])] == [row["problem"]], row
        continue
    read = [r for r in results("--problem", line) if r["pass"] == row["pass"]]
    if operator != "activation":   # a batch of its vectors is one matrix
        assert len(read) == 1 and (read[0]["problem"], read[0]["batch"]) == (row["problem"], row["batch"]), (row, read)
    assert len(read) == 1 and read[0]["gbytes"] > 0
    again += 1
assert again >= 25, again

# The algorithms are those that bnns explain names.
layer = run("explain", "--example", "convolution").stdout
explained = json.loads(subprocess.run([TOOL, "explain", "-", "--json"], input=layer, capture_output=True, text=True, check=True).stdout)
timed = results("--problem", f"{explained['problem'].replace(' relu', '')},batch {explained['batch']}")
assert {r["pass"]: r["implementation"] for r in timed} == explained["implementations"], (timed, explained)

# The problem alone means all passes; bias and ReLU are of forward.
passes = [(r["pass"], r["problem"]) for r in results("--problem", "convolution f32 3x32x32 > 16x16x16 k3x3 s2 p1")]
assert [name for name, _ in passes] == ["forward", "input gradient", "weights gradient"], passes
assert passes[0][1] == "convolution f32 3x32x32 > 16x16x16 k3x3 s2 p1" and passes[1][1].endswith("nobias"), passes
fused = results("--problem", "bnns_verbose,apply,fully_connected bf16 i64 o32 relu,batch 7,gemm/bf16,avx512,1 thread,1.0 us")
assert [(r["problem"], r["batch"]) for r in fused] == [("fully_connected bf16 i64 o32 relu", 7)], fused

for problem, said in (("fully_connected f32 i64 o32 relu", "the gradients of a layer with relu are not timed"),
                      ("fully_connected f32 i64 o32", "without the bias"), ("fully_connected f32 i64 o32 nobias", "")):
    note = run("bench", *SHORT, "--problem", problem).stderr
    assert said in note and note.count("\n") == (said != ""), (problem, note)
text = run("bench", "loss", *SHORT).stdout
assert text.splitlines()[0].split() == ["problem", "batch", "pass", "implementation", "threads", "ms", "rate"], text
assert "GB/s" in text and "softmax_ce" in text and "\x1b" not in text, text
one = json.loads(run("bench", "loss", "--seconds", "1e-6", "--threads", "1", "--json", "-").stdout)
assert {r["threads"] for r in one["results"]} == {1} and {"version", "cpu", "isa", "seconds"} <= set(one), one
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "bench.json"
    text = run("bench", "pooling", *SHORT, "--json", file).stdout
    assert len(json.loads(file.read_text())["results"]) == len(text.splitlines()) - 1, text
    refused("cannot be written", "bench", "loss", "--json", pathlib.Path(folder) / "absent" / "f")
done = run("bench", "loss", *SHORT, env={**os.environ, "BNNS_VERBOSE": "1"})
assert done.stderr == "", done.stderr   # a line for each call would be timed too

refused("did you mean convolution?", "bench", "convoluton")
refused("did you mean --seconds?", "bench", "--secnds", "1")
refused("FAMILY excludes --problem", "bench", "loss", "--problem", "x")
refused("two was not expected", "bench", "loss", "two")
refused("--seconds: 0 is not in the range", "bench", "--seconds", "0")
for problem, why in {
        "quantize f32 4x2 to i8": "lines of quantize are not read",
        "convolution f32 3x32x32": "ends too early",
        "convolution f32 3x32x32 > 16x32x32 k3x3": "the result is 32 high, expected 30: rows of bnns bench have the same padding",
        "convolution f32 64x56x56 > 64x56x99 k3x3 p1,batch 8": "the result is 99 wide, expected 56: ",
        "convolution f32 1x2x2 > 1x1x1 k3x3": "the kernel reaches over 3 pixels, and the input is 2 high",
        "convolution f32 1x2x2 > 1x1x1 k1x1 s0": "a stride is 0",
        "convolution f32 3x32 > 16x32 k3x3": "CxHxW",
        "convolution u8 3x32x32 > 16x32x32 k3x3": "expected f32, f16 or bf16",
        "convolution f32 3xax32 > 16x32x32 k3x3": "no list of sizes",
        "fully_connected f32 i64 o32 tanh": "\"tanh\" is not among",
        "bnns_verbose,backward,fully_connected f32 i64 o32 relu,batch 7,gemm,avx2,1 thread,1.0 us": "leave the word out",
        "bnns_verbose,backward,loss softmax_ce f32 10 mean,batch 7,loss,avx2,1 thread,1.0 us": "the gradient of this operator",
        "loss softmax_ce f32 10 sum": "with this reduction",
        "activation relu f32 5 -> f32 6": "one type and shape",
        "conv convolution forward f32 n=1": "conv needs",
        "kernv convolution forward f32 n=1": "did you mean conv?",
        "loss softmax forward f33 n=1 c=1": "no type",
        "loss softmax forward f32 n=0 c=10": "no elements",
        "loss softmax forward f32 n=x c=10": "\"n=x\" has no number",
        "loss softmax forward f32 n=-1 c=10": "\"n=-1\" has no number",
        "loss softmax forward f32 n=1000000 c=1000000": "more than 16 GB",
        "loss softmax forward f32 n=1e12 c=1e12": "too large",
        "conv convolution forward f32 n=1 i=1 h=8 w=8 o=1 kh=3 kw=3 sy=0": "sy= is 0, expected 1 or more",
        "copy to_f32 forward f32 skip=1": "copy needs a=",
        "activation relu f32 0 -> f32 0": "no elements",
        "": "the line is empty"}.items():
    refused(why, "bench", "--problem", problem)
