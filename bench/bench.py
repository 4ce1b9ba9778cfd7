#!/usr/bin/env python3
"""The table of `make bench`: ours beside oneDNN and PyTorch, in one process, on the same data.

    bench.py LIBRARY [--quick] [--threads N,...] [--filter PATTERN] [--json FILE] [--plots FOLDER] [--rounds R]
             [--compiled] [--document]
    bench.py LIBRARY --shapes random [--seed N] [--filter PATTERN]      layers drawn by seed (bench/shapes.py)
    bench.py LIBRARY --case "pool max forward f32 n=1 c=64 ..."         one of them; may be repeated

The contenders of a row are taken in turn, several times; a figure is the median over the rounds, a ratio the median of the
ratios of each round. Every contender starts when the process is quiet: the workers of OpenMP spin for a while after a
call. A share of the limit is the time that the operations at the FMA rate, or the bytes at the rate of a copy with
non-temporal stores, would take, divided by our time; both rates are measured beside every row.
"""

import argparse
import ctypes
import json
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import time

import peers_jax
import report
import report_scaling
import shapes
import shapes_bench


def load(path):
    lib = ctypes.CDLL(path)
    for name in ("bench_rows", "bench_machine", "bench_case", "bench_limits"):
        getattr(lib, name).restype = ctypes.c_char_p
    lib.bench_limits.argtypes = [ctypes.c_size_t]
    lib.bench_open.restype = ctypes.c_void_p
    lib.bench_open.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    lib.bench_close.argtypes = lib.bench_case.argtypes = lib.bench_warm.argtypes = [ctypes.c_void_p]
    if hasattr(lib, "bench_implementation"):  # compare.py loads older builds too
        lib.bench_implementation.restype = ctypes.c_char_p
        lib.bench_implementation.argtypes = [ctypes.c_void_p]
    if hasattr(lib, "bench_add"):
        lib.bench_add.restype = lib.bench_error.restype = ctypes.c_char_p
        lib.bench_add.argtypes = [ctypes.c_char_p]
        lib.bench_first.argtypes = [ctypes.c_void_p]
    lib.bench_time.restype = lib.bench_difference.restype = ctypes.c_double
    lib.bench_time.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
    lib.bench_difference.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return lib


def tensor(torch, types, address, kind, shape):
    sizes = {"f32": 4, "bf16": 2, "f16": 2, "u64": 8, "i8": 1}
    count = math.prod(shape)
    memory = (ctypes.c_char * (count * sizes[kind])).from_address(address)
    return torch.frombuffer(memory, dtype=types[kind], count=count).reshape(shape)


class Bench:
    def __init__(self, lib, torch_peers, options):
        self.lib, self.peers, self.options = lib, torch_peers, options

    def limit(self, threads):
        """FMA and copy rates as they are now: neighbours come and go."""
        return json.loads(self.lib.bench_limits(threads))

    def run(self, index, row, threads):
        lib = self.lib
        case, jax = lib.bench_open(index, threads), None
        try:
            info = json.loads(lib.bench_case(case))
            sets = self.torch_sets(info)
            loss = self.third_loss(row, sets)
            jax = self.jax_worker(row, threads, sets, loss)
            lib.bench_warm(case)
            result = self.contest(row, threads, case, info, sets, loss, jax)
            result["implementation"] = json.loads(lib.bench_implementation(case))  # last: a step trains
            return result
        finally:
            lib.bench_close(case)
            if jax:
                jax.close()

    def torch_sets(self, info):
        """The data as PyTorch's tensors, in the same memory."""
        if not self.peers:
            return None
        return [{name: tensor(self.peers.torch, self.peers.TYPES, *array) for name, array in s.items()}
                for s in info["sets"]]

    def third_loss(self, row, sets):
        """PyTorch's loss in the third step. To be asked before ours trains the parameters that both start from."""
        if not sets or not row["family"].startswith("step"):
            return None
        check = self.peers.peer(dict(row, check=True), sets[0])
        return [float(check(None)) for _ in range(3)][-1]

    def contest(self, row, threads, case, info, sets, loss, jax):
        lib = self.lib
        # Other orders of summation; whole steps and ReLU (a value near 0 may fall on either side) multiply it.
        loose = row["family"].startswith("step") or row["attributes"].get("relu")
        bound = 0.05 if row["type"] != "f32" else 1e-2 if loose else 1e-3
        contenders = []
        for i, name in enumerate(info["contenders"]):
            contenders.append((name, lambda calls, i=i: lib.bench_time(case, i, calls)))
        torch_call = self.torch_contender(row, threads, case, info, sets, loss, bound)
        if torch_call:
            contenders.append(("PyTorch", torch_call))
        if jax:
            contenders.append(("JAX", jax.time))
        for i, name in enumerate(info["contenders"][1:], 1):
            difference = lib.bench_difference(case, i)
            if difference > bound:
                print(f"NOTE {row['family']} {row['op']} {row['shape']}: {name} differs by {difference:.1e}", flush=True)
        counts = []
        for name, call in contenders:  # enough calls for a few milliseconds
            first = call(1)
            counts.append(max(1, min(2000, int(self.options.turn / max(first, 1e-8)))))
        times = {name: [] for name, _ in contenders}
        for r in range(self.options.rounds):
            for k in range(len(contenders)):
                j = (k + r) % len(contenders)
                lib.bench_settle()
                seconds = contenders[j][1](counts[j])
                name = contenders[j][0]
                if len(times[name]) > r:  # oneDNN in two layouts: the faster
                    times[name][r] = min(times[name][r], seconds)
                else:
                    times[name].append(seconds)
        return self.row(row, threads, info, times)

    def jax_worker(self, row, threads, sets, loss):
        """JAX's process for a training step. To be made before ours trains the parameters that all start from."""
        if not self.options.compiled or not sets or not row["family"].startswith("step"):
            return None
        try:
            worker = peers_jax.Worker(row, {name: array.numpy() for name, array in sets[0].items()}, threads)
        except RuntimeError as error:
            print(f"NOTE {row['op']} {row['shape']}: without JAX ({error})", flush=True)
            return None
        if not abs(worker.loss - loss) / loss <= 1e-2:
            print(f"NOTE {row['op']} {row['shape']}: JAX's loss in the third step is {worker.loss}, PyTorch's {loss}", flush=True)
        return worker

    def torch_call(self, row, sets, threads):
        self.peers.torch.set_num_threads(threads)
        return self.peers.peer(dict(row, compiled=self.options.compiled), sets[0])

    def torch_difference(self, handle, info, call, sets):
        """The largest difference between our result and PyTorch's, as a share of the largest value. Results begin at 0: some
        calls add to them."""
        result, first = info["result"], sets[0]
        for name in (result, "peer_" + result):
            if name in first:
                first[name].zero_()
        self.lib.bench_first(handle)
        mine = first[result].float()
        theirs = call(first).float().reshape(mine.shape)
        return float((mine - theirs).abs().max() / max(float(mine.abs().max()), 1e-30))

    def torch_contender(self, row, threads, case, info, sets, loss, bound):
        if not self.peers:
            return None
        call = self.torch_call(row, sets, threads)
        if call is None:
            return None
        if loss is not None:
            self.lib.bench_time(case, 0, 1)  # two steps, after the one of bench_warm
            difference = abs(float(sets[0]["loss"]) - loss) / loss
            if not difference <= bound:
                print(f"NOTE {row['op']} {row['shape']}: PyTorch's loss after three steps differs by {difference:.1e}",
                      flush=True)
        elif info["result"] and row["family"] not in ("optimizer", "overhead"):
            difference = self.torch_difference(case, info, call, sets)
            other = row["op"] == "average with padding" and row["attributes"]["after"] > row["attributes"]["py"]
            if not difference <= bound and not other:
                print(f"NOTE {row['family']} {row['op']} {row['direction']} {row['shape']}: PyTorch differs by "
                      f"{difference:.1e}", flush=True)
        return self.torch_timer(call, sets)

    def torch_timer(self, call, sets):
        turn, last, kept = [0], [0], [None] * len(sets)

        def once():  # results stay as long as a set: they too come from memory that was not just written
            turn[0] += 1
            kept[turn[0] % len(sets)] = None
            kept[turn[0] % len(sets)] = call(sets[turn[0] % len(sets)])

        def timed(calls):
            if last[0] < 0.05:  # longer ones warm themselves up
                once()
            start = time.perf_counter()
            for _ in range(calls):
                once()
            last[0] = (time.perf_counter() - start) / calls
            return last[0]
        for _ in sets:
            once()
        return timed

    def row(self, row, threads, info, times):
        ours = times["ours"]
        peers = {name: t for name, t in times.items() if name in ("oneDNN", "PyTorch", "JAX", "OpenMP", "plain loop")}
        wanted = "better" if self.options.compiled else report.BARS.get(row["family"], ("better", 0))[0]
        chosen = wanted if wanted in peers else min(peers, key=lambda n: statistics.median(peers[n])) if peers else ""
        out = {k: row[k] for k in ("family", "op", "direction", "shape", "type")}
        seconds = statistics.median(ours)
        limit = self.limit(threads)
        limit_seconds = max(row["operations"] / limit["operations"] if limit["operations"] else 0,
                            row["bytes"] / limit["bytes"])
        out.update(threads=threads, ms=seconds * 1e3, peer=chosen,
                   peer_ms=statistics.median(peers[chosen]) * 1e3 if chosen else None,
                   ratio=statistics.median(p / o for p, o in zip(peers[chosen], ours)) if chosen else None,
                   limit_share=limit_seconds / seconds if limit_seconds else None)
        out["others_ms"] = {n: statistics.median(t) * 1e3 for n, t in times.items() if n not in ("ours", chosen)}
        out["gflops"] = row["operations"] / seconds / 1e9 if row["operations"] else None
        out["compute_share"] = row["operations"] / limit["operations"] / seconds if row["operations"] else None
        out["tensor_mb"] = row["attributes"].get("tensor_bytes", row["bytes"]) / 1e6
        if "ours f32" in times:
            out["ratio_own_f32"] = statistics.median(f / o for f, o in zip(times["ours f32"], ours))
        if info["peer_implementation"]:
            out["peer_implementation"] = info["peer_implementation"]
        return out


def peak_memory(options, index, side):
    """MB that a training step adds to a fresh process: ours or PyTorch's."""
    command = [sys.executable, __file__, options.library, "--memory-of", f"{index}:{side}"]
    done = subprocess.run(command, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def measure_memory(lib, what):
    def status(key):
        with open("/proc/self/status") as f:
            return next(int(line.split()[1]) / 1e3 for line in f if line.startswith(key))
    index, side = what.split(":")
    rows = json.loads(lib.bench_rows())
    peers = import_torch() if side == "PyTorch" else None
    if peers:
        net = peers.model("MLP")  # so that PyTorch's own start-up is not counted
        net(peers.torch.zeros(1, 784)).sum().backward()
    before = status("VmRSS")
    case = lib.bench_open(int(index), len(os.sched_getaffinity(0)))
    if side == "ours":
        lib.bench_time(case, 0, 3)
    else:
        arrays = json.loads(lib.bench_case(case))["sets"][0]
        data = {n: tensor(peers.torch, peers.TYPES, *a) for n, a in arrays.items()}
        call = peers.peer(dict(rows[int(index)], check=True), data)
        for _ in range(4):
            call(None)
    print(json.dumps(max(0, status("VmHWM") - before)))


def import_torch():
    try:
        import peers_torch
        return peers_torch
    except ImportError as error:
        print(f"PyTorch is not here ({error}); its rows are left out. scripts/setup --bench installs it.")
        return None


def measure(bench, rows, thread_counts, options, results):
    for threads in thread_counts:
        for index, row in enumerate(rows):
            text = " ".join(row[k] for k in ("family", "op", "direction", "shape", "type"))
            if not re.search(options.filter, text) or (options.quick and not row["quick"]):
                continue
            result = bench.run(index, row, threads)
            if row["family"].startswith("step") and threads == thread_counts[0] and not options.quick:
                result["memory_mb"] = peak_memory(options, index, "ours")
                result["peer_memory_mb"] = peak_memory(options, index, "PyTorch") if bench.peers else None
            results.append(result)
            print(report.line(result), flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("library")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[],
                   help="several: also a table and a plot of the speed-up (report_scaling.py)")
    p.add_argument("--compiled", action="store_true", help="training steps beside torch.compile and JAX too, which compile for minutes")
    p.add_argument("--filter", default="", help="a regular expression, searched in family, operation, direction, shape, type")
    p.add_argument("--rounds", type=int)
    p.add_argument("--shapes", choices=["random"], help="layers drawn by --seed instead of the list")
    p.add_argument("--seed", default="1")
    p.add_argument("--case", action="append", default=[], help="a layer as one line, as --shapes random prints it")
    p.add_argument("--json", default="")
    p.add_argument("--plots", default="")
    p.add_argument("--document", action="store_true", help="write the results into docs/ and the README")
    p.add_argument("--memory-of", default="", help=argparse.SUPPRESS)
    options = p.parse_args()
    lib = load(os.path.abspath(options.library))
    if options.memory_of:
        return measure_memory(lib, options.memory_of)
    options.rounds = options.rounds or (3 if options.quick else 7)
    options.turn = 2e-3 if options.quick else 6e-3
    rows = json.loads(lib.bench_rows())
    peers = import_torch()
    bench = Bench(lib, peers, options)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options.shapes or options.case:
        results = shapes_bench.run(bench, options.case or shapes.lines(options.seed), options)
        if options.json:
            with open(options.json, "w") as f:
                json.dump({"seed": options.seed, "rows": results}, f, indent=1)
        return None
    cores = max(options.threads, default=len(os.sched_getaffinity(0)))
    machine = report.machine(json.loads(lib.bench_machine()), peers.torch.__version__ if peers else None, cores)
    thread_counts = options.threads or ([cores] if options.quick or cores == 1 else [cores, 1])
    machine["limits"] = {n: bench.limit(n) for n in thread_counts}
    print(report.heading(machine), flush=True)
    results, started = [], time.monotonic()
    try:
        measure(bench, rows, thread_counts, options, results)
    except KeyboardInterrupt:
        print(f"stopped in the middle: {len(results)} rows")
    for n in thread_counts:
        print(report.summary(results, n))
    if len(thread_counts) > 1:
        print(report_scaling.summary(results))
    print(f"{len(results)} rows in {time.monotonic() - started:.0f} s")
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"machine": machine, "rows": results}, f, indent=1)
    if options.plots:
        report.plots(results, machine, cores, options.plots)
        if len(thread_counts) > 1:
            report_scaling.plot(results, machine, options.plots)
    if options.document:
        report.document(results, machine, cores, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


if __name__ == "__main__":
    main()
