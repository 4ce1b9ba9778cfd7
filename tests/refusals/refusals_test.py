"""What a program that makes mistakes sees on stderr, for each value of BNNS_VERBOSE. The argument is `mistakes`."""

import os
import subprocess
import sys

program = sys.argv[1]
HINT = "openbnns: (the first refusal of each kind is printed; BNNS_VERBOSE=0: none, error: every one)"
failures = 0


def check(condition, text):
    global failures
    if not condition:
        failures += 1
        print("FAIL", text)


def run(*arguments, code=0, **settings):
    # A program that ends at its mistake destroys no filter, and a report of leaks would be more lines.
    leaks = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BNNS_")} | leaks | settings
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=60)
    check(done.returncode == code, f"{arguments} {settings}: exit code {done.returncode}, expected {code}")
    return done


mistakes = [line.split("\t") for line in run("--list").stdout.splitlines()]
check(len(mistakes) >= 29, f"only {len(mistakes)} mistakes")
for number, name, says in mistakes:
    lines = run(number).stderr.splitlines()
    check(len(lines) == 2 and lines[1] == HINT, f"{number}: not one reason and the hint: {lines}")
    reason = lines[0] if lines else ""
    check(reason.startswith(("openbnns: BNNS", "openbnns: not offered: BNNS")), f"{number}: {reason!r}")
    check(f" {name}: " in reason and says in reason, f"{number}: {reason!r} does not say {name!r} and {says!r}")
    check(run(number, BNNS_VERBOSE="0").stderr == "", f"{number}: BNNS_VERBOSE=0 prints")

# One kind once, every one on demand.
check(len(run(0, 50).stderr.splitlines()) == 2, "fifty refusals of one kind are not one")
for setting, reasons in (("error", 50), ("1", 50), ("all", 50)):
    lines = run(0, 50, BNNS_VERBOSE=setting).stderr.splitlines()
    check(sum(line.startswith("openbnns: BNNS") for line in lines) == reasons, f"BNNS_VERBOSE={setting}: {len(lines)}")
    check(HINT not in lines, f"BNNS_VERBOSE={setting} has the hint")
lines = run("probe").stderr.splitlines()
check(lines[1] == HINT and len(lines) == 64 + 2, f"many kinds: {len(lines)} lines")
check("further kinds" in lines[-1], lines[-1])

# What is run is printed for 1 and all alone.
for setting, expected in (("", 0), ("0", 0), ("error", 0), ("1", 2), ("all", 2)):
    lines = run("fine", BNNS_VERBOSE=setting).stderr.splitlines()
    check(len(lines) == expected, f"BNNS_VERBOSE={setting!r}: {lines}")
    check(all(line.startswith("bnns_verbose,") for line in lines), f"BNNS_VERBOSE={setting!r}: {lines}")

# A callback takes the place of printing, whatever the setting.
for settings in ({}, {"BNNS_VERBOSE": "0"}, {"BNNS_VERBOSE": "error"}):
    done = run("callback", **settings)
    check(done.stderr == "", f"callback and {settings}: {done.stderr!r}")
    check(done.stdout.count("told 0 BNNSFilterCreateLayerFullyConnected: ") == 2, f"callback: {done.stdout!r}")

# Settings that mean nothing are named at once, and only then.
for name in ("BNNS_VERBOSE", "BNNS_NUM_THREADS", "BNNS_MAX_ISA", "BNNS_CHECK_NAN"):
    lines = run("fine", **{name: "nonsense"}).stderr.splitlines()
    check(len(lines) == 1 and lines[0].startswith(f"openbnns: {name}=nonsense in the environment is ignored, expected "),
          f"{name}: {lines}")
    if name != "BNNS_VERBOSE":
        check(run("fine", BNNS_VERBOSE="0", **{name: "nonsense"}).stderr == "", f"{name}: printed with BNNS_VERBOSE=0")
check(run("fine", BNNS_NUM_THREADS="2", BNNS_MAX_ISA="sse4", BNNS_CHECK_NAN="1").stderr == "", "good settings print")

print(f"{len(mistakes)} mistakes, {failures} failures")
sys.exit(1 if failures else 0)
