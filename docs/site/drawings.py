#!/usr/bin/env python3
"""The drawings of the pages: grids of numbers, before and after. Writes docs/drawings/*.svg; `--check` says which of them are
not what this file draws. White cards, so that they read on light and dark pages."""
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "drawings"
CELL, GAP, INK, SOFT = 34, 46, "#1f2933", "#627d98"
COLOURS = {"a": "#dbeafe", "b": "#dcfce7", "c": "#fef3c7", "d": "#fee2e2", "e": "#ede9fe", "x": "#f1f5f9", "": "white"}


def text(x, y, what, size=13, colour=INK, anchor="middle", weight="normal"):
    what = str(what).replace("&", "&amp;").replace("<", "&lt;")
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}">'
            f"{what}</text>")


def card(name, width, height, parts, about):
    body = "\n".join(parts)
    return name, (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
                  f'font-family="ui-monospace, DejaVu Sans Mono, monospace" role="img">\n<title>{about}</title>\n'
                  f'<rect width="100%" height="100%" rx="8" fill="white" stroke="#cbd5e1"/>\n{body}\n</svg>\n')


def grid(x, y, rows, title="", colours=None):
    """Cells from (x, y); `colours` has a letter for each cell. Returns parts, width, height."""
    parts, across = [], max(len(row) for row in rows)
    wide = max(CELL, 12 + 8.2 * max(len(str(v)) for row in rows for v in row))
    for r, row in enumerate(rows):
        for c, value in enumerate(row):
            fill = COLOURS[colours[r][c] if colours else ""]
            parts.append(f'<rect x="{x + c * wide:g}" y="{y + r * CELL:g}" width="{wide:g}" height="{CELL}" fill="{fill}" stroke="#94a3b8"/>')
            parts.append(text(x + (c + 0.5) * wide, y + (r + 0.64) * CELL, value))
    if title:
        parts.append(text(x + across * wide / 2, y - 9, title, 12, SOFT))
    return parts, across * wide, len(rows) * CELL


def steps(name, about, *pieces):
    """Grids beside each other, (title, rows[, colours]), with words between them."""
    tall = max(len(p[1]) for p in pieces if isinstance(p, tuple)) * CELL
    x, parts = 20, []
    for piece in pieces:
        if isinstance(piece, tuple):
            title, rows, *colours = piece
            measured = grid(0, 0, rows)
            least = 7.3 * len(title)   # a title may be wider than its cells
            shift = max(0, (least - measured[1]) / 2)
            made, width, height = grid(x + shift, 34 + (tall - len(rows) * CELL) / 2, rows, title, colours[0] if colours else None)
            parts += made
            x += width + 2 * shift + 10
        else:
            width = max(30, 7.8 * len(piece))
            parts.append(text(x + width / 2, 34 + tall / 2 + 5, piece, 13, SOFT))
            x += width + 10
    return card(name, x + 10, tall + 54, parts, about)


def layouts():
    yield steps("layout-matrix", "A matrix of 2 rows and 3 columns, and its memory",
                ("size[0] = 3 columns, size[1] = 2 rows", [[1, 2, 3], [4, 5, 6]], ["aaa", "bbb"]), "lies in memory as",
                ("stride[1] = 3 from row to row", [[1, 2, 3, 4, 5, 6]], ["aaabbb"]))
    yield steps("layout-image", "An image of 2 channels, 3 pixels wide, 2 high",
                ("channel 0", [[0, 1, 2], [3, 4, 5]], ["aaa", "aaa"]), ("channel 1", [[6, 7, 8], [9, 10, 11]], ["bbb", "bbb"]),
                "numbered by their place in memory: x + 3 y + 6 c")
    yield steps("layout-window", "A window of 2 by 2 in a matrix of 3 by 4",
                ("data points at 6, size = 2, 2, stride = 1, 4", [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]], ["xxxx", "xaax", "xaax"]),
                "is", ("", [[6, 7], [10, 11]], ["aa", "aa"]))
    yield steps("layout-first-last", "FirstMajor and LastMajor: the same memory, sizes written in both orders",
                ("memory", [[1, 2, 3, 4, 5, 6]], ["aaabbb"]), "=",
                ("NumPy (2, 3) = 2DFirstMajor 2, 3 = 2DLastMajor 3, 2", [[1, 2, 3], [4, 5, 6]], ["aaa", "bbb"]))
    yield steps("layout-sequence", "Two sequences of two steps, as SNE and as NSE",
                ("SNE: (steps, batch, features)", [["s0 n0", "s0 n1", "s1 n0", "s1 n1"]], ["abab"]),
                ("NSE: (batch, steps, features)", [["n0 s0", "n0 s1", "n1 s0", "n1 s1"]], ["aabb"]))
    yield steps("layout-batch", "A batch of two samples", ("sample 0", [["x0", "x1", "x2"]], ["aaa"]), ("in_stride = 4: a gap", [["-"]], ["x"]),
                ("sample 1", [["x0", "x1", "x2"]], ["bbb"]))


def operators():
    yield steps("activation", "ReLU of five numbers", ("x", [[-2, -1, 0, 1, 2]], ["ddxbb"]), "ReLU", ("y = max(0, x)", [[0, 0, 0, 1, 2]], ["xxxbb"]))
    yield steps("arithmetic", "A row added to every row of a matrix", ("a", [[1, 2], [3, 4]]), "+", ("b repeats", [[10, 20]], ["cc"]), "=",
                ("y", [[11, 22], [13, 24]]))
    yield steps("attention", "Two queries attend to three keys", ("queries", [["q0"], ["q1"]], ["a", "b"]), "· keys",
                ("softmax of each row", [[0.8, 0.1, 0.1], [0.2, 0.2, 0.6]], ["aaa", "bbb"]), "· values", ("y", [["y0"], ["y1"]], ["a", "b"]))
    yield steps("convolution", "A 2 by 2 kernel on an image of 3 by 3", ("x", [[1, 2, 3], [4, 5, 6], [7, 8, 9]], ["aax", "aax", "xxx"]), "*",
                ("w", [[1, 0], [0, 1]], ["cc", "cc"]), "=", ("y", [[6, 8], [12, 14]], ["ax", "xx"]))
    yield steps("transposed-convolution", "Each input pixel adds its multiple of the kernel, two apart", ("x", [[1, 2], [3, 4]], ["ab", "cd"]),
                "* ones, stride 2 =", ("y", [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]], ["aabb", "aabb", "ccdd", "ccdd"]))
    yield steps("pooling", "Max pooling 2 by 2", ("x", [[1, 5, 2, 0], [3, 4, 1, 7], [8, 0, 2, 2], [6, 1, 3, 9]], ["aabb", "aabb", "ccdd", "ccdd"]),
                "max", ("y", [[5, 7], [8, 9]], ["ab", "cd"]))
    yield steps("fully-connected", "A matrix times a vector plus a bias", ("W", [[1, 2, 3], [4, 5, 6]], ["aaa", "bbb"]), "·", ("x", [[1], [1], [1]]), "+",
                ("b", [[0.5], [-1]]), "=", ("y", [[6.5], [14]], ["a", "b"]))
    yield steps("normalization", "Four numbers to mean 0 and variance 1", ("x, mean 5, deviation 2", [[3, 7, 3, 7]]), "",
                ("(x - mean) / deviation", [[-1, 1, -1, 1]], ["bbbb"]))
    yield steps("fused", "Two layers as one filter", ("x", [["x"]]), "convolution →", ("never in memory twice", [["middle"]], ["c"]), "→ normalization →",
                ("y", [["y"]]))
    yield steps("loss", "Softmax cross-entropy of three logits", ("logits", [[2, 1, 0]]), "softmax", ("p", [[0.67, 0.24, 0.09]], ["bxx"]), "label 0:",
                ("-log p", [[0.41]], ["d"]))
    yield steps("optimizer", "A step against the gradient", ("w", [[1.0, 2.0]]), "- 0.1 ·", ("gradient", [[5, -5]], ["dd"]), "=", ("w", [[0.5, 2.5]], ["bb"]))
    yield steps("norms", "A vector of norm 5 clipped to norm 1", ("x, norm 5", [[3, 4]]), "clip to 1", ("y, norm 1", [[0.6, 0.8]], ["bb"]))
    yield steps("dropout", "Half of the numbers become 0, the others double", ("x", [[1, 1, 1, 1]]), "rate 0.5", ("y", [[2, 0, 2, 0]], ["bxbx"]))
    yield steps("embedding", "Indices choose rows", ("x", [[2, 0]], ["ca"]), "rows of", ("dictionary", [[1, 2], [3, 4], [5, 6]], ["aa", "xx", "cc"]), "=",
                ("y", [[5, 6], [1, 2]], ["cc", "aa"]))
    yield steps("lstm", "The state goes from step to step", ("x", [["x0", "x1", "x2"]]), "→", ("h, c carried along", [["step 0", "step 1", "step 2"]], ["aaa"]), "→",
                ("h", [["h0", "h1", "h2"]], ["bbb"]))
    yield steps("matmul", "A product of matrices", ("A", [[1, 2], [3, 4]], ["aa", "xx"]), "·", ("B", [[5, 6], [7, 8]], ["cx", "cx"]), "=",
                ("C", [[19, 22], [43, 50]], ["bx", "xx"]))
    yield steps("contraction", "a_ij, b_j -> y_i", ("a_ij", [[1, 2], [3, 4]], ["aa", "bb"]), ("b_j", [[10, 1]]), "sum over j", ("y_i", [[12], [34]], ["a", "b"]))
    yield steps("gram", "Products of every two channels", ("channel 0", [[1, 2]], ["aa"]), ("channel 1", [[3, 4]], ["bb"]), "→",
                ("G", [[5, 11], [11, 25]], ["ax", "xb"]))
    yield steps("permute", "A matrix transposed", ("x", [[1, 2, 3], [4, 5, 6]], ["aaa", "bbb"]), "axes 1, 0", ("y", [[1, 4], [2, 5], [3, 6]], ["ab", "ab", "ab"]))
    yield steps("copy", "The same numbers in another order of memory", ("row major", [[1, 2], [3, 4]], ["aa", "bb"]), "in memory",
                ("1 2 3 4", [[1, 2, 3, 4]], ["aabb"]), "column major:", ("1 3 2 4", [[1, 3, 2, 4]], ["abab"]))
    yield steps("padding", "Reflection by one on each side", ("x", [[1, 2, 3]]), "reflect 1", ("y", [[2, 1, 2, 3, 2]], ["cxxxc"]))
    yield steps("resize", "Twice as wide, linear", ("x", [[0, 4]], ["ab"]), "linear", ("y", [[0, 1, 3, 4]], ["axxb"]))
    yield steps("crop-resize", "A box of an image", ("x", [[1, 2, 3], [4, 5, 6], [7, 8, 9]], ["xxx", "xaa", "xaa"]), "box, 2 by 2", ("y", [[5, 6], [8, 9]], ["aa", "aa"]))
    yield steps("reduction", "Sums of rows", ("x", [[1, 2, 3], [4, 5, 6]], ["aaa", "bbb"]), "sum", ("y", [[6], [15]], ["a", "b"]))
    yield steps("quantization", "Floats to integers", ("f32", [[0.1, 1.26, 9.9]]), "scale 10", ("int8", [[1, 13, 99]], ["bbb"]))
    yield steps("gather", "Gather takes, scatter puts", ("x", [[10, 20, 30, 40]], ["xaxb"]), "indices 3, 1", ("y", [[40, 20]], ["ba"]))
    yield steps("compare", "Which are greater", ("a", [[1, 5, 3]]), ">", ("b", [[2, 4, 3]]), "=", ("y", [[0, 1, 0]], ["xbx"]))
    yield steps("tile", "A row three times", ("x", [[1, 2]], ["aa"]), "x 3", ("y", [[1, 2, 1, 2, 1, 2]], ["aabbcc"]))
    yield steps("band-part", "The diagonal and what is above it", ("x", [[1, 2, 3], [4, 5, 6], [7, 8, 9]]), "lower 0, upper -1",
                ("y", [[1, 2, 3], [0, 5, 6], [0, 0, 9]], ["aaa", "xaa", "xxa"]))
    yield steps("shuffle", "Four channels become pixels", ("4 channels of 1 pixel", [[1, 2, 3, 4]], ["abcd"]), "pixel shuffle", ("1 channel", [[1, 2], [3, 4]], ["ab", "cd"]))
    yield steps("topk", "The two largest, and where they stood", ("x", [[3, 9, 1, 7]], ["xaxb"]), "K = 2", ("values", [[9, 7]], ["ab"]), ("indices", [[1, 3]], ["ab"]))
    yield steps("random", "A seed and a position", ("seed 1", [["word 0", "word 1", "word 2"]]), "uniform", ("y in [0, 1)", [[0.27, 0.91, 0.05]], ["bbb"]))
    yield steps("nearest-neighbors", "The nearest of three samples", ("samples", [[0], [10], [12]], ["x", "x", "b"]), "query 11.5", ("index, distance", [[2, 0.5]], ["bb"]))
    yield steps("mps-pooling", "Windows are centred on pixels", ("x", [[1, 2, 3], [4, 5, 6], [7, 8, 9]], ["aax", "aax", "xxx"]), "3 by 3, stride 2, max",
                ("y", [[5, 6], [8, 9]], ["ax", "xx"]))


def main():
    check = "--check" in sys.argv
    FOLDER.mkdir(exist_ok=True)
    wrong, names = [], set()
    for make in (layouts, operators):
        for name, svg in make():
            path = FOLDER / f"{name}.svg"
            names.add(path.name)
            if check and (not path.exists() or path.read_text(encoding="utf-8") != svg):
                wrong.append(f"{path.name} is not what docs/site/drawings.py draws: run it")
            elif not check:
                path.write_text(svg, encoding="utf-8")
    wrong += [f"{path.name} is drawn by nobody" for path in FOLDER.glob("*.svg") if path.name not in names]
    print(f"{len(names)} drawings")
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
