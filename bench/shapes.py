"""Layers drawn by seed, as lines that bench/description.h reads: what users have, not only what the list of `make bench` has.

    shapes.py SEED [FAMILY]        prints the lines

Every family has named cases (networks that everybody uses, and shapes that were slow once) and as many drawn ones as make up
COUNT. A case stays below LARGEST operations and BYTES, so that its plain loop takes no minutes.
"""

import math
import random
import sys

COUNT = 72
LARGEST, BYTES = 6e8, 48e6  # multiplications and additions of a product; bytes of a tensor

CHANNELS = (1, 2, 3, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 240, 256, 320, 384, 480, 512, 576, 672, 768,
            960, 1024)
MAPS = (1, 2, 3, 4, 5, 7, 8, 10, 12, 13, 14, 16, 19, 20, 24, 26, 28, 32, 38, 40, 48, 52, 56, 64, 75, 80, 96, 104, 112, 128, 150, 160,
        192, 208, 224, 256, 299, 320, 384, 416, 512, 640)
BATCHES = (1, 1, 1, 2, 4, 8, 16, 32, 64, 128)
KERNELS = (1, 1, 2, 3, 3, 3, 3, 4, 5, 5, 6, 7, 7, 8, 9, 10, 11, 12, 13)


class Draw(random.Random):
    def odd(self, low, high):
        """Any number, small ones as likely as large ones."""
        return max(low, min(high, round(math.exp(self.uniform(math.log(low), math.log(high + 1))))))

    def channels(self, most=1024):
        return min(most, self.choice(CHANNELS) if self.random() < 0.7 else self.odd(1, most))

    def map(self, most=640):
        return min(most, self.choice(MAPS) if self.random() < 0.7 else self.odd(1, most))

    def kind(self, *other):
        """A type: f32 most often."""
        return self.choice(("f32",) * 3 + other)

    def stride(self):
        return self.choice((1, 1, 1, 2, 2, 3, 4, 5))


def text(family, op, direction, kind, **numbers):
    return " ".join([family, op, direction, kind] + [f"{k}={v}" for k, v in numbers.items() if v is not None])


def positions(size, pad, k, dilation, stride):
    return (size + 2 * pad - (k - 1) * dilation - 1) // stride + 1


def shrink(draw, n, h, w, too_large):
    """Smaller batches, then smaller maps, until the case is small enough."""
    while too_large(n, h, w) and n > 1:
        n //= 2
    while too_large(n, h, w) and (h > 1 or w > 1):
        h, w = (h + 1) // 2, (w + 1) // 2
    return n, h, w


CONV = [  # n i h w o kh kw sy sx py px dy dx g: what is common in networks, and what was slow once
    (1, 512, 1, 1, 512, 1, 1, 1, 1, 0, 0, 1, 1, 1), (1, 256, 1, 1, 256, 3, 3, 1, 1, 1, 1, 1, 1, 1), (1, 128, 4, 4, 128, 3, 3, 1, 1, 1, 1, 1, 1, 1),
    (16, 100, 1, 1, 512, 4, 4, 1, 1, 3, 3, 1, 1, 1), (1, 1, 1, 16000, 64, 1, 80, 1, 4, 0, 0, 1, 1, 1), (8, 2, 1, 4096, 32, 1, 25, 1, 1, 0, 12, 1, 1, 1),
    (1, 64, 500, 1, 64, 3, 1, 1, 1, 1, 0, 1, 1, 1), (1, 64, 1, 500, 64, 1, 3, 1, 1, 0, 1, 1, 1, 1), (1, 256, 14, 14, 64, 3, 3, 1, 1, 6, 6, 6, 6, 1),
    (1, 64, 28, 28, 64, 9, 9, 1, 1, 4, 4, 1, 1, 1), (1, 32, 24, 24, 32, 13, 13, 1, 1, 6, 6, 1, 1, 1), (2, 3, 224, 224, 96, 16, 16, 16, 16, 0, 0, 1, 1, 1),
    (1, 512, 14, 14, 128, 1, 1, 1, 1, 0, 0, 1, 1, 1), (4, 3, 224, 224, 32, 3, 3, 2, 2, 1, 1, 1, 1, 1),
]
DEPTHWISE = [  # n c h w kh kw sy sx py px dy: MobileNetV3, EfficientNet, ConvNeXt
    (1, 256, 14, 14, 4, 4, 1, 1, 1, 1, 1), (1, 768, 7, 7, 7, 7, 1, 1, 3, 3, 1), (1, 96, 56, 56, 7, 7, 1, 1, 3, 3, 1), (1, 672, 14, 14, 5, 5, 2, 2, 2, 2, 1),
    (1, 1152, 7, 7, 5, 5, 1, 1, 2, 2, 1), (8, 240, 28, 28, 5, 5, 1, 1, 2, 2, 1), (4, 144, 56, 56, 3, 3, 2, 2, 1, 1, 1), (1, 384, 14, 14, 7, 7, 1, 1, 3, 3, 1),
    (1, 256, 28, 28, 3, 3, 1, 1, 2, 2, 2), (2, 64, 1, 1000, 1, 31, 1, 1, 0, 15, 1),
]


def conv(draw):
    names = ("n", "i", "h", "w", "o", "kh", "kw", "sy", "sx", "py", "px", "dy", "dx", "g")
    for k in range(COUNT):
        if k < len(CONV):
            n, i, h, w, o, kh, kw, sy, sx, py, px, dy, dx, g = CONV[k]
        else:
            n, i, o, g = draw.choice(BATCHES), draw.channels(), draw.channels(), 1
            kh = kw = draw.choice(KERNELS)
            sy = sx = draw.stride()
            dy = dx = draw.choice((1, 1, 1, 1, 2, 3, 6)) if 1 < kh < 8 else 1
            h, w = draw.map(), draw.map()
            kind = draw.random()
            if kind < 0.15:  # a signal: 1 x L or L x 1
                kw, kh, sy, dy, h, w = draw.odd(2, 64), 1, 1, 1, 1, draw.odd(16, 16000)
                i = draw.choice((1, 1, 2, 16, 64, 128))
                if draw.random() < 0.4:
                    kh, kw, sy, sx, dy, dx, h, w = kw, kh, sx, sy, dx, dy, w, h
            elif kind < 0.3:
                g = draw.choice((2, 4, 8, 32))
                i, o = max(1, i // g) * g, max(1, o // g) * g
            elif kind < 0.7:
                w = h
            py, px = (draw.choice((0, (kk - 1) * dd // 2)) for kk, dd in ((kh, dy), (kw, dx)))
            h, w = max(h, (kh - 1) * dy + 1 - 2 * py), max(w, (kw - 1) * dx + 1 - 2 * px)

            def large(n, h, w):
                oh, ow = positions(h, py, kh, dy, sy), positions(w, px, kw, dx, sx)
                return min(oh, ow) > 0 and (2.0 * n * i // g * o * kh * kw * oh * ow > LARGEST or 4 * n * max(i * h * w, o * oh * ow) > BYTES)
            n, h, w = shrink(draw, n, h, w, large)
            h, w = max(h, (kh - 1) * dy + 1 - 2 * py), max(w, (kw - 1) * dx + 1 - 2 * px)
            while large(n, h, w) and max(i, o) > g:  # still too large: a kernel as large as the map
                i, o = max(1, i // 2 // g) * g, max(1, o // 2 // g) * g
        kind = "f32" if k < len(CONV) else draw.kind("f16", "bf16")
        shape = dict(zip(names, (n, i, h, w, o, kh, kw, sy, sx, py, px, dy, dx, g)))
        for direction in ("forward", "dx", "dw"):
            yield text("conv", "convolution", direction, kind, **shape)
        if k % 12 == 0:
            yield text("conv", "convolution", "forward", "i8", **shape)


def depthwise(draw):
    for k in range(COUNT):
        if k < len(DEPTHWISE):
            n, c, h, w, kh, kw, sy, sx, py, px, d = DEPTHWISE[k]
        else:
            n, c, h, d = draw.choice(BATCHES), draw.channels(), draw.map(256), draw.choice((1, 1, 1, 1, 2, 3))
            kh = kw = draw.choice(KERNELS[2:])
            sy = sx = draw.stride()
            w = h if draw.random() < 0.7 else draw.map(256)
            if draw.random() < 0.12:
                kh, kw, sy, h, w = 1, draw.odd(2, 63), 1, 1, draw.odd(64, 8000)
            py, px = (draw.choice((0, (kk - 1) * d // 2, (kk - 1) * d // 2)) for kk in (kh, kw))
            n, h, w = shrink(draw, n, h, w, lambda n, h, w: 4 * n * c * h * w > BYTES / 4 or 2.0 * n * c * h * w * kh * kw > LARGEST / 3)
            h, w = max(h, (kh - 1) * d + 1 - 2 * py), max(w, (kw - 1) * d + 1 - 2 * px)
        kind = "f32" if k < len(DEPTHWISE) else draw.kind("f16", "bf16")
        for direction in ("forward", "dx", "dw"):
            yield text("depthwise", "convolution", direction, kind, n=n, i=c, h=h, w=w, o=c, kh=kh, kw=kw, sy=sy, sx=sx, py=py, px=px,
                       dy=d, dx=d, g=c)


POOL = [  # n c h w kh kw sy sx py px d
    (8, 64, 56, 56, 3, 3, 1, 1, 1, 1, 1), (8, 64, 56, 56, 3, 3, 3, 3, 0, 0, 1), (8, 64, 56, 56, 3, 3, 4, 4, 0, 0, 1), (4, 32, 56, 56, 5, 5, 1, 1, 2, 2, 1),
    (4, 32, 56, 56, 3, 3, 2, 2, 2, 2, 2), (2, 16, 40, 200, 1, 100, 1, 1, 0, 0, 1), (8, 8, 2000, 1, 4, 1, 4, 1, 0, 0, 1), (1, 512, 13, 13, 13, 13, 1, 1, 6, 6, 1),
    (1, 512, 13, 13, 5, 5, 1, 1, 2, 2, 1), (4, 192, 35, 35, 3, 3, 1, 1, 1, 1, 1), (8, 16, 112, 112, 8, 8, 8, 8, 0, 0, 1), (8, 256, 7, 7, 7, 7, 1, 1, 0, 0, 1),
]


def pool(draw):
    ops = ("max", "max", "max_index", "average", "average_padding", "l2")
    for k in range(COUNT):
        if k < len(POOL):
            n, c, h, w, kh, kw, sy, sx, py, px, d = POOL[k]
        else:
            n, c, h, d = draw.choice(BATCHES), draw.channels(512), draw.map(), 1
            w = h if draw.random() < 0.6 else draw.map()
            kh = kw = draw.choice((2, 2, 3, 3, 3, 4, 5, 5, 6, 7, 8, 9, 10, 11, 13, 16))
            if draw.random() < 0.2:
                kh, kw = draw.odd(1, 16), draw.odd(1, 100)
            sy = sx = draw.choice((1, 1, 2, 2, 2, 3, 4, 5, kh))
            if draw.random() < 0.2:
                sy, sx = draw.stride(), draw.stride()
            if draw.random() < 0.12:
                d = draw.choice((2, 3))
            py, px = draw.choice((0, kh // 2)), draw.choice((0, kw // 2))
            n, h, w = shrink(draw, n, h, w, lambda n, h, w: 4 * n * c * h * w > BYTES / 3 or n * c * h * w * kh * kw / sy / sx > LARGEST / 3)
            h, w = max(h, (kh - 1) * d + 1 - 2 * py), max(w, (kw - 1) * d + 1 - 2 * px)
        op = ops[k % len(ops)]
        kind = "f32" if k < len(POOL) else draw.kind("f16", "bf16")
        for direction in ("forward", "backward"):
            yield text("pool", op, direction, kind, n=n, c=c, h=h, w=w, kh=kh, kw=kw, sy=sy, sx=sx, py=py, px=px, dy=d, dx=d)


FULL = ((1, 784, 128), (32, 784, 128), (1, 4096, 4096), (128, 512, 10), (16, 2048, 1000), (1, 64, 64), (64, 300, 1), (1, 1, 1000), (7, 33, 65))


def fully_connected(draw):
    for k in range(COUNT):
        n, i, o = FULL[k] if k < len(FULL) else (draw.odd(1, 256), draw.odd(1, 6000), draw.odd(1, 6000))
        while 2.0 * n * i * o > LARGEST and n > 1:
            n //= 2
        while 4 * i * o > BYTES:
            i //= 2
        kind = "f32" if k < len(FULL) else draw.kind("f16", "bf16")
        for direction in ("forward", "dx", "dw"):
            yield text("fully_connected", "layer", direction, kind, n=n, **{"in": i, "out": o})
        if k % 3 == 0:
            yield text("fully_connected", "layer", "forward", "i8", n=n, **{"in": i, "out": o})
        if k % 9 == 0:
            yield text("fully_connected", "create", "forward", "f32", n=n, **{"in": i, "out": o})


NORM = [("instance", 8, 64, 1, 1), ("instance", 8, 64, 2, 2), ("instance", 8, 64, 3, 3), ("batch", 16, 64, 28, 28), ("layer", 128, 768, 1, 1),
        ("layer", 512, 64, 1, 1), ("group", 4, 320, 32, 32), ("layer", 2, 96, 56, 56), ("batch", 32, 512, 7, 7), ("batch", 128, 16, 5, 5)]


def normalization(draw):
    ops = ("batch", "instance", "layer", "group")
    for k in range(COUNT):
        if k < len(NORM):
            op, n, c, h, w = NORM[k]
        else:
            op, n, c, h = ops[k % 4], draw.choice(BATCHES), draw.channels(), draw.map(256)
            w = h if draw.random() < 0.6 else draw.map(256)
            if op == "layer" and draw.random() < 0.7:
                n, c, h, w = draw.odd(1, 4096), draw.odd(2, 2048), 1, 1
            n, h, w = shrink(draw, n, h, w, lambda n, h, w: 4 * n * c * h * w > BYTES / 3)
        if op in ("batch", "instance") and n * h * w < 2:
            n = 2
        groups = None
        if op == "group":
            groups = draw.choice([g for g in (1, 2, 4, 8, 16, 32, c) if c % g == 0 and c * h * w > g])
        kind = "f32" if k < len(NORM) else draw.choice(("f32", "f32", "f16", "bf16"))
        for direction in ("forward", "backward"):
            yield text("normalization", op, direction, kind, n=n, c=c, h=h, w=w, groups=groups)


def tensor(draw, rank, most=BYTES / 4):
    """A shape of rank axes; short and long ones anywhere."""
    while True:
        shape = [draw.choice(MAPS[:-6]) if draw.random() < 0.6 else draw.odd(1, 300) for _ in range(rank)]
        if draw.random() < 0.15:
            shape[draw.randrange(rank)] = draw.odd(100, 20000)
        if 8 <= math.prod(shape) <= most / 4:
            return shape


def letters(shape, prefix=""):
    return {prefix + "abcde"[k]: n for k, n in enumerate(shape)}


def reduction(draw):
    ops = ("sum", "mean", "max", "sum", "mean", "min", "sum_square", "l2", "log_sum_exp", "l1", "product", "argmax")
    named = [("sum", (64, 64, 16, 16), 12), ("sum", (64, 64, 16, 16), 13), ("mean", (32, 256, 14, 14), 12), ("max", (128, 1000), 2),
             ("sum", (128, 1000), 1), ("mean", (16, 7, 7, 512), 6), ("l2", (64, 64, 16, 16), 3)]
    for k in range(COUNT):
        if k < len(named):
            op, shape, mask = named[k]
        else:
            op, shape = ops[k % len(ops)], tensor(draw, draw.choice((1, 2, 3, 3, 4, 4)))
            mask = draw.randrange(1, 1 << len(shape))
            if op == "argmax":
                mask = 1 << draw.randrange(len(shape))
        kind = "f32" if k < len(named) else draw.kind("f16", "bf16")
        for last in (0, 1) if k < len(named) else (draw.randrange(2),):
            yield text("reduction", op, "forward", kind, **letters(shape), mask=mask, last=last)
            if op in ("sum", "mean", "max", "l2"):
                yield text("reduction", op, "backward", kind, **letters(shape), mask=mask, last=last)


def padding(draw):
    named = [("constant", (8, 64, 56, 56), (0, 0, 1, 1)), ("reflect", (8, 64, 56, 56), (0, 0, 3, 3)), ("constant", (32, 3, 224, 224), (0, 0, 2, 2))]
    for k in range(COUNT):
        if k < len(named):
            op, shape, pads = named[k]
        else:
            op, shape = draw.choice(("constant", "constant", "reflect", "symmetric")), tensor(draw, draw.choice((2, 3, 4, 4)))
            pads = [draw.choice((0, 1, 2, 3, 5, 9)) if a >= len(shape) - 2 or (op == "constant" and draw.random() < 0.2) else 0
                    for a in range(len(shape))]
            pads = [min(p, n - 1) for p, n in zip(pads, shape)]
        kind = draw.kind("f16", "bf16")
        for direction in ("forward", "backward"):
            yield text("padding", op, direction, kind, **letters(shape), **letters(pads, "p"), last=draw.randrange(2))


def resize(draw):
    for k in range(COUNT):
        n, c, h, w = draw.choice((1, 1, 2, 4, 8)), draw.channels(256), draw.map(256), draw.map(256)
        n, h, w = shrink(draw, n, h, w, lambda n, h, w: 4 * n * c * h * w > BYTES / 8)
        grow = draw.choice((2, 2, 2, 1.5, 3, 4, 0.5, 0.5, 0.25, 0.75, 1.37))
        oh, ow = max(1, int(h * grow)), max(1, int(w * grow))
        op = ("nearest", "linear", "linear", "linear_corners")[k % 4]
        kind = draw.kind("f16", "bf16")
        for direction in ("forward", "backward"):
            yield text("resize", op, direction, kind, n=n, c=c, h=h, w=w, oh=oh, ow=ow, last=draw.randrange(2) if k % 5 == 0 else None)


def embedding(draw):
    named = [(30000, 8, 1), (30000, 768, 128), (50257, 64, 512), (1000, 16, 4096), (100, 17, 10000), (30000, 3, 1000), (10, 300, 64)]
    for k in range(COUNT):
        rows, columns, count = named[k] if k < len(named) else (draw.odd(2, 50000), draw.odd(1, 1024), draw.odd(1, 8192))
        rows = max(1, min(rows, int(BYTES / 2 / 4 / columns)))
        count = max(1, min(count, int(BYTES / 2 / 4 / columns)))
        kind = draw.kind("f16", "bf16")
        for direction in ("forward", "backward"):
            yield text("embedding", "lookup", direction, kind, rows=rows, columns=columns, count=count)


def topk(draw):
    for k in range(COUNT):
        a, b = draw.odd(1, 2000), draw.odd(1, 50000)
        while 4 * a * b > BYTES / 12:
            a, b = (a + 1) // 2, (b + 1) // 2
        axis = draw.choice((1, 1, 0))
        most = (a, b)[axis]
        yield text("topk", "largest", "forward", draw.kind("f16"), a=a, b=b, axis=axis,
                   k=min(most, draw.choice((1, 1, 2, 5, 5, 10, 32, 100, most // 2 + 1, most))))


def gather(draw):
    ops = ("gather", "gather", "scatter_add", "scatter", "gather_nd", "scatter_nd")
    for k in range(COUNT):
        outer, size, inner = draw.odd(1, 256), draw.odd(1, 5000), draw.choice((1, 1, 2, 3, 4, 8, draw.odd(1, 512)))
        count = draw.odd(1, 5000)
        op = ops[k % len(ops)]
        while 4 * max(outer * size * inner, outer * count * inner) > BYTES / 4:
            outer, size, count = (outer + 1) // 2, (size + 1) // 2, (count + 1) // 2
        if op == "scatter":
            count = min(count, size)
        yield text("gather", op, "forward", draw.kind("f16"), outer=outer, size=size, inner=inner, count=count)


def tile(draw):
    named = [((100,), (1000,)), ((1, 64, 1), (8, 1, 196)), ((32, 1), (1, 512))]
    for k in range(COUNT):
        if k < len(named):
            shape, times = named[k]
        else:
            shape = tensor(draw, draw.choice((1, 2, 3)), BYTES / 64)
            times = [draw.choice((1, 1, 2, 3, 4, draw.odd(1, 50))) for _ in shape]
            while math.prod(shape) * math.prod(times) * 4 > BYTES / 3:
                times = [max(1, t // 2) for t in times]
        for direction in ("forward", "backward"):
            yield text("tile", "repeat", direction, draw.kind("f16"), **letters(shape), **letters(times, "r"))


def permute(draw):
    named = [((8, 64, 56, 56), "0231"), ((8, 56, 56, 64), "0312"), ((512, 768), "10"), ((4, 128, 12, 64), "0213"), ((16, 3, 224, 224), "0231")]
    for k in range(COUNT):
        if k < len(named):
            shape, order = named[k]
        else:
            shape = tensor(draw, draw.choice((2, 3, 4, 4, 5)))
            order = "".join(draw.sample("01234"[:len(shape)], len(shape)))
        for direction in ("forward", "backward")[:1 if k % 3 else 2]:
            yield text("permute", "axes", direction, draw.kind("f16", "bf16"), **letters(shape), axes=order, last=draw.randrange(2))


def copy(draw):
    for k in range(COUNT):
        shape = tensor(draw, draw.choice((1, 2, 3)))
        yield text("copy", draw.choice(("to_f32", "to_f16", "to_bf16")), "forward", draw.choice(("f32", "f16", "bf16")), **letters(shape),
                   skip=draw.choice((0, 0, 1, 3)))


ACTIVATIONS = ("relu", "leaky", "sigmoid", "tanh", "abs", "clamp", "gelu", "gelu_tanh", "silu", "elu", "softplus", "hard_swish",
               "hard_sigmoid", "log_sigmoid", "erf")


def activation(draw):
    soft = [(4096, 17), (4096, 24), (2000, 33), (128, 1000), (32, 50257), (1, 10), (8192, 64)]
    for k in range(COUNT):
        rows, columns = draw.odd(1, 2000), draw.odd(1, 20000)
        while 4 * rows * columns > BYTES / 6:
            rows, columns = (rows + 1) // 2, (columns + 1) // 2
        op = ACTIVATIONS[k % len(ACTIVATIONS)]
        if k % 3 == 0:
            op, (rows, columns) = ("softmax", "log_softmax")[k % 2], soft[k // 3] if k // 3 < len(soft) else (rows, columns)
        kind = draw.kind("f16", "bf16")
        for direction in ("forward", "backward"):
            yield text("activation", op, direction, kind, rows=rows, columns=columns)


def loss(draw):
    ops = ("softmax", "softmax", "sigmoid", "square", "huber", "absolute")
    for k in range(COUNT):
        n, c = draw.odd(1, 1024), draw.odd(2, 20000)
        while 4 * n * c > BYTES / 12:
            n, c = (n + 1) // 2, (c + 1) // 2
        yield text("loss", ops[k % len(ops)], "forward", draw.kind("f16", "bf16") if k % 2 else "f32", n=n, c=c)


def arithmetic(draw):
    two = ("add", "multiply", "subtract", "divide", "minimum", "maximum", "pow")
    one = ("sqrt", "rsqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh", "abs",
           "negate", "reciprocal", "square", "floor", "round", "erf")
    for k in range(COUNT):
        op = two[k // 2 % len(two)] if k % 2 else one[k // 2 % len(one)]
        shape = tensor(draw, draw.choice((1, 2, 3, 4)), BYTES / 8)
        broadcast = draw.randrange(1, 1 << len(shape)) if op in two and draw.random() < 0.35 else None
        kind = draw.kind("f16", "bf16")
        yield text("arithmetic", op, "forward", kind, **letters(shape), broadcast=broadcast)
        if k % 3 == 0:
            yield text("arithmetic", op, "backward", kind, **letters(shape), broadcast=broadcast)


def matmul(draw):
    named = [(64, 64, 8, 64, 0, 0), (12, 128, 128, 64, 0, 1), (256, 16, 8, 32, 0, 0), (1, 512, 512, 512, 0, 0), (128, 1, 64, 64, 0, 0)]
    for k in range(COUNT):
        if k < len(named):
            batch, m, n, depth, ta, tb = named[k]
        else:
            batch, ta, tb = draw.choice((1, 1, 8, 12, 64, draw.odd(1, 512))), draw.randrange(2), draw.randrange(2)
            m, n, depth = (draw.choice((1, 2, 3, 4, 8, 16, 17, 32, 64, 100, 128, 256, draw.odd(1, 1500))) for _ in range(3))
        while 2.0 * batch * m * n * depth > LARGEST / 2 or 4 * batch * max(m * n, m * depth, n * depth) > BYTES / 3:
            batch, m, n, depth = (max(1, v // 2) if v == max(batch, m, n, depth) else v for v in (batch, m, n, depth))
        yield text("matmul", "product", "forward", draw.kind("f16", "bf16"), batch=batch, m=m, n=n, k=depth, ta=ta, tb=tb,
                   share=1 if draw.random() < 0.15 else None)


def gram(draw):
    for k in range(COUNT // 2):
        c, h = draw.channels(512), draw.map(128)
        while 2.0 * c * c * h * h > LARGEST / 2 or 4 * c * h * h > BYTES / 4:
            c, h = max(1, c // 2), (h + 1) // 2
        for direction in ("forward", "backward"):
            yield text("gram", "matrix", direction, draw.kind("f16"), c=c, h=h, w=h)


def attention(draw):
    named = [(1, 197, 12, 64), (8, 128, 8, 64), (1, 512, 8, 64), (32, 16, 4, 32), (1, 50, 4, 24)]
    for k in range(COUNT // 2):
        n, l, h, d = named[k] if k < len(named) else (draw.choice((1, 1, 2, 8, 32)), draw.odd(1, 700), draw.choice((1, 2, 4, 6, 8, 12)),
                                                    draw.choice((8, 16, 24, 32, 40, 64, 80, 128)))
        while n * l * h * d * (8.0 * h * d + 4 * l) > 2 * LARGEST:
            n, l = (n // 2, l) if n > 1 else (n, (l + 1) // 2)
        for direction in ("forward", "backward"):
            yield text("attention", "layer", direction, draw.kind("f16", "bf16"), n=n, l=l, h=h, d=d)


def lstm(draw):
    for k in range(COUNT // 2):
        t, n, i, h = draw.odd(1, 100), draw.choice(BATCHES), draw.channels(512), draw.channels(512)
        while 8.0 * t * n * h * (i + h) > 2 * LARGEST:
            t, n = (t, n // 2) if n > 1 else ((t + 1) // 2, n)
        for direction in ("forward", "backward"):
            yield text("lstm", "layer", direction, "f32", t=t, n=n, **{"in": i}, h=h)


FAMILIES = {f.__name__: f for f in (conv, depthwise, pool, fully_connected, normalization, reduction, gather, padding, resize, embedding,
                                    topk, tile, permute, copy, activation, loss, arithmetic, matmul, gram, attention,
                                    lstm)}


def lines(seed):
    """All cases of a seed; those of a family do not depend on the others."""
    for name, family in FAMILIES.items():
        yield from family(Draw(f"{name} {seed}"))


if __name__ == "__main__":
    for line in lines(sys.argv[1]):
        if len(sys.argv) < 3 or line.split()[0] == sys.argv[2]:
            print(line)
