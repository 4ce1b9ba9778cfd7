"""`make bench SHAPES=random SEED=n`: layers drawn by seed (bench/shapes.py), ours beside the better peer and beside a plain loop.

Used by bench.py. A case is checked against every contender's numbers once, then timed: the fastest of several short turns, which
the contenders take one after the other, since the question is a ratio and the machine may be busy.
"""

import json
import re
import time

import report


def run(bench, cases, options):
    """Measures the cases, prints a line each, then the summary. Returns the results."""
    results, refused, started = [], [], time.monotonic()
    print(f"{'ms':>9} {'ratio':>6} {'loop':>7} {'f32':>5}  the case; who is the peer; what ran")
    try:
        for case in cases:
            if not re.search(options.filter, case):
                continue
            result = one(bench, case, options.threads or 1)
            if "error" in result:
                refused.append(result)
                print(f"REFUSED {case}: {result['error']}", flush=True)
            else:
                results.append(result)
                print(line(result), flush=True)
    except KeyboardInterrupt:
        print(f"stopped in the middle: {len(results)} cases")
    print(summary(results, refused))
    print(f"{len(results)} cases in {time.monotonic() - started:.0f} s, {options.threads or 1} thread(s)")
    return results


def one(bench, case, threads):
    added = json.loads(bench.lib.bench_add(case.encode()))
    if "error" in added:
        return {"case": case, "error": added["error"]}
    rows = json.loads(bench.lib.bench_rows())
    index = added["index"]
    handle = bench.lib.bench_open(index, threads)
    try:
        if not handle or bench.lib.bench_warm(handle) != 0:
            return {"case": case, "error": bench.lib.bench_error().decode()}
        return contest(bench, handle, rows[index], case, threads)
    finally:
        if handle:
            bench.lib.bench_close(handle)


def contest(bench, handle, row, case, threads):
    info = json.loads(bench.lib.bench_case(handle))
    sets = bench.torch_sets(info)
    calls = [(name, lambda n, i=i: bench.lib.bench_time(handle, i, n)) for i, name in enumerate(info["contenders"])]
    notes = []
    # Sums of n terms in another order: sqrt(n) roundings of the largest.
    bound = {"f32": 2e-4, "i8": 2e-3}.get(row["type"], 0.04)
    for i, name in enumerate(info["contenders"][1:], 1):
        difference = bench.lib.bench_difference(handle, i)
        if difference > bound:
            notes.append(f"{name} differs by {difference:.1e}")
    peer = bench.torch_call(row, sets, threads) if sets else None
    if peer:
        try:
            difference = bench.torch_difference(handle, info, peer, sets)
            if not difference <= bound:
                notes.append(f"PyTorch differs by {difference:.1e}")
            calls.append(("PyTorch", bench.torch_timer(peer, sets)))
        except (RuntimeError, NotImplementedError) as error:
            notes.append("PyTorch: " + str(error).split("\n")[0][:80])
    times = rounds(bench, calls)
    ours = times["ours"]
    peers = {n: t for n, t in times.items() if n in ("oneDNN", "PyTorch")}
    best = min(peers, key=peers.get) if peers else ""
    return dict({k: row[k] for k in ("family", "op", "direction", "type", "shape")}, case=case, threads=threads, ms=ours * 1e3,
                peer=best, peer_ms=peers[best] * 1e3 if best else None, ratio=peers[best] / ours if best else None,
                loop=times["plain loop"] / ours if "plain loop" in times else None,
                own_f32=times["ours f32"] / ours if "ours f32" in times else None,
                gflops=row["operations"] / ours / 1e9 if row["operations"] else None, gbytes=row["bytes"] / ours / 1e9,
                notes=notes, implementation=json.loads(bench.lib.bench_implementation(handle)))


def rounds(bench, calls):
    counts, times = [], {}
    for name, call in calls:
        bench.lib.bench_settle()
        seconds = call(1)
        times[name] = min(seconds, times.get(name, seconds))
        # A slow loop is not worth more than its first call.
        counts.append(0 if name == "plain loop" and seconds > 0.02 else max(1, min(2000, int(bench.options.turn / max(seconds, 1e-8)))))
    for r in range(bench.options.rounds):
        for k in range(len(calls)):
            j = (k + r) % len(calls)
            name, call = calls[j]
            if counts[j] == 0:
                continue
            if name == "ours":  # the workers of the peers' OpenMP spin after a call
                bench.lib.bench_settle()
            times[name] = min(times[name], call(counts[j]))
    return times


def line(r):
    def ratio(value, width):
        return f"{value:{width}.2f}" if value else " " * (width - 1) + "-"
    notes = "".join("; NOTE " + note for note in r["notes"])
    rate = f"{r['gflops']:.0f} GFLOP/s" if r["gflops"] else f"{r['gbytes']:.1f} GB/s"
    names = f"; {r['implementation']}" if r["implementation"] else ""
    return f"{r['ms']:9.4f} {ratio(r['ratio'], 6)} {ratio(r['loop'], 7)} {ratio(r['own_f32'], 5)}  {r['case']}; {r['peer'] or 'no peer'}; {rate}{names}{notes}"


def summary(results, refused):
    out = ["", "geometric means over drawn shapes: peer = the better of PyTorch and oneDNN, loop = a plain loop in f32, both / ours; "
           "f32 = our f32 / our 16-bit or Int8",
           f"{'family':28} {'cases':>5} {'peer':>6} {'<0.7':>5} {'<0.4':>5} {'least':>6} {'loop':>6} {'slower':>6} {'f32':>6} {'<0.95':>5}"]
    groups = {}
    for r in results:
        groups.setdefault(f"{r['family']} {r['direction']}", []).append(r)
    for name, rows in groups.items():
        ratios, own = ([r[k] for r in rows if r[k]] for k in ("ratio", "own_f32"))
        loops = [r["loop"] for r in counted(rows)]

        def share(values, bound):
            return f"{100 * sum(v < bound for v in values) / len(values):.0f}%" if values else "-"
        out.append(f"{name:28} {len(rows):5} {report.mean(ratios):6.2f} {share(ratios, 0.7):>5} {share(ratios, 0.4):>5} "
                   f"{min(ratios, default=0):6.2f} {report.mean(loops):6.1f} {sum(v < 1 for v in loops):6} {report.mean(own):6.2f} "
                   f"{sum(v < 0.95 for v in own):5}")
    out += worst("the worst ten against the better peer", results, "ratio", 1.0)
    out += worst("slower than the plain loop", counted(results), "loop", 1.0)
    out += worst("16-bit and Int8 slower than our own f32", results, "own_f32", 0.95)
    differing = [r for r in results if any("differs" in n for n in r["notes"])]
    if differing:
        out += ["", f"{len(differing)} cases whose numbers differ:"] + [f"  {r['case']}: {'; '.join(r['notes'])}" for r in differing[:20]]
    if refused:
        out += ["", f"{len(refused)} cases that were refused:"] + [f"  {r['case']}: {r['error']}" for r in refused[:20]]
    return "\n".join(out)


def counted(rows):
    """Where the loop is compared: below a microsecond a call is its checks, which a loop does not make."""
    return [r for r in rows if r["loop"] and r["ms"] > 1e-3]


def worst(title, results, key, bound):
    below = sorted((r for r in results if r[key] and r[key] < bound), key=lambda r: r[key])[:10]
    if not below:
        return []
    return ["", f"{title}:"] + [f"  {r[key]:5.2f}  make bench CASE=\"{r['case']}\"" for r in below]

