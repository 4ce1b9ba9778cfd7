"""How the results of bench.py are shown: lines, the summary with its bars, and the plots of docs/performance.md (SVG, drawn here).

    report.py bench.json PAGE.md        a page of its own for the results of another machine
"""

import html
import json
import math
import os
import platform
import re
import subprocess
import sys

# 'better': the faster peer; else the name of the one that the bar speaks of.
BARS = {
    "pool_forward": ("oneDNN", 2.5), "pool_backward": ("oneDNN", 2.5), "conv": ("better", 1.2), "conv_small": ("better", 3.0),
    "fully_connected": ("better", 1.1), "normalization": ("better", 2.0), "loss": ("PyTorch", 2.0),
    "optimizer": ("PyTorch", 3.0), "bf16": ("better", 1.0), "step_small": ("PyTorch", 8.0), "step_large": ("PyTorch", 2.0),
}


def machine(found, torch_version, cores):
    def text(path, pattern):
        with open(path) as f:
            match = re.search(pattern, f.read(), re.M)
        return match.group(1).strip() if match else "unknown"
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    found.update(cpu=text("/proc/cpuinfo", r"^model name\s*:\s*(.*)$"), cores=cores, system=platform.platform(),
                 PyTorch=torch_version, commit=commit)
    return found


def heading(m):
    limits = ", ".join(f"{n} threads {v['operations'] / 1e9:.0f} GFLOP/s FMA and {v['bytes'] / 1e9:.1f} GB/s copy"
                       for n, v in m["limits"].items())
    return (f"{m['cpu']}, {m['cores']} cores, {m['isa']}; oneDNN {m.get('oneDNN', 'not here')}, PyTorch "
            f"{m['PyTorch'] or 'not here'}; limits: {limits}\n"
            f"{'family':16} {'what':58} {'ms':>9} {'limit':>6}  peer, its ms, ratio (above 1: ours is faster); others' ms; implementation")


def line(r):
    what = f"{r['op']} {r['direction']} {r['shape']} {r['type']} t{r['threads']}"
    share = f"{100 * r['limit_share']:5.0f}%" if r["limit_share"] else "      "
    peer = f"{r['peer']} {r['peer_ms']:.4g} {r['ratio']:.2f}" if r["peer"] else "no peer"
    others = "; ".join(f"{n} {ms:.4g}" for n, ms in r["others_ms"].items())
    memory = f"; peak MB {r['memory_mb']:.0f}, {r.get('peer_memory_mb') or 0:.0f}" if r.get("memory_mb") is not None else ""
    return (f"{r['family']:16} {what:58} {r['ms']:9.4g} {share}  {peer}{'; ' + others if others else ''}{memory}"
            + (f"; {r['implementation']}" if r.get("implementation") else ""))


def mean(values):
    values = [v for v in values if v]
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else 0


def by_family(results, cores):
    families = {}
    for r in results:
        if r["threads"] == cores:
            families.setdefault(r["family"], []).append(r)
    return families


def counted(family, rows):
    """The rows that a bar speaks of: pooling and convolution in f32."""
    return rows if family in ("bf16", "f16") else [r for r in rows if r["type"] == "f32"]


def remark(family, rows):
    """What a bar asks beside the ratio."""
    large = [r["limit_share"] for r in rows if r["limit_share"] and r["tensor_mb"] >= 64]
    if family.startswith("pool") and large:
        return f"tensors of 64 MB and more at {100 * mean(large):.0f} % of copy (bar 75)"
    if family == "optimizer":
        return f"{100 * mean([r['limit_share'] for r in rows]):.0f} % of copy (bar 85)"
    if family == "conv":
        square = [r["compute_share"] for r in rows if " 3x3" in r["shape"] and "g32" not in r["shape"]]
        return f"3x3 at {100 * mean(square):.0f} % of FMA peak (bar 80)" if square else ""
    if family == "bf16":
        return f"{mean([r.get('ratio_own_f32') for r in rows]):.2f} times our f32 (bar 2)"
    return ""


def families(results, cores):
    """One tuple per family: name, rows, mean ratio, bar, least ratio, rows below 0.9, remark."""
    for family, rows in by_family(results, cores).items():
        rows = counted(family, rows)
        ratios = [r["ratio"] for r in rows if r["ratio"]]
        if not ratios:
            continue
        yield (family, len(ratios), mean(ratios), BARS.get(family, ("", None))[1], min(ratios), sum(v < 0.9 for v in ratios),
               remark(family, rows))


def summary(results, cores):
    lines = ["", f"geometric means, {cores} threads",
             f"{'family':16} {'rows':>4} {'ratio':>6} {'bar':>5} {'least':>6} {'<0.9':>5}"]
    for family, count, ratio, bar, least, below, text in families(results, cores):
        lines.append(f"{family:16} {count:4} {ratio:6.2f} {bar or '':>5} {least:6.2f} {below:5}  {text}")
    return "\n".join(lines)


def short_table(results, cores):
    out = ["| family | rows | times as fast (geometric mean) | bar | least | below 0.9 | |",
           "| --- | --- | --- | --- | --- | --- | --- |"]
    for family, count, ratio, bar, least, below, text in families(results, cores):
        out.append(f"| {family} | {count} | {ratio:.2f} | {bar or ''} | {least:.2f} | {below or ''} | {text} |")
    return "\n".join(out)


def table(results):
    out = ["| family | what | threads | ms | of the limit | peer | its ms | ratio | others, ms | implementation |",
           "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for r in results:
        names = r.get("implementation", "").replace("+", " + ")
        share = f"{100 * r['limit_share']:.0f} %" if r["limit_share"] else ""
        peer = f"{r['peer']} | {r['peer_ms']:.4g} | {r['ratio']:.2f}" if r["peer"] else " | | "
        others = "; ".join(f"{n} {ms:.4g}" for n, ms in r["others_ms"].items())
        if r.get("memory_mb") is not None:
            others += f"peak memory {r['memory_mb']:.0f} MB, PyTorch {r.get('peer_memory_mb') or 0:.0f} MB"
        out.append(f"| {r['family']} | {r['op']}, {r['direction']}, {r['shape']} {r['type']} | {r['threads']} | {r['ms']:.4g} | "
                   f"{share} | {peer} | {others} | {names} |")
    return "\n".join(out)


def about(m):
    limits = "; ".join(f"{n} threads: {v['operations'] / 1e9:.0f} GFLOP/s FMA, {v['bytes'] / 1e9:.0f} GB/s copy"
                       for n, v in m["limits"].items())
    return (f"{m['cpu']}, {m['cores']} cores ({m['isa']}), {m['system']}; oneDNN {m.get('oneDNN', '-')}, PyTorch "
            f"{m['PyTorch'] or '-'}; commit {m['commit']}. Limits at the start of the run: {limits}.")


def page(source, path):
    with open(source) as f:
        found = json.load(f)
    m, results = found["machine"], found["rows"]
    with open(path, "w") as f:
        f.write(f"# Performance on {m['cpu']}\n\nWritten by `bench/report.py` from a run of `make bench`; how to read it: "
                f"[performance.md](performance.md).\n\n{about(m)}\n\n{short_table(results, m['cores'])}\n\n{table(results)}\n")


def document(results, m, cores, root):
    """Writes the results into docs/performance.md, between its markers, and docs/plots, which the README shows."""
    plots(results, m, cores, os.path.join(root, "docs", "plots"))
    for name, marks in (("docs/performance.md", {"machine": about(m), "summary": short_table(results, cores),
                                                 "rows": table(results)}),):
        path = os.path.join(root, name)
        with open(path) as f:
            text = f.read()
        for mark, body in marks.items():
            begin, end = f"<!-- bench {mark} -->", f"<!-- end {mark} -->"
            if begin in text and end in text:
                head, rest = text.split(begin, 1)
                text = head + begin + "\n" + body + "\n" + end + rest.split(end, 1)[1]
        with open(path, "w") as f:
            f.write(text)


def plots(results, m, cores, folder):
    """ratios.svg: every row a dot on a logarithmic axis, one line per family, its mean and its bar. limits.svg: shares of the limit."""
    families = {f: counted(f, rows) for f, rows in by_family(results, cores).items()}
    caption = f"{m['cpu']}, {cores} threads; oneDNN {m.get('oneDNN', '-')}, PyTorch {m['PyTorch'] or '-'}"
    os.makedirs(folder, exist_ok=True)
    dots(os.path.join(folder, "ratios.svg"), "Times as fast as the peer: " + caption,
         {f: [r["ratio"] for r in rows if r["ratio"]] for f, rows in families.items()}, {f: b[1] for f, b in BARS.items()},
         (0.25, 32), [0.25, 0.5, 1, 2, 4, 8, 16, 32])
    dots(os.path.join(folder, "limits.svg"), "Share of the machine's limit: " + caption,
         {f: [r["limit_share"] for r in rows if r["limit_share"]] for f, rows in families.items()
          if not f.startswith(("step", "loss", "overhead"))}, {}, (0.0625, 2), [0.0625, 0.125, 0.25, 0.5, 1, 2])


def dots(path, title, data, bars, span, ticks):
    left, width, step, top = 150, 640, 26, 46
    height = top + step * len(data) + 30
    low, high = (math.log(v) for v in span)

    def x(v):
        return left + width * (min(max(math.log(v), low), high) - low) / (high - low)
    s = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 30}" height="{height}" font-family="sans-serif" font-size="12">',
         '<rect width="100%" height="100%" fill="white"/>',
         f'<text x="10" y="20" font-size="13">{html.escape(title)}</text>']
    for t in ticks:
        s.append(f'<line x1="{x(t):.1f}" x2="{x(t):.1f}" y1="{top - 10}" y2="{height - 24}" stroke="{"#888" if t == 1 else "#ddd"}"/>')
        s.append(f'<text x="{x(t):.1f}" y="{height - 8}" text-anchor="middle">{t:g}</text>')
    for k, (family, values) in enumerate(data.items()):
        y = top + step * k + 6
        s.append(f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{html.escape(family)}</text>')
        s += [f'<circle cx="{x(v):.1f}" cy="{y}" r="3" fill="#3465a4" fill-opacity="0.45"/>' for v in values]
        if values:
            s.append(f'<path d="M{x(mean(values)):.1f} {y - 8} v16" stroke="#204a87" stroke-width="3"/>')
        if bars.get(family):
            s.append(f'<path d="M{x(bars[family]):.1f} {y - 9} v18" stroke="#cc0000" stroke-width="2" stroke-dasharray="3 2"/>')
    s.append("</svg>\n")
    with open(path, "w") as f:
        f.write("\n".join(s))


if __name__ == "__main__":
    page(*sys.argv[1:])
