"""PyTorch's call for a row that was drawn from a description (bench/shapes.py), where peers_torch.py has none. ATen functions
where there are such, else autograd on a graph that is kept."""

import torch
import torch.nn.functional as F

aten = torch.ops.aten


def shape(a):
    return [int(a[k]) for k in "abcde" if k in a]


def gradient(function, d):
    """dx of y = function(x), by autograd; the graph is made once for each set of data."""
    graphs = {}

    def call(d):
        key = d["x"].data_ptr()
        if key not in graphs:
            x = d["x"].detach().requires_grad_()
            graphs[key] = (x, function(x))
        x, y = graphs[key]
        return torch.autograd.grad(y, x, d["dy"].reshape(y.shape), retain_graph=True)[0]
    return call


def both(row, function, d):
    if row["direction"] == "backward":
        return gradient(function, d)
    return lambda d: function(d["x"])


def reduction(row, d):
    a, op = row["attributes"], row["op"]
    axes = [k for k in range(len(shape(a))) if int(a["mask"]) >> k & 1]
    functions = {"sum": lambda x: torch.sum(x, axes, True), "mean": lambda x: torch.mean(x, axes, True),
                 "max": lambda x: torch.amax(x, axes, True), "min": lambda x: torch.amin(x, axes, True),
                 "sum_square": lambda x: torch.sum(x * x, axes, True), "l1": lambda x: torch.linalg.vector_norm(x, 1, axes, True),
                 "l2": lambda x: torch.linalg.vector_norm(x, 2, axes, True),
                 "log_sum_exp": lambda x: torch.logsumexp(x, axes, True),
                 "product": lambda x: torch.prod(x, axes[0], True) if len(axes) == 1 else None,
                 "argmax": lambda x: torch.argmax(x, axes[0], True)}
    if op == "argmax" and row["type"] != "f32" or op == "product" and len(axes) > 1:
        return None
    if row["direction"] == "backward" and op == "max":  # amax divides the gradient among equals, max along an axis does not
        return gradient(lambda x: torch.max(x, axes[0], True)[0], d) if len(axes) == 1 else None
    return both(row, functions[op], d)


def padding(row, d):
    a = row["attributes"]
    rank = len(shape(a))
    before = [int(a.get("p" + "abcde"[k], 0)) for k in range(rank)]
    after = [int(a.get("q" + "abcde"[k], before[k])) for k in range(rank)]
    if row["op"] == "symmetric":
        return None
    if row["op"] == "constant":
        pads = [n for k in reversed(range(rank)) for n in (before[k], after[k])]
        if row["direction"] == "backward":
            inverse = [-n for n in pads]
            return lambda d: aten.constant_pad_nd(d["dy"], inverse)
        return lambda d: aten.constant_pad_nd(d["x"], pads, 0)
    if rank < 2 or any(before[:-2]):
        return None
    pads = [before[-1], after[-1], before[-2], after[-2]]
    lead = d["x"].shape[:-2]

    def image(t):
        return t.reshape(-1, 1, *t.shape[-2:]) if len(lead) != 2 else t
    if row["direction"] == "backward":
        return lambda d: aten.reflection_pad2d_backward(image(d["dy"]), image(d["x"]), pads)
    return lambda d: aten.reflection_pad2d(image(d["x"]), pads)


def resize(row, d):
    x, size = d["x"], [int(row["attributes"][k]) for k in ("oh", "ow")]
    backward = row["direction"] == "backward"
    if row["op"] == "nearest":
        if backward:
            return lambda d: aten.upsample_nearest2d_backward(d["dy"], size, list(x.shape))
        return lambda d: aten.upsample_nearest2d(d["x"], size)
    corners = row["op"] == "linear_corners"
    if backward:
        return lambda d: aten.upsample_bilinear2d_backward(d["dy"], size, list(x.shape), corners)
    return lambda d: aten.upsample_bilinear2d(d["x"], size, corners)


def embedding(row, d):
    rows = int(row["attributes"]["rows"])
    if row["direction"] == "backward":
        return lambda d: aten.embedding_dense_backward(d["y"], d["index"], rows, -1, False)
    return lambda d: aten.embedding(d["w"], d["index"])


def topk(row, d):
    a = row["attributes"]
    return lambda d: torch.topk(d["x"], int(a["k"]), int(a.get("axis", 1)))[0]


def gather(row, d):
    op, count = row["op"], int(row["attributes"]["count"])
    if op == "gather":
        return lambda d: torch.index_select(d["x"], 1, d["index"])
    if op == "scatter_add":
        return lambda d: d["peer_y"].index_add_(1, d["index"], d["x"])
    if op == "scatter":
        return lambda d: d["peer_y"].index_copy_(1, d["index"], d["x"])
    if op == "gather_nd":
        return lambda d: d["x"][d["index"][:, 0], d["index"][:, 1]]
    return lambda d: d["peer_y"].index_put_((d["index"][:, 0], d["index"][:, 1]), d["x"], accumulate=True)


def tile(row, d):
    a = row["attributes"]
    size = shape(a)
    times = [int(a.get("r" + "abcde"[k], 1)) for k in range(len(size))]
    if row["direction"] == "backward":  # what autograd does: sums over the repeats
        split = [n for pair in zip(times, size) for n in pair]
        return lambda d: d["y"].reshape(split).sum(list(range(0, 2 * len(size), 2)))
    return lambda d: d["x"].repeat(times)


def permute(row, d):
    a = row["attributes"]
    rank = len(shape(a))
    order = [int(c) for c in str(int(a["axes"])).zfill(rank)]
    if row["direction"] == "backward":
        order = [order.index(k) for k in range(rank)]
        return lambda d: d["dy"].permute(order).contiguous()
    if order == list(range(rank)):
        return lambda d: d["x"].clone()
    return lambda d: d["x"].permute(order).contiguous()


def copy(row, d):
    types = {"to_f32": torch.float32, "to_f16": torch.float16, "to_bf16": torch.bfloat16}
    columns, kind = d["y"].shape[1], types[row["op"]]
    return lambda d: d["x"][:, :columns].to(kind, copy=True, memory_format=torch.contiguous_format)


def activation(row, d):
    op = row["op"]
    functions = {"relu": torch.relu, "leaky": lambda x: F.leaky_relu(x, 0.1), "sigmoid": torch.sigmoid, "tanh": torch.tanh,
                 "abs": torch.abs, "clamp": lambda x: torch.clamp(x, -0.5, 0.5), "gelu": F.gelu,
                 "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "elu": F.elu, "softplus": F.softplus,
                 "hard_swish": F.hardswish, "hard_sigmoid": F.hardsigmoid, "log_sigmoid": F.logsigmoid, "erf": torch.erf,
                 "softmax": lambda x: torch.softmax(x, 1), "log_softmax": lambda x: torch.log_softmax(x, 1)}
    if row["direction"] == "forward":
        return lambda d: functions[op](d["x"])
    kind = d["x"].dtype
    y = functions[op](d["x"])
    gradients = {"relu": lambda d: aten.threshold_backward(d["dy"], y, 0), "sigmoid": lambda d: aten.sigmoid_backward(d["dy"], y),
                 "tanh": lambda d: aten.tanh_backward(d["dy"], y), "gelu": lambda d: aten.gelu_backward(d["dy"], d["x"]),
                 "gelu_tanh": lambda d: aten.gelu_backward(d["dy"], d["x"], approximate="tanh"),
                 "silu": lambda d: aten.silu_backward(d["dy"], d["x"]),
                 "leaky": lambda d: aten.leaky_relu_backward(d["dy"], d["x"], 0.1, False),
                 "hard_swish": lambda d: aten.hardswish_backward(d["dy"], d["x"]),
                 "hard_sigmoid": lambda d: aten.hardsigmoid_backward(d["dy"], d["x"]),
                 "softplus": lambda d: aten.softplus_backward(d["dy"], d["x"], 1, 20),
                 "elu": lambda d: aten.elu_backward(d["dy"], 1, 1, 1, False, d["x"]),
                 "softmax": lambda d: aten._softmax_backward_data(d["dy"], y, 1, kind),
                 "log_softmax": lambda d: aten._log_softmax_backward_data(d["dy"], y, 1, kind)}
    return gradients.get(op) or gradient(functions[op], d)


def arithmetic(row, d):
    op = row["op"]
    names = {"subtract": "sub", "multiply": "mul", "divide": "div", "minimum": "minimum", "maximum": "maximum", "negate": "neg"}
    function = getattr(torch, names.get(op, op))
    two = "z" in d
    if row["direction"] == "forward":
        return (lambda d: function(d["x"], d["z"])) if two else lambda d: function(d["x"])
    if not two:
        return gradient(function, d)
    graphs = {}

    def call(d):
        key = d["x"].data_ptr()
        if key not in graphs:
            x, z = d["x"].detach().requires_grad_(), d["z"].detach().requires_grad_()
            graphs[key] = (x, z, function(x, z))
        x, z, y = graphs[key]
        return torch.autograd.grad(y, (x, z), d["dy"], retain_graph=True)[0]
    return call


def matmul(row, d):
    a = row["attributes"]
    ta, tb = a.get("ta"), a.get("tb")

    def call(d):
        left, right = d["a"].transpose(1, 2) if ta else d["a"], d["b"].transpose(1, 2) if tb else d["b"]
        return torch.matmul(left, right)
    return call


def gram(row, d):
    c = d["x"].shape[0]

    def forward(d):
        x = d["x"].reshape(c, -1)
        return torch.mm(x, x.t())
    if row["direction"] == "forward":
        return forward

    def backward(d):  # of x x': dy x + dy' x
        x = d["x"].reshape(c, -1)
        return torch.mm(d["dy"], x).addmm_(d["dy"].t(), x)
    return backward


def attention(row, d):
    h = int(row["attributes"]["h"])

    def layer(x, wq, wk, wv, wo):
        n, length, model = x.shape
        q, k, v = (F.linear(x, w).view(n, length, h, model // h).transpose(1, 2) for w in (wq, wk, wv))
        y = F.scaled_dot_product_attention(q, k, v)
        return torch.matmul(y.transpose(1, 2).reshape(n, length, model), wo)
    if row["direction"] == "forward":
        return lambda d: layer(d["x"], d["wq"], d["wk"], d["wv"], d["wo"])
    return several(lambda d: [d["x"], d["wq"], d["wk"], d["wv"], d["wo"]], layer, "dy")


def several(inputs, function, upstream):
    """The gradient of several inputs, by autograd on a graph that is kept; returns the first."""
    graphs = {}

    def call(d):
        key = d["x"].data_ptr()
        if key not in graphs:
            leaves = [t.detach().requires_grad_() for t in inputs(d)]
            graphs[key] = (leaves, function(*leaves))
        leaves, y = graphs[key]
        return torch.autograd.grad(y, leaves, d[upstream], retain_graph=True)[0]
    return call


def lstm(row, d):
    a = row["attributes"]
    n, h = int(a["n"]), int(a["h"])
    kind = d["x"].dtype
    state, zero = torch.zeros(1, n, h, dtype=kind), torch.zeros(4 * h, dtype=kind)

    def layer(x, wx, wh, b, train=True):
        return torch.lstm(x, (state, state), [wx, wh, b, zero], True, 1, 0.0, train, False, False)[0]
    if row["direction"] == "backward":
        return several(lambda d: [d["x"], d["wx"], d["wh"], d["b"]], layer, "dy")

    def forward(d):
        with torch.no_grad():
            return layer(d["x"], d["wx"], d["wh"], d["b"], False)
    return forward


FAMILIES = {f.__name__: f for f in (reduction, padding, resize, embedding, topk, gather, tile, permute, copy,
                                    activation, arithmetic, matmul, gram, attention, lstm)}
