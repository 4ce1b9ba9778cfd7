"""BNNS_TRACE and BNNS_PROFILE of a training: the file is what Perfetto reads, events of a thread nest, each call says what
ran, and together they cover the time; the table on stderr has the same calls; weights are those of a run without."""
import collections
import json
import os
import pathlib
import subprocess
import tempfile

from tool_files import TOOL

TRAIN = ["train", "--epochs", "1", "--train-size", "3000", "--test-size", "500", "--threads", "2", "--json", "--quiet"]
SHORT = ["train", "--epochs", "1", "--train-size", "100", "--test-size", "50", "--quiet", "--no-report"]


def run(*options, code=0, **settings):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BNNS_")} | settings
    done = subprocess.run([TOOL, *map(str, options)], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == code, (options, settings, done.returncode, done.stderr)
    return done


def check_nesting(events):
    """Of one thread: an event lies in the one before it or begins after its end. Times are exact to the nanosecond."""
    open_ends = []
    for event in sorted(events, key=lambda e: (round(e["ts"] * 1000), -round(e["dur"] * 1000))):
        begin, end = round(event["ts"] * 1000), round(event["ts"] * 1000) + round(event["dur"] * 1000)
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], f"{event} reaches over the end of the one that it begins in"
        open_ends.append(end)


def covered(events):
    """The time in at least one of them."""
    total, end = 0.0, 0.0
    for event in sorted(events, key=lambda e: e["ts"]):
        stop = event["ts"] + event["dur"]
        total += max(0.0, stop - max(end, event["ts"]))
        end = max(end, stop)
    return total


def check_trace(text):
    trace = json.loads(text)
    assert trace["otherData"]["events_not_kept"] == 0
    lanes = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    by_lane = collections.defaultdict(list)
    for event in events:
        by_lane[event["tid"]].append(event)
        assert event["dur"] >= 0 and event["cat"] in ("call", "part", "range"), event
        if event["cat"] != "range":
            assert event["args"]["problem"] and event["args"]["implementation"] not in ("", "-"), event
    assert lanes.keys() == by_lane.keys(), (lanes, by_lane.keys())
    assert sorted(lanes.values()) == ["caller 1", "worker 1"], lanes
    for lane in by_lane.values():
        check_nesting(lane)

    # A worker that a busy machine lets in late has few parts. One lies in its call's time, and says the same.
    calls = {e["args"]["call"]: e for e in events if e["cat"] == "call"}
    parts = [e for e in events if e["cat"] == "part"]
    assert len(parts) >= 5 and all(lanes[e["tid"]] == "worker 1" for e in parts), len(parts)
    for part in parts:
        call = calls[part["args"]["call"]]
        assert part["ts"] >= call["ts"] and part["ts"] + part["dur"] <= call["ts"] + call["dur"] + 0.001, (part, call)
        assert all(part["args"][k] == call["args"][k] for k in ("problem", "implementation"))
        assert call["args"]["threads"] == 2

    names = {e["name"] for e in calls.values()}
    for name in ("apply fused", "backward fused", "apply max_pool", "apply loss", "apply optimizer", "create fused"):
        assert name in names, (name, names)
    fused = [e["args"] for e in calls.values() if e["name"] == "backward fused"]
    assert all("convolution/" in e["implementation"] and e["operations"] > 0 and e["bytes"] > 0 for e in fused), fused[0]

    main = next(by_lane[tid] for tid in lanes if lanes[tid] == "caller 1")
    begin, end = min(e["ts"] for e in main), max(e["ts"] + e["dur"] for e in main)
    assert covered(main) >= 0.95 * (end - begin), f"all events cover {covered(main)} of {end - begin} us"
    loop = [e for e in main if e["name"] in ("step", "test")]
    own = covered([e for e in main if e["cat"] == "call" and not e["name"].startswith("create")])
    assert own >= 0.8 * covered(loop), f"calls cover {own} of the training's {covered(loop)} us"
    print(f"{len(events)} events, {len(parts)} of them in the worker's lane; all cover {covered(main) / (end - begin):.1%} "
          f"of the run, calls {own / covered(loop):.1%} of steps and tests")
    return calls


def check_profile(text, calls):
    lines = text.splitlines()
    assert lines[1].split() == ["calls", "time", "share", "rate", "pass", "layer"], lines
    rows = [line.split(None, 1) for line in lines[2:]]
    assert all(len(line) <= 200 for line in lines), lines
    shares = [float(row[1].split("%")[0].split()[-1]) for row in rows]
    assert shares == sorted(shares, reverse=True) and 99 < sum(shares) < 101, shares
    assert sum(int(row[0]) for row in rows) == len(calls), (rows, len(calls))
    assert any("GFLOP/s  backward fused convolution f32 " in line for line in lines), text
    assert any("GB/s  apply    max_pool f32 " in line for line in lines), text


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    files = ["--report", folder / "report.html"]
    plain = run(*TRAIN, *files)
    assert plain.stderr == "", plain.stderr
    file = folder / "trace.json"
    done = run(*TRAIN, *files, BNNS_TRACE=str(file), BNNS_PROFILE="1")
    calls = check_trace(file.read_text())
    check_profile(done.stderr, calls)
    hashes = [json.loads(text)["weights_sha256"] for text in (plain.stdout, done.stdout)]
    assert hashes[0] == hashes[1], hashes

    # Each alone; a file that was there is replaced.
    file.write_text("before" * 100000)
    assert run(*SHORT, BNNS_TRACE=str(file)).stderr == ""
    assert "backward fused" in file.read_text() and json.loads(file.read_text())
    assert "backward fused" in run(*SHORT, BNNS_PROFILE="1").stderr

    # What cannot be written, and what is not understood, is one line; the run goes on.
    says = "in the environment is ignored, expected a file that can be written"
    for settings, says in (({"BNNS_TRACE": "none/trace.json"}, f"none/trace.json {says} (No such file or directory)"),
                           ({"BNNS_TRACE": str(folder)}, f"{says} (Is a directory)"),
                           ({"BNNS_PROFILE": "yes"}, "BNNS_PROFILE=yes in the environment is ignored, expected 0 or 1")):
        lines = run(*SHORT, **settings).stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith("openbnns: BNNS_") and lines[0].endswith(says), (settings, lines)
    if os.access("/dev/full", os.W_OK):
        lines = run(*SHORT, BNNS_TRACE="/dev/full").stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith("openbnns: BNNS_TRACE: /dev/full: "), lines
    for off in ("", "0"):
        assert run(*SHORT, BNNS_PROFILE=off, BNNS_TRACE="").stderr == "", off
print("ok")
