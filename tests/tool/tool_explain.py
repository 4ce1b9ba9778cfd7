"""bnns explain: every example is accepted, the C interface's names are known with and without prefix, and what is wrong with
a description is said in one line."""
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tool_files import TOOL, run  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS = ("convolution", "transposed_convolution", "fully_connected", "pooling", "activation", "normalization", "loss", "arithmetic",
          "permute", "matmul", "reduction")


def explain(description, code=0, *options):
    text = description if isinstance(description, str) else json.dumps(description)
    done = subprocess.run([TOOL, "explain", "-", *options], input=text, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, f"{text[:300]}: exit code {done.returncode}, expected {code}: {done.stdout}{done.stderr}"
    return done


def answer(description, code=0):
    return json.loads(explain(description, code, "--json").stdout)


def wrong(expected, description):
    done = explain(description, 2)
    print(done.stderr.strip())
    assert done.stdout == "" and done.stderr.count("\n") == 1 and done.stderr.startswith("bnns: stdin: "), done.stderr
    assert expected in done.stderr, f"{done.stderr!r} does not say {expected!r}"


def changed(**members):
    """The convolution with other members, "w_desc__size" for one inside another."""
    other = copy.deepcopy(example)
    for path, value in members.items():
        *to, last = path.split("__")
        at = other["parameters"]
        for name in to:
            at = at[name]
        at[last] = value
    return other


header = (ROOT / "include/bnns/bnns_structures.h").read_text()
structures = {"fully_connected": "FullyConnected", "pooling": "Pooling", "activation": "Activation", "permute": "Permute",
              "transposed_convolution": "Convolution", "convolution": "Convolution", "normalization": "Normalization",
              "matmul": "BroadcastMatMul", "reduction": "Reduction"}
for layer in LAYERS:
    text = run("explain", "--example", layer).stdout
    got = answer(text)
    assert got["accepted"] and got["problem"] and got["layer_bytes"] > 0 and got["notes"] == [], got
    assert "forward" in got["implementations"] and got["implementations"]["input gradient"], got
    assert ("weights gradient" in got["implementations"]) == (layer in LAYERS[:3]), got
    if layer in structures:   # an example names every member
        body = re.search(r"typedef struct \{((?:(?!typedef)[\s\S])*?)\} BNNSLayerParameters" + structures[layer] + ";", header).group(1)
        members = set(re.findall(r"(\w+)(?:\[\w+\])?;", re.sub("///.*", "", body))) | ({"normType"} if layer == "normalization" else set())
        assert members == set(json.loads(text)["parameters"]), (layer, members ^ set(json.loads(text)["parameters"]))
    shown = explain(text).stdout
    assert shown.startswith("accepted") and got["problem"] in shown and got["implementations"]["forward"] in shown, shown
assert answer(run("explain", "--example", "matmul").stdout)["workspace_bytes"] > 0

example = json.loads(run("explain", "--example", "convolution").stdout)
refused = answer(changed(o_desc__size=[60, 56, 128]), 1)
assert not refused["accepted"] and refused["reason"].startswith("BNNSFilterCreateLayerConvolution: convolution: "), refused
assert refused["reason"] in explain(changed(o_desc__size=[60, 56, 128]), 1).stdout
assert "bias" in answer(changed(bias__size=[7]), 1)["reason"]
assert "nobias" in answer(changed(bias__data=None))["problem"]
assert "w_desc" in answer(changed(w_desc__data=None), 1)["reason"]
assert "nobias" in answer({"layer": "convolution", "parameters": {k: example["parameters"][k] for k in ("i_desc", "o_desc", "w_desc", "x_padding",
                                                                                                     "y_padding")}})["problem"]
assert answer(changed(o_desc__size=[55, 56, 128]))["notes"], "the note on unread columns"
one = answer({**example, "threads": 1, "pass": "input gradient"})
assert one["threads"] == 1 and list(one["implementations"]) == ["input gradient"], one
skipped = json.loads(subprocess.run([TOOL, "explain", "-", "--json"], input=json.dumps(example), capture_output=True, text=True, check=True,
                                    env={**os.environ, "BNNS_SKIP": "convolution/winograd"}).stdout)
assert "winograd" not in str(skipped["implementations"]), skipped
huge = answer({"layer": "fully_connected", "parameters": {   # 400 PB of weights, of which nothing is read
    "i_desc": {"layout": "Vector", "size": [10**9], "data_type": "Float32"}, "o_desc": {"layout": "Vector", "size": [10**8], "data_type": "Float32"},
    "w_desc": {"layout": "RowMajorMatrix", "size": [10**9, 10**8], "data_type": "Float32"}}})
assert huge["implementations"]["forward"], huge

# A name of the header is understood with and without what all of its type begin with, whatever the library then says.
constants = (ROOT / "include/bnns/bnns_constants.h").read_text()
for place, prefix in (("i_desc__layout", "BNNSDataLayout"), ("i_desc__data_type", "BNNSDataType"),
                      ("activation__function", "BNNSActivationFunction")):
    names = re.findall(rf"^  ({prefix}\w+) = ", constants, re.M)
    assert len(names) > 20, names
    for name in names:
        both = [subprocess.run([TOOL, "explain", "-", "--json"], input=json.dumps(changed(**{place: word})), capture_output=True, text=True,
                               check=False) for word in (name, name[len(prefix):])]
        assert both[0].returncode in (0, 1) and both[0].stdout == both[1].stdout, (name, both)
assert "BNNSDataType" in answer(changed(i_desc__data_type=99), 1)["reason"]   # a number without a name

wrong("x_strid is not a key here; did you mean x_stride?", {**example, "parameters": {"x_strid": 1}})
wrong("did you mean ImageCHW?", changed(i_desc__layout="ImagCHW"))
wrong("did you mean BNNSDataLayoutImageCHW?", changed(i_desc__layout="BNNSDataLayoutImageHCW"))
wrong("parameters.activation.function: ReLU is not a BNNSActivationFunction; did you mean ReLU6?", changed(activation__function="ReLU"))
wrong("layer: conv is not a layer that is explained; did you mean convolution?", {"layer": "conv"})
wrong("layer is no text", {"layer": 7})
wrong("layer is missing", {"batch": 1})
wrong("did you mean batch?", {**example, "bach": 1})
wrong("did you mean forward?", {**example, "pass": "foreward"})
wrong("pass: backward is not a pass, expected one of all, forward, input gradient, weights gradient", {**example, "pass": "backward"})
wrong("pass: weights gradient is not a pass of pooling", {"layer": "pooling", "pass": "weights gradient",
                                                          "parameters": json.loads(run("explain", "--example", "pooling").stdout)["parameters"]})
wrong("batch is -1, expected a whole number", {**example, "batch": -1})
wrong("batch is 1.5, expected a whole number", {**example, "batch": 1.5})
wrong("threads is more than 256", {**example, "threads": 257})
wrong("parameters.i_desc.size[1] is \"x\", expected a whole number", changed(i_desc__size=[1, "x"]))
wrong("parameters.i_desc.size is [1,1,1,1,1,1,1,1,1], expected a list of at most 8", changed(i_desc__size=[1] * 9))
wrong("parameters.i_desc.data is 5, expected null", changed(i_desc__data=5))
wrong("parameters.i_desc is 5, expected an object", changed(i_desc=5))
wrong("parameters is [], expected an object", {**example, "parameters": []})
wrong("parameters.activation.alpha is \"a\", expected a number", changed(activation__alpha="a"))
wrong("parameters.i_desc.layout is true, expected the name of a BNNSDataLayout", changed(i_desc__layout=True))
wrong("axis_flags is 4294967296, expected a whole number from 0 to 4294967295", {"layer": "activation", "parameters": {"axis_flags": 2**32}})
wrong("transA is 1, expected true or false", {"layer": "matmul", "parameters": {"transA": 1}})
wrong("Yolo is not explained", {"layer": "loss", "parameters": {"function": "Yolo"}})
wrong("in excludes in1", {"layer": "arithmetic", "parameters": {"in": {}, "in1": {}}})
wrong("parse error at line 1", "{")
wrong("no JSON object", "[1]")
wrong("a?[31m is not a key here", {"a\x1b[31m": 1})
wrong("number overflow", '{"layer": "pooling", "batch": 1e999}')
wrong("more than 1 MB", " " * (2 << 20))

with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "layer.json"
    file.write_text(json.dumps(example))
    assert run("explain", file).stdout.startswith("accepted")
    for options, said in ((("explain", file.with_name("absent")), "absent: No such file"), (("explain", folder), "Is a directory"),
                          (("explain",), "FILE is missing"), (("explain", "--json"), "FILE is missing"),
                          (("explain", "--example", "convolutoin"), "did you mean convolution?"),
                          (("explain", "--example", "nosuch"), "expected one of convolution, "),
                          (("explain", file, "--example", "loss"), "FILE excludes --example"),
                          (("explain", file, "--jsn"), "did you mean --json?")):
        done = run(*options, code=2)
        assert said in done.stderr and done.stderr.count("\n") == 1 and done.stdout == "", (options, done.stderr)
