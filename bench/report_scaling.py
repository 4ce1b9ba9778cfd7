"""How the times of a run with several numbers of threads are shown: a table and a plot (SVG) of the speed-up over one thread, or
over the least that was asked for, ours and that of the best peer, by family."""

import html
import math
import os

from report import mean


def speed_ups(results):
    """{family: {"ours" | "peer": {threads: geometric mean over the rows that were timed with every number of threads}}}"""
    counts = sorted({r["threads"] for r in results})
    rows = {}
    for r in results:
        rows.setdefault((r["family"], r["op"], r["direction"], r["shape"], r["type"]), {})[r["threads"]] = r
    families = {}
    for key, by_threads in rows.items():
        if len(by_threads) < len(counts):
            continue
        first = by_threads[counts[0]]
        for side, time in (("ours", "ms"), ("peer", "peer_ms")):
            if all(by_threads[n][time] for n in counts):
                for n in counts:
                    families.setdefault(key[0], {}).setdefault(side, {}).setdefault(n, []).append(first[time] / by_threads[n][time])
    return {family: {side: {n: mean(values) for n, values in by_threads.items()} for side, by_threads in sides.items()}
            for family, sides in families.items()}


def summary(results):
    counts = sorted({r["threads"] for r in results})
    lines = ["", f"speed-up over {counts[0]} thread{'s' if counts[0] > 1 else ''}, geometric means: ours / the best peer's",
             f"{'family':16} " + " ".join(f"{n:>11}" for n in counts[1:])]
    for family, sides in speed_ups(results).items():
        cells = (f"{sides['ours'][n]:.2f} / {sides['peer'][n]:.2f}" if "peer" in sides else f"{sides['ours'][n]:.2f} /    -"
                 for n in counts[1:])
        lines.append(f"{family:16} " + " ".join(f"{c:>11}" for c in cells))
    return "\n".join(lines)


def plot(results, m, folder):
    """scaling.svg: a small diagram for each family, threads to the right and speed-up upwards, both logarithmic."""
    counts, families = sorted({r["threads"] for r in results}), speed_ups(results)
    side, across, left, top = 190, 4, 46, 60
    down = math.ceil(len(families) / across)
    span = math.log(max(2.0, counts[-1] / counts[0]))
    s = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{across * side + 20}" height="{down * side + top}" '
         'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>',
         f'<text x="10" y="20" font-size="13">{html.escape(f"Speed-up over {counts[0]} thread: " + m["cpu"])}</text>',
         '<text x="10" y="38"><tspan fill="#204a87">ours</tspan>, <tspan fill="#cc6600">best peer</tspan>, '
         '<tspan fill="#999">as many times as threads</tspan></text>']
    for k, (family, sides) in enumerate(families.items()):
        x0, y0, size = left + k % across * side, top + k // across * side + 120, 120

        def at(n, value):
            return (f"{x0 + size * math.log(n / counts[0]) / span:.1f},"
                    f"{y0 - size * max(-0.1, math.log(value)) / span:.1f}")
        s.append(f'<text x="{x0}" y="{y0 - size - 8}">{html.escape(family)}</text>')
        s.append(f'<path d="M{x0} {y0 - size} v{size} h{size}" fill="none" stroke="#888"/>')
        for n in counts:
            place = at(n, 1).split(",")[0]
            s.append(f'<text x="{place}" y="{y0 + 14}" text-anchor="middle">{n}</text>')
            s.append(f'<text x="{x0 - 4}" y="{at(n, n / counts[0]).split(",")[1]}" text-anchor="end">{n / counts[0]:g}</text>')
        ideal = " ".join(at(n, n / counts[0]) for n in counts)
        s.append(f'<polyline points="{ideal}" fill="none" stroke="#999" stroke-dasharray="3 3"/>')
        for name, color in (("peer", "#cc6600"), ("ours", "#204a87")):
            if name in sides:
                points = " ".join(at(n, sides[name][n]) for n in counts)
                s.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
    s.append("</svg>\n")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "scaling.svg"), "w") as f:
        f.write("\n".join(s))
