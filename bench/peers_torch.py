"""PyTorch's call for a row of the table, on the row's own memory. ATen functions without autograd where there are such, so
that nothing but the operation is timed; whole steps and losses as a user writes them, with autograd."""

import torch
import torch.nn.functional as F

import shapes_torch

aten = torch.ops.aten
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "u64": torch.int64, "i8": torch.int8}


def pairs(attributes):
    """(y, x) of stride, padding and dilation."""
    return tuple([int(attributes.get(name + axis, otherwise)) for axis in "yx"] for name, otherwise in (("s", 1), ("p", 0), ("d", 1)))


def pooling(row, d):
    a = row["attributes"]
    k = [int(a["kh"]), int(a["kw"])]
    stride, padding, dilation = pairs(a)
    ceil = a["after"] > padding[0]
    if ceil:
        padding = [0, 0]
    if any(2 * p > n for p, n in zip(padding, k)):
        return None  # not PyTorch's
    backward = row["direction"] == "backward"
    if row["op"].startswith("max"):
        if not backward:
            return lambda d: aten.max_pool2d_with_indices(d["x"], k, stride, padding, dilation, ceil)[0]
        index = aten.max_pool2d_with_indices(d["x"], k, stride, padding, dilation, ceil)[1]
        return lambda d: aten.max_pool2d_with_indices_backward(
            d["dy"], d["x"], k, stride, padding, dilation, ceil, index)
    if row["op"] in ("L2", "l2") or dilation != [1, 1]:
        return None
    include = row["op"] == "average with padding" and not ceil  # with ceil PyTorch counts other pixels than BNNS
    if not backward:
        return lambda d: aten.avg_pool2d(d["x"], k, stride, padding, ceil, include)
    x = d["dx"]  # only its shape is used
    return lambda d: aten.avg_pool2d_backward(d["dy"], x, k, stride, padding, ceil, include, None)


def convolution(row, d):
    a = row["attributes"]
    s, p, dilation = pairs(a)
    g = int(a["g"])
    if row["type"] == "i8":
        return None
    if row["direction"] == "forward":
        return lambda d: aten.convolution(d["x"], d["w"], None, s, p, dilation, False, [0, 0], g)
    wanted = row["direction"] in ("input gradient", "dx")

    return lambda d: aten.convolution_backward(d["y"], d["x"], d["w"], None, s, p, dilation, False, [0, 0], g,
                                               [wanted, not wanted, False])[0 if wanted else 1]


def fully_connected(row, d):
    if row["type"] == "i8":
        return None
    if row["direction"] == "forward":
        return lambda d: torch.mm(d["x"], d["w"].t())
    if row["direction"] in ("input gradient", "dx"):
        return lambda d: torch.mm(d["y"], d["w"])
    return lambda d: torch.mm(d["y"].t(), d["x"])


BATCH, INSTANCE, LAYER, GROUP = 2, 3, 4, 5  # BNNSFilterType


def normalization(row, d):
    a = row["attributes"]
    kind, relu, backward, shape = int(a["kind"]), a["relu"], row["direction"] == "backward", d["x"].shape
    sixteen = d["x"].dtype != torch.float32
    if kind == LAYER:
        n = list(shape[1:])

        def parameters(d):  # layer normalization wants the type of x
            gamma, beta = d["gamma"].reshape(n), d["beta"].reshape(n)
            return (gamma.to(d["x"].dtype), beta.to(d["x"].dtype)) if sixteen else (gamma, beta)
        gamma, beta = parameters(d)
        if not backward:
            return lambda d: aten.native_layer_norm(d["x"], n, gamma, beta, 1e-5)[0]
        _, mean, deviation = aten.native_layer_norm(d["x"], n, gamma, beta, 1e-5)
        return lambda d: aten.native_layer_norm_backward(d["dy"], d["x"], n, mean, deviation, gamma, beta, [True, True, True])[0]
    if kind in (INSTANCE, GROUP):
        n, c, pixels = shape[0], shape[1], shape[2] * shape[3]
        groups = c if kind == INSTANCE else int(a["groups"])
        gamma, beta = d["gamma"], d["beta"]
        if sixteen:
            gamma, beta = gamma.to(d["x"].dtype), beta.to(d["x"].dtype)
        if not backward:
            return lambda d: aten.native_group_norm(d["x"], gamma, beta, n, c, pixels, groups, 1e-5)[0]
        _, mean, deviation = aten.native_group_norm(d["x"], gamma, beta, n, c, pixels, groups, 1e-5)
        return lambda d: aten.native_group_norm_backward(d["dy"], d["x"], mean, deviation, gamma, n, c, pixels, groups,
                                                         [True, True, True])[0]
    if not backward:
        def forward(d):
            y = aten.native_batch_norm(d["x"], d["gamma"], d["beta"], None, None, True, 0.1, 1e-5)[0]
            return aten.relu_(y) if relu else y
        return forward
    y, mean, deviation = aten.native_batch_norm(d["x"], d["gamma"], d["beta"], None, None, True, 0.1, 1e-5)

    def gradient(d):
        g = aten.threshold_backward(d["dy"], y, 0) if relu else d["dy"]
        return aten.native_batch_norm_backward(g, d["x"], d["gamma"], None, None, mean, deviation, True, 1e-5,
                                               [True, True, True])[0]
    return gradient


def loss(row, d):
    functions = {"softmax cross-entropy": F.cross_entropy, "sigmoid cross-entropy": F.binary_cross_entropy_with_logits,
                 "mean square error": F.mse_loss, "Huber": F.huber_loss, "mean absolute error": F.l1_loss}
    function = functions[row["op"]]
    softmax = row["op"].startswith("softmax")
    leaves = {}

    def call(d):
        key = d["x"].data_ptr()
        if key not in leaves:
            leaves[key] = (d["x"].requires_grad_(), d["labels"].argmax(1) if softmax else d["labels"])
        x, labels = leaves[key]
        x.grad = None
        function(x, labels).backward()
        return x.grad
    return call


def optimizer(row, d):
    """The faster of the fused and the foreach implementation."""
    classes = {"SGD": (torch.optim.SGD, {}), "SGD with momentum": (torch.optim.SGD, {"momentum": 0.9}),
               "Adam": (torch.optim.Adam, {}), "RMSProp": (torch.optim.RMSprop, {})}
    kind, options = classes[row["op"]]

    def make(**how):
        w = torch.nn.Parameter(d["w"].clone())
        w.grad = d["g"]
        o = kind([w], lr=1e-3, **options, **how)
        return lambda d: o.step()
    return best_of(make)


def best_of(make, more=()):
    """make(fused=True), make(foreach=True), make() or one of `more`: whichever takes the shortest time of three calls."""
    import time
    candidates = []
    for how in ({"fused": True}, {"foreach": True}, {}, *more):
        try:
            call = make(**how)
            call(None)
        except Exception:
            continue
        times = []
        for _ in range(3):
            start = time.perf_counter()
            call(None)
            times.append(time.perf_counter() - start)
        candidates.append((min(times), call))
    return min(candidates, key=lambda c: c[0])[1]


class Residual(torch.nn.Module):
    def __init__(self):
        super().__init__()
        nn = torch.nn

        def pair(i, o, k, s, p):
            return nn.Sequential(nn.Conv2d(i, o, k, s, p, bias=False), nn.BatchNorm2d(o))
        self.first = pair(3, 16, 3, 1, 1)
        self.blocks = nn.ModuleList()
        before = 16
        for c in (16, 32, 64):
            s = 1 if c == 16 else 2
            # Registered in the order in which bench/step_versus.cc makes the parameters.
            block = nn.ModuleDict()
            if s == 2:
                block["skip"] = pair(before, c, 1, s, 0)
            block["a"], block["b"] = pair(before, c, 3, s, 1), pair(c, c, 3, 1, 1)
            self.blocks.append(block)
            before = c
        self.last = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.first(x), inplace=True)
        for block in self.blocks:
            skip = block["skip"](x) if "skip" in block else x
            x = F.relu(block["b"](F.relu(block["a"](x), inplace=True)) + skip, inplace=True)
        return self.last(x.mean((2, 3)))


def model(name):
    nn = torch.nn
    if name.startswith("MLP"):
        return nn.Sequential(nn.Linear(784, 128), nn.ReLU(inplace=True), nn.Linear(128, 10))
    if name == "LeNet":
        return nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
                             nn.Linear(800, 500), nn.ReLU(inplace=True), nn.Linear(500, 10))
    return Residual()


def step(row, d):
    names = sorted(k for k in d if k[0] == "p" and k[1:].isdigit())
    start = [d[k].clone() for k in names]  # ours have not been trained yet
    x, labels = d["x"], d["labels"].argmax(1)
    kind, lr = (torch.optim.SGD, 0.01) if row["direction"] == "SGD" else (torch.optim.Adam, 1e-3)

    def make(compiled=False, **how):
        net = model(row["op"])
        with torch.no_grad():
            for parameter, value in zip(net.parameters(), start, strict=True):
                parameter.copy_(value)
        o = kind(net.parameters(), lr=lr, **how)
        run = torch.compile(lambda x: F.cross_entropy(net(x), labels)) if compiled else lambda x: F.cross_entropy(net(x), labels)

        def call(d):
            o.zero_grad()
            value = run(x)
            value.backward()
            o.step()
            return value.detach()
        return call
    if row.get("check"):
        return make()
    return best_of(make, ({"compiled": True, "fused": True},) if row.get("compiled") else ())


def overhead(row, d):
    if row["direction"] in ("create", "empty"):
        return None
    if row["op"].startswith("matmul"):
        a, b = d["x"], d["w"]
        return lambda d: torch.matmul(a, b)
    x, w, dy = d["x"], d["w"], d["dy"]
    forward = row["direction"] == "forward"
    if row["op"].startswith("tanh"):
        y = torch.tanh(x)
        return (lambda d: torch.tanh(x)) if forward else (lambda d: aten.tanh_backward(dy, y))
    if row["op"].startswith("fully"):
        return (lambda d: torch.mm(x, w.t())) if forward else (lambda d: (torch.mm(dy, w), torch.mm(dy.t(), x)))
    if forward:
        return lambda d: aten.convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    return lambda d: aten.convolution_backward(dy, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1,
                                               [True, True, False])


def peer(row, d):
    """A function of a data set, or None where PyTorch has no such thing. With row["check"]: one whose result can be compared."""
    family, op = row["family"], row["op"]
    if family in shapes_torch.FAMILIES:
        return shapes_torch.FAMILIES[family](row, d)
    if family.startswith("pool"):
        return pooling(row, d)
    if family in ("conv", "depthwise", "fully_connected") and (row["attributes"].get("bias") or row["attributes"].get("relu")):
        return None
    if family in ("conv", "depthwise") or op in ("convolution", "depthwise") and family != "overhead":
        return convolution(row, d)
    if family == "fully_connected" or op == "fully connected":
        return fully_connected(row, d)
    return {"normalization": normalization, "loss": loss, "optimizer": optimizer, "overhead": overhead}.get(
        family, step)(row, d)
