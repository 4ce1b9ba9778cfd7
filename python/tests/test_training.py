"""Losses, optimizers, schedules and clipping against PyTorch; fit, resume, Ctrl-C, checkpoints, state_dict."""

from __future__ import annotations

import copy
import os
import pickle
import signal
from typing import Any

import numpy as np
import pytest
from conftest import CASES, close

import openbnns
from openbnns import nn, optim
from openbnns.nn import losses


def make(seed: int = 0, dropout: float = 0.0) -> nn.Module:
    nn.seed(seed)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(dropout),
                         nn.Linear(4 * 3 * 3, 5))


def blobs(n: int = 96, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    y = r.integers(0, 5, n)
    x = r.standard_normal((n, 1, 8, 8)).astype(np.float32) * 0.5
    x[np.arange(n), 0, y, :] += 2
    return x, y


LOSSES: dict[str, Any] = {}
torch: Any = None
try:
    import torch as torch  # noqa: F811

    F = torch.nn.functional
    LOSSES = {
        "cross_entropy": (losses.cross_entropy, F.cross_entropy, "classes", {}),
        "cross_entropy_smooth": (losses.cross_entropy, F.cross_entropy, "classes", {"label_smoothing": 0.1}),
        "cross_entropy_soft": (losses.cross_entropy, F.cross_entropy, "soft", {}),
        "bce_logits": (losses.binary_cross_entropy_with_logits, F.binary_cross_entropy_with_logits, "binary", {}),
        "bce": (losses.binary_cross_entropy, F.binary_cross_entropy, "probability", {}),
        "mse": (losses.mse, F.mse_loss, "real", {}),
        "l1": (losses.l1, F.l1_loss, "real", {}),
        "huber": (losses.huber, F.huber_loss, "real", {"delta": 0.7}),
        "hinge": (losses.hinge, lambda x, t, reduction: getattr(torch.clamp(1 - (2 * t - 1) * x, min=0), reduction)(), "binary", {}),
        "cosine": (losses.cosine_similarity,
                   lambda x, t, reduction: getattr(1 - (x / x.norm(dim=1, keepdim=True) * t).sum(1), reduction)(), "unit", {}),
    }
except ImportError:
    pass
needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")


@needs_torch
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_loss(name: str, reduction: str) -> None:
    ours, theirs, kind, more = LOSSES[name]
    for seed in range(CASES):
        r = np.random.default_rng(seed)
        n, c = int(r.integers(1, 20)), int(r.integers(2, 15))
        x = r.standard_normal((n, c)).astype(np.float32)
        t: np.ndarray = r.standard_normal((n, c)).astype(np.float32)
        if kind == "classes":
            t = r.integers(0, c, n)
        elif kind == "soft":
            t = np.exp(t) / np.exp(t).sum(1, keepdims=True)
        elif kind in ("binary", "probability"):
            t = r.integers(0, 2, (n, c)).astype(np.float32)
        elif kind == "unit":
            x, t = x / np.linalg.norm(x, axis=1, keepdims=True), t / np.linalg.norm(t, axis=1, keepdims=True)
        if kind == "probability":
            x = (1 / (1 + np.exp(-x))).astype(np.float32)
        px = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        pt = torch.tensor(t) if kind == "classes" else torch.tensor(t, dtype=torch.float64)
        expected = theirs(px, pt, reduction=reduction, **more)
        expected.backward()

        class Leaf(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.x = nn.Parameter(x)

            def forward(self, scale: Any) -> Any:
                tensor = nn.Tensor(self.x.data, needs=True)
                self.leaf = tensor
                return tensor

        leaf = Leaf()
        value = nn.value_and_grad(leaf, lambda p, target: ours(p, target, reduction=reduction, **more)).run(x, t)
        close(np.array(value), np.array(expected.item()))
        close(leaf.leaf.gradient.data, px.grad.numpy())
        assert abs(ours(x, t, reduction=reduction, **more) - expected.item()) < 1e-4 * max(1, abs(expected.item()))


OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}), ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("RMSprop", {"lr": 0.01}), ("RMSprop", {"lr": 0.01, "momentum": 0.5, "centered": True}), ("RMSprop", {"weight_decay": 0.1}),
    ("Adam", {}), ("Adam", {"lr": 0.01, "weight_decay": 0.1}), ("Adam", {"amsgrad": True, "eps": 1e-3}), ("AdamW", {}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.3, "amsgrad": True}),
]


@needs_torch
@pytest.mark.parametrize("name,options", OPTIMIZERS)
def test_optimizer(name: str, options: dict[str, Any]) -> None:
    for seed in range(CASES):
        r = np.random.default_rng(seed)
        shapes = [tuple(int(s) for s in r.integers(1, 6, int(r.integers(1, 4)))) for _ in range(3)]
        start = [r.standard_normal(s).astype(np.float32) for s in shapes]
        ours = [nn.Parameter(s.copy()) for s in start]
        theirs = [torch.nn.Parameter(torch.tensor(s, dtype=torch.float64)) for s in start]
        a, b = getattr(optim, name)(ours, **options), getattr(torch.optim, name)(theirs, **options)
        for _ in range(10):
            for p, q in zip(ours, theirs):
                g = r.standard_normal(p.shape).astype(np.float32)
                p.gradient.data[...] = g
                q.grad = torch.tensor(g, dtype=torch.float64)
            a.step()
            b.step()
        for p, q in zip(ours, theirs):
            close(p.data, q.detach().numpy())


@needs_torch
def test_clipping_and_schedules() -> None:
    p, q = nn.Parameter(np.ones(3)), torch.nn.Parameter(torch.ones(3))
    p.gradient.data[...] = [3, 4, 12]
    q.grad = torch.tensor([3.0, 4.0, 12.0])
    assert abs(optim.clip_grad_norm([p], 2.0) - float(torch.nn.utils.clip_grad_norm_([q], 2.0))) < 1e-5
    close(p.grad, q.grad.numpy())
    a, b = optim.SGD([p], 0.5), torch.optim.SGD([q], 0.5)
    for mine, other in ((optim.step_schedule(a, 3, 0.5), torch.optim.lr_scheduler.StepLR(b, 3, 0.5)),):
        for _ in range(10):
            assert abs(a.lr - b.param_groups[0]["lr"]) < 1e-9
            b.step()
            mine.step(), other.step()
    a, b = optim.SGD([p], 0.5), torch.optim.SGD([q], 0.5)
    mine, other = optim.cosine_schedule(a, 10), torch.optim.lr_scheduler.CosineAnnealingLR(b, 10)
    for _ in range(10):
        assert abs(a.lr - b.param_groups[0]["lr"]) < 1e-9
        b.step()
        mine.step(), other.step()


def test_frozen_parameters_stay() -> None:
    model = make()
    model[0].requires_grad_(False)
    before = model.state_dict()
    openbnns.fit(model, blobs(), 1, progress=False)
    after = model.state_dict()
    assert np.array_equal(before["0.weight"], after["0.weight"]) and not np.array_equal(before["6.weight"], after["6.weight"])


def test_fit_learns_and_reports() -> None:
    seen: list[int] = []
    model = make()
    history = openbnns.fit(model, blobs(), 30, validation=blobs(64, 1), optimizer=optim.Adam(model, 0.01), progress=False,
                           callbacks=[lambda m, r: seen.append(r["epoch"])], clip_norm=5.0)
    assert [r["epoch"] for r in history] == seen == list(range(30))
    assert history[-1]["val_accuracy"] > 0.9 and history[-1]["loss"] < history[0]["loss"]
    assert openbnns.predict(model, blobs()[0]).shape == (96, 5)


def test_callbacks_end_and_raise() -> None:
    assert len(openbnns.fit(make(), blobs(), 9, callbacks=[lambda m, r: r["epoch"] < 2], progress=False)) == 3

    def broken(model: Any, record: Any) -> None:
        raise RuntimeError("mine")

    model = make()
    with pytest.raises(RuntimeError, match="mine"):
        openbnns.fit(model, blobs(), 2, callbacks=[broken], progress=False)
    assert model(blobs()[0]).shape == (96, 5)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_early_stopping() -> None:
    model = make()
    history = openbnns.fit(model, blobs(), 50, optimizer=optim.SGD(model, 0.0), patience=3, progress=False)
    assert len(history) < 50


def bits(model: nn.Module) -> dict[str, bytes]:
    return {k: v.tobytes() for k, v in model.state_dict().items()}


@pytest.mark.parametrize("stop", [1, 2])
def test_resume_ends_in_the_same_bits(tmp_path: Any, stop: int) -> None:
    file = tmp_path / "c.safetensors"
    whole = make(1, dropout=0.3)
    schedule = optim.cosine_schedule(optim.Adam(whole, 0.01), 4)
    history = openbnns.fit(whole, blobs(), 4, optimizer=schedule.optimizer, schedule=schedule, progress=False)
    first = make(1, dropout=0.3)
    s = optim.cosine_schedule(optim.Adam(first, 0.01), 4)
    openbnns.fit(first, blobs(), stop, optimizer=s.optimizer, schedule=s, checkpoint=file, progress=False)
    second = make(9, dropout=0.3)
    s = optim.cosine_schedule(optim.Adam(second, 0.01), 4)
    resumed = openbnns.fit(second, blobs(), 4, optimizer=s.optimizer, schedule=s, checkpoint=file, resume=True, progress=False)
    assert bits(second) == bits(whole)
    assert [r["loss"] for r in resumed] == [r["loss"] for r in history]


def test_ctrl_c_stops_behind_the_step_and_resumes(tmp_path: Any) -> None:
    file = tmp_path / "c.safetensors"
    x, y = blobs()
    whole = make(1, dropout=0.2)
    openbnns.fit(whole, (x, y), 2, batch_size=16, progress=False)
    calls = [0]

    def loss(p: Any, t: Any) -> Any:
        calls[0] += 1
        if calls[0] == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return losses.cross_entropy(p, t)

    model = make(1, dropout=0.2)
    history = openbnns.fit(model, (x, y), 2, batch_size=16, loss=loss, checkpoint=file, progress=False)
    assert history[-1]["interrupted"] and calls[0] == 3 and file.exists()
    assert model(x).shape == (96, 5)
    again = make(5, dropout=0.2)
    openbnns.fit(again, (x, y), 2, batch_size=16, checkpoint=file, resume=True, progress=False)
    assert bits(again) == bits(whole)


def test_two_runs_have_the_same_bits_on_any_number_of_threads() -> None:
    results = []
    for threads in (1, 2):
        openbnns.set_num_threads(threads)
        model = make(3)
        openbnns.fit(model, blobs(), 2, progress=False)
        results.append(bits(model))
    openbnns.set_num_threads(0)
    assert results[0] == results[1]


def test_copies_and_pickles_are_their_own() -> None:
    model = make()
    x = blobs()[0]
    model.eval()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other(x), model(x))
        other[6].bias.data += 1
        assert not np.array_equal(other(x), model(x))


def test_results_are_not_overwritten_by_the_next_call() -> None:
    model = make().eval()
    x = blobs()[0]
    a = model(x)
    kept = a.copy()
    model(x * 2)
    assert np.array_equal(a, kept)


def test_shared_layer_adds_its_gradients() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.layer(self.layer(x))

    model = Twice()
    w = model.layer.weight.data.astype(np.float64)
    b = model.layer.bias.data.astype(np.float64)
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    _, grads = nn.value_and_grad(model, lambda p, t: losses.mse(p, t, reduction="sum"))(x, np.zeros((4, 3), np.float32))
    h = x @ w.T + b
    dy = 2 * (h @ w.T + b)
    close(grads["layer.weight"], dy.T @ h + (dy @ w).T @ x)


def test_numpy_inside_value_and_grad_is_refused() -> None:
    class Wrong(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return np.tanh(self.layer(x))

    with pytest.raises(TypeError, match="no gradient"):
        nn.value_and_grad(Wrong(), losses.mse)(np.zeros((1, 3), np.float32), np.zeros((1, 3), np.float32))


def test_digits(digits: Any) -> None:
    from openbnns.data import mnist

    x, y = mnist(digits)
    order = np.random.default_rng(0).permutation(len(x))
    train, test = order[:4000], order[9000:]
    nn.seed(1)
    model = nn.Sequential(nn.Conv2d(1, 8, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 12 * 12, 10))
    history = openbnns.fit(model, (x[train], y[train]), 3, optimizer=optim.Adam(model, 2e-3), validation=(x[test], y[test]),
                           progress=False)
    assert history[-1]["val_accuracy"] > 0.93
