"""scripts/reliability: a promise holds if its tests ran and passed; one whose test failed, was renamed or did not run is
broken, and the command that runs it again is printed.

Usage: reliability_test.py
"""
import importlib.machinery
import importlib.util
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("reliability", str(ROOT / "scripts/reliability"))
reliability = importlib.util.module_from_spec(importlib.util.spec_from_loader("reliability", loader))
loader.exec_module(reliability)

PROMISE = ("same bits", "0 differ", r"^EveryLayer\.SameBits", ["symbols"], 2)
GOOD = ("EveryLayer.SameBitsEachTime", "same_bits_test", "passed", "7 runs, 0 differ")


def judged(cases, entries):
    return reliability.judge(PROMISE, cases, entries, "build")


row, again = judged([GOOD, ("Pooling.Other", "x", "failed", None)], {"symbols": "passed"})
assert row["pass"] and not again and row["figure"].startswith("7 runs, 0 differ; 2 tests passed"), row
row, again = judged([GOOD[:2] + ("failed", None)], {"symbols": "passed"})
assert not row["pass"] and "1 FAILED" in row["figure"] and "-R '^same_bits_test$'" in again[0], (row, again)
row, again = judged([GOOD], {"symbols": "failed"})
assert not row["pass"] and "-R '^symbols$'" in again[0], (row, again)
for cases, entries in (([], {"symbols": "passed"}), ([GOOD], {}), ([GOOD[:2] + ("skipped", None)], {"symbols": "passed"})):
    row, again = judged(cases, entries)
    assert not row["pass"], (cases, entries, row)
assert reliability.summed(["3000 calls, 0 wrong", "4 calls, 0 wrong", "1 KiB"]) == ["3,004 calls, 0 wrong", "1 KiB"]
