"""Every module against PyTorch: outputs and all gradients, shapes drawn by seed."""

from __future__ import annotations

import copy
from typing import Any, Callable

import numpy as np
import pytest
from conftest import CASES, close, error

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from openbnns import nn  # noqa: E402

Rng = np.random.Generator


def pick(r: Rng, low: int, high: int) -> int:
    return int(r.integers(low, high + 1))


def linear(r: Rng) -> Any:
    i, o, b = pick(r, 1, 40), pick(r, 1, 40), bool(r.integers(2))
    lead = tuple(pick(r, 1, 5) for _ in range(pick(r, 1, 3)))
    return nn.Linear(i, o, bias=b), torch.nn.Linear(i, o, bias=b), lead + (i,)


def conv(r: Rng) -> Any:
    g = pick(r, 1, 3)
    i, o = g * pick(r, 1, 5), g * pick(r, 1, 5)
    k, s, p, d = [(pick(r, 1, 4), pick(r, 1, 4)), (pick(r, 1, 3), pick(r, 1, 3)), (pick(r, 0, 2), pick(r, 0, 2)),
                  (pick(r, 1, 2), pick(r, 1, 2))]
    b = bool(r.integers(2))
    args = dict(stride=s, padding=p, dilation=d, groups=g, bias=b)
    return nn.Conv2d(i, o, k, **args), torch.nn.Conv2d(i, o, k, **args), (pick(r, 1, 4), i, pick(r, 8, 16), pick(r, 8, 16))


def conv_same(r: Rng) -> Any:
    k = (pick(r, 1, 5), pick(r, 1, 5))
    return (nn.Conv2d(3, 4, k, padding="same"), torch.nn.Conv2d(3, 4, k, padding="same"), (2, 3, pick(r, 5, 9), pick(r, 5, 9)))


def conv_transpose(r: Rng) -> Any:
    g = pick(r, 1, 2)
    i, o = g * pick(r, 1, 4), g * pick(r, 1, 4)
    s = (pick(r, 1, 3), pick(r, 1, 3))
    k, p = (pick(r, 2, 4), pick(r, 2, 4)), (pick(r, 0, 1), pick(r, 0, 1))
    extra = tuple(pick(r, 0, max(0, v - 1)) for v in s)
    args = dict(stride=s, padding=p, output_padding=extra, groups=g, bias=bool(r.integers(2)))
    return (nn.ConvTranspose2d(i, o, k, **args), torch.nn.ConvTranspose2d(i, o, k, **args),
            (pick(r, 1, 3), i, pick(r, 3, 8), pick(r, 3, 8)))


def pool(ours: Callable[..., Any], theirs: Callable[..., Any], **more: Any) -> Callable[[Rng], Any]:
    def make(r: Rng) -> Any:
        k = (pick(r, 1, 4), pick(r, 1, 4))
        s, p = (pick(r, 1, 3), pick(r, 1, 3)), tuple(pick(r, 0, v // 2) for v in k)
        return (ours(k, s, p, **more), theirs(k, s, p, **more), (pick(r, 1, 3), pick(r, 1, 5), pick(r, 6, 14), pick(r, 6, 14)))
    return make


def batch_norm(r: Rng) -> Any:
    c, a = pick(r, 1, 8), bool(r.integers(2))
    return nn.BatchNorm2d(c, affine=a), torch.nn.BatchNorm2d(c, affine=a), (pick(r, 2, 5), c, pick(r, 2, 7), pick(r, 2, 7))


def layer_norm(r: Rng) -> Any:
    own = tuple(pick(r, 2, 9) for _ in range(pick(r, 1, 3)))
    a = bool(r.integers(2))
    return (nn.LayerNorm(own, elementwise_affine=a), torch.nn.LayerNorm(own, elementwise_affine=a),
            tuple(pick(r, 1, 5) for _ in range(pick(r, 1, 2))) + own)


def group_norm(r: Rng) -> Any:
    g = pick(r, 1, 4)
    c = g * pick(r, 1, 4)
    rest = tuple(pick(r, 2, 6) for _ in range(pick(r, 1, 2)))
    return nn.GroupNorm(g, c), torch.nn.GroupNorm(g, c), (pick(r, 1, 4), c) + rest


def instance_norm(r: Rng) -> Any:
    c, a = pick(r, 1, 6), bool(r.integers(2))
    return nn.InstanceNorm2d(c, affine=a), torch.nn.InstanceNorm2d(c, affine=a), (pick(r, 1, 4), c, pick(r, 2, 7), pick(r, 2, 7))


def element(ours: Any, theirs: Any) -> Callable[[Rng], Any]:
    return lambda r: (ours, theirs, tuple(pick(r, 1, 6) for _ in range(pick(r, 1, 4))))


def softmax(ours: Any, theirs: Any) -> Callable[[Rng], Any]:
    def make(r: Rng) -> Any:
        shape = tuple(pick(r, 2, 6) for _ in range(pick(r, 1, 4)))
        dim = pick(r, 0, len(shape) - 1) - (len(shape) if r.integers(2) else 0)
        return ours(dim), theirs(dim), shape
    return make


def flatten(r: Rng) -> Any:
    return nn.Sequential(nn.Linear(4, 3), nn.Flatten()), torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Flatten()), (2, 3, 4)


class TorchResidual(torch.nn.Module):
    def __init__(self, block: Any, shortcut: Any = None, activation: Any = None) -> None:
        super().__init__()
        self.block, self.shortcut, self.activation = block, shortcut, activation

    def forward(self, x: Any) -> Any:
        y = self.block(x) + (x if self.shortcut is None else self.shortcut(x))
        return y if self.activation is None else self.activation(y)


def residual(r: Rng) -> Any:
    c, o, short = pick(r, 1, 6), pick(r, 1, 6), bool(r.integers(2))
    o = o if short else c

    def make(lib: Any, res: Any) -> Any:
        block = lib.Sequential(lib.Conv2d(c, o, 3, padding=1), lib.BatchNorm2d(o), lib.ReLU(), lib.Conv2d(o, o, 3, padding=1))
        return lib.Sequential(lib.Conv2d(c, c, 1), res(block, lib.Conv2d(c, o, 1) if short else None, lib.ReLU()))
    return make(nn, nn.Residual), make(torch.nn, TorchResidual), (pick(r, 1, 3), c, pick(r, 3, 8), pick(r, 3, 8))


def conv_norm(r: Rng) -> Any:
    """One filter in training: a convolution, its normalization, and an activation or none."""
    g = pick(r, 1, 2)
    i, o, bias, act = g * pick(r, 1, 4), g * pick(r, 1, 4), bool(r.integers(2)), [None, "ReLU", "Tanh", "Sigmoid", "GELU"][pick(r, 0, 4)]
    k, s, p, d = (pick(r, 1, 3), pick(r, 1, 3)), (pick(r, 1, 2), pick(r, 1, 2)), (pick(r, 0, 1), pick(r, 0, 1)), (pick(r, 1, 2), pick(r, 1, 2))

    def make(lib: Any) -> Any:
        layers = [lib.Conv2d(i, o, k, s, p, d, g, bias), lib.BatchNorm2d(o)] + ([] if act is None else [getattr(lib, act)()])
        return lib.Sequential(*layers, lib.Conv2d(o, 2, 1))
    return make(nn), make(torch.nn), (pick(r, 2, 4), i, pick(r, 6, 10), pick(r, 6, 10))


def adaptive_pool(r: Rng) -> Any:
    size, times = (pick(r, 1, 4), pick(r, 1, 4)), (pick(r, 1, 3), pick(r, 1, 3))
    return (nn.AdaptiveAvgPool2d(size), torch.nn.AdaptiveAvgPool2d(size),
            (pick(r, 1, 3), pick(r, 1, 4), size[0] * times[0], size[1] * times[1]))


def stack(r: Rng) -> Any:
    acts = [("ReLU", "ReLU"), ("Sigmoid", "Sigmoid"), ("Tanh", "Tanh"), ("SiLU", "SiLU"), ("GELU", "GELU")]
    a = acts[pick(r, 0, 4)][0]

    def make(lib: Any) -> Any:
        return lib.Sequential(lib.Conv2d(2, 4, 3), getattr(lib, a)(), lib.MaxPool2d(2), lib.Flatten(), lib.Linear(4 * 5 * 5, 7),
                              lib.LayerNorm(7), getattr(lib, a)(), lib.Linear(7, 3))
    return make(nn), make(torch.nn), (pick(r, 1, 5), 2, 12, 12)


MODULES: dict[str, Callable[[Rng], Any]] = {
    "linear": linear, "conv": conv, "conv_same": conv_same, "conv_transpose": conv_transpose,
    "max_pool": pool(nn.MaxPool2d, torch.nn.MaxPool2d), "avg_pool": pool(nn.AvgPool2d, torch.nn.AvgPool2d),
    "avg_pool_exclude": pool(nn.AvgPool2d, torch.nn.AvgPool2d, count_include_pad=False), "batch_norm": batch_norm,
    "layer_norm": layer_norm, "group_norm": group_norm, "instance_norm": instance_norm, "relu": element(nn.ReLU(), torch.nn.ReLU()),
    "sigmoid": element(nn.Sigmoid(), torch.nn.Sigmoid()), "tanh": element(nn.Tanh(), torch.nn.Tanh()),
    "gelu": element(nn.GELU(), torch.nn.GELU()), "gelu_tanh": element(nn.GELU("tanh"), torch.nn.GELU("tanh")),
    "silu": element(nn.SiLU(), torch.nn.SiLU()), "leaky_relu": element(nn.LeakyReLU(0.2), torch.nn.LeakyReLU(0.2)),
    "relu6": element(nn.ReLU6(), torch.nn.ReLU6()), "softmax": softmax(nn.Softmax, torch.nn.Softmax),
    "log_softmax": softmax(nn.LogSoftmax, torch.nn.LogSoftmax), "flatten": flatten, "residual": residual, "stack": stack,
    "conv_norm": conv_norm, "adaptive_pool": adaptive_pool, "identity": element(nn.Identity(), torch.nn.Identity()),
}


def reference(theirs: Any, inputs: list[np.ndarray], seed: int, call: Any, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """A copy of the module in this type behind one pass, its outputs, their gradients, drawn by seed, and those of the inputs."""
    theirs = copy.deepcopy(theirs).to(dtype)
    ts = [torch.tensor(x, dtype=dtype, requires_grad=True) for x in inputs]
    out = theirs(*ts) if call is None else call(theirs, *ts)
    out = out if isinstance(out, tuple) else (out,)
    r = np.random.default_rng(seed)
    dys = [r.standard_normal(tuple(e.shape)).astype(np.float32) for e in out]
    sum((e * torch.tensor(d, dtype=dtype)).sum() for e, d in zip(out, dys)).backward()
    return theirs, [e.detach().numpy() for e in out], dys, [t.grad.numpy() for t in ts]


def compare(ours: Any, theirs: Any, inputs: list[np.ndarray], seed: int, call: Any = None) -> None:
    """Gives both the same weights, runs both, compares outputs, gradients of parameters and of inputs.

    The bound is 1e-5 against float64, and 4 times the error of PyTorch's own float32 where that is more: the gradient of a bias in
    front of a batch normalization is zero, and what is left of its sum is rounding.
    """
    from openbnns.nn.tape import Pass, Tensor

    exact, expected, dys, dxs = reference(theirs, inputs, seed, call, torch.float64)
    rough, outputs, _, gradients = reference(theirs, inputs, seed, call, torch.float32)
    after = {n: p.grad.numpy() for n, p in exact.named_parameters()}
    bound = max([1e-5] + [4 * error(a, b) for a, b in zip(outputs + gradients + [p.grad.numpy() for p in rough.parameters()],
                                                          expected + dxs + list(after.values()))])
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    for _ in range(2):  # the second time on the same memory
        state = ours.state_dict()
        with Pass(record=True) as running:
            xs = [Tensor(x, needs=True) for x in inputs]
            got = ours.forward(*xs) if call is None else call(ours, *xs)
            got = got if isinstance(got, tuple) else (got,)
            for g, d in zip(got, dys):
                g.add_gradient(d)
            for plan in reversed(running.plans):
                if plan.out.dirty:
                    plan.backward()
            for g, e in zip(got, expected):
                close(g.data, e, bound)
            for x, dx in zip(xs, dxs):
                close(x.gradient.data, dx, bound)
        for name, p in ours.named_parameters():
            close(p.grad, after[name], bound)
        if any(k.endswith("running_mean") for k in state):
            for k, v in exact.state_dict().items():
                close(ours.state_dict()[k], v.numpy(), bound)
        ours.load_state_dict(state)


@pytest.mark.parametrize("name", MODULES)
def test_module(name: str) -> None:
    for seed in range(CASES):
        r = np.random.default_rng(seed)
        ours, theirs, shape = MODULES[name](r)
        with torch.no_grad():
            for p in theirs.parameters():
                p.copy_(torch.tensor(r.standard_normal(tuple(p.shape)) * 0.5))
        compare(ours, theirs, [r.standard_normal(shape).astype(np.float32)], seed)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_lstm(batch_first: bool, bidirectional: bool, layers: int) -> None:
    for seed in range(max(1, CASES // 4)):
        r = np.random.default_rng(seed)
        i, h, t, n, bias = pick(r, 1, 8), pick(r, 1, 9), pick(r, 1, 6), pick(r, 1, 4), bool(r.integers(2))
        args = dict(num_layers=layers, batch_first=batch_first, bidirectional=bidirectional, bias=bias)
        shape = (n, t, i) if batch_first else (t, n, i)
        states = (layers * (2 if bidirectional else 1), n, h)
        x = r.standard_normal(shape).astype(np.float32)

        def flat(m: Any, *a: Any) -> Any:
            y, (hn, cn) = m(a[0], (a[1], a[2])) if len(a) == 3 else m(a[0])
            return y, hn, cn
        inputs = [x] if seed % 2 else [x] + [r.standard_normal(states).astype(np.float32) for _ in range(2)]
        compare(nn.LSTM(i, h, **args), torch.nn.LSTM(i, h, **args), inputs, seed, flat)


def test_lstm_last_state_only() -> None:
    r = np.random.default_rng(5)
    compare(nn.LSTM(3, 4), torch.nn.LSTM(3, 4), [r.standard_normal((5, 2, 3)).astype(np.float32)], 1, lambda m, x: m(x)[1][0])
    compare(nn.LSTM(3, 4), torch.nn.LSTM(3, 4), [r.standard_normal((5, 2, 3)).astype(np.float32)], 1, lambda m, x: m(x)[0][-1])


def test_attention() -> None:
    for seed in range(CASES):
        r = np.random.default_rng(seed)
        heads = pick(r, 1, 4)
        e, n, length, keys, bias = heads * pick(r, 1, 6), pick(r, 1, 4), pick(r, 1, 9), pick(r, 1, 9), bool(r.integers(2))
        ours, theirs = nn.MultiheadAttention(e, heads, bias=bias), torch.nn.MultiheadAttention(e, heads, bias=bias, batch_first=True)
        mask = r.random((n, keys)) < 0.3
        mask[:, 0] = False

        def call(m: Any, *a: Any) -> Any:
            use = torch.tensor(mask) if isinstance(m, torch.nn.Module) else mask
            out = m(*a, key_padding_mask=use) if isinstance(m, torch.nn.Module) else m.forward(*a, use)
            return out[0] if isinstance(out, tuple) else out
        q, k, v = [r.standard_normal((n, rows, e)).astype(np.float32) for rows in (length, keys, keys)]
        compare(ours, theirs, [q, k, v], seed, call)

        def self_call(m: Any, x: Any) -> Any:
            out = m(x, x, x)
            return out[0] if isinstance(out, tuple) else out
        compare(nn.MultiheadAttention(e, heads), torch.nn.MultiheadAttention(e, heads, batch_first=True), [q], seed, self_call)


def test_embedding() -> None:
    for seed in range(CASES):
        r = np.random.default_rng(seed)
        n, d = pick(r, 2, 20), pick(r, 1, 9)
        pad = pick(r, 0, n - 1) if seed % 2 else None
        ours, theirs = nn.Embedding(n, d, padding_idx=pad), torch.nn.Embedding(n, d, padding_idx=pad).double()
        ours.load_state_dict({"weight": theirs.weight.detach().numpy()})
        ids = r.integers(0, n, (pick(r, 1, 4), pick(r, 1, 6)))
        step = nn.value_and_grad(ours, nn.losses.mse)
        target = r.standard_normal(ids.shape + (d,)).astype(np.float32)
        value, grads = step(ids, target)
        loss = torch.nn.functional.mse_loss(theirs(torch.tensor(ids)), torch.tensor(target, dtype=torch.float64))
        loss.backward()
        close(np.array(value), loss.item())
        close(grads["weight"], theirs.weight.grad.numpy())


def test_batch_norm_eval_has_gradients() -> None:
    r = np.random.default_rng(3)
    ours, theirs = nn.BatchNorm2d(4), torch.nn.BatchNorm2d(4)
    x = r.standard_normal((3, 4, 5, 5)).astype(np.float32)
    theirs(torch.tensor(x))
    compare(ours.eval(), theirs.eval(), [x], 1)


def test_tensor_operations() -> None:
    r = np.random.default_rng(7)
    a, b = [r.standard_normal((3, 4, 5)).astype(np.float32) + 3 for _ in range(2)]

    class Ours(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            z = x * y + x / y - y * 2 + 1.5 - (-x) + x * x
            w = z.reshape(3, 20) + z.reshape(3, 20)
            return w.reshape(3, 4, 5).transpose(1, 0, 2)[1:, :2], nn.concatenate([x, z], 1).mean(1)

    class Theirs(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            z = x * y + x / y - y * 2 + 1.5 - (-x) + x * x
            w = z.reshape(3, 20) + z.reshape(3, 20)
            return w.reshape(3, 4, 5).permute(1, 0, 2)[1:, :2], torch.cat([x, z], 1).mean(1)

    compare(Ours(), Theirs(), [a, b], 1)


def test_dropout_keeps_the_mean_and_scales_gradients() -> None:
    r = np.random.default_rng(2)
    for p in (0.1, 0.5, 0.9):
        layer, x = nn.Dropout(p), r.standard_normal((400, 100)).astype(np.float32) + 2
        y = layer(x)
        kept = y != 0
        assert abs(kept.mean() - (1 - p)) < 0.02
        close(y[kept], x[kept] / (1 - p))
    net = nn.Sequential(nn.Linear(4, 100), nn.Dropout(0.5))
    net[0].weight.data[...], net[0].bias.data[...] = 1, 1
    out: list[np.ndarray] = []

    def total(y: Any) -> Any:
        out.append(y.numpy())
        return y.sum()
    _, grads = nn.value_and_grad(net, total)(np.ones((8, 4), np.float32))
    close(grads["0.bias"], (out[0] != 0).sum(0) * 2.0)


def test_a_fused_normalization_follows_its_layers() -> None:
    """What was one filter takes up changes of either layer, and eval() uses the running statistics that training moved."""
    r = np.random.default_rng(4)
    x = r.standard_normal((4, 2, 6, 6)).astype(np.float32)
    fused = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU())

    def apart(model: Any) -> Any:
        return model[2](model[1](model[0](x)))
    for change in (lambda: None, lambda: setattr(fused[1], "eps", 0.5), lambda: setattr(fused[0], "weight", nn.Parameter(-fused[0].weight.data)),
                   lambda: setattr(fused[1], "bias", nn.Parameter(np.ones(3))), lambda: setattr(fused[1].weight, "data", [1, 2, 3])):
        change()
        close(fused(x), apart(fused))
    with pytest.raises(Exception, match="BatchNorm2d: input has shape"):
        nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(4))(x)
    with pytest.raises(Exception, match="more than one value"):
        nn.Sequential(nn.Conv2d(2, 3, 6), nn.BatchNorm2d(3))(x[:1])
    fused.requires_grad_(False)
    fused[1].bias.requires_grad = True
    _, grads = nn.value_and_grad(fused, lambda y: y.sum())(x)
    assert list(grads) == ["1.bias"] and grads["1.bias"].any()
    close(fused.eval()(x), apart(fused))


def test_half_types_follow_float32() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    r = np.random.default_rng(1)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 4))
    x = r.standard_normal((2, 2, 8, 8)).astype(np.float32)
    for dtype, bound in ((np.float16, 4e-3), (ml_dtypes.bfloat16, 4e-2)):
        out = model(x.astype(dtype))
        assert out.dtype == dtype
        close(out, model(x), bound)
