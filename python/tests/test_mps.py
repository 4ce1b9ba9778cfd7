"""Pooling classes of Metal Performance Shaders from Python: against plain loops, memory by DLPack, refusals; on each device."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from conftest import close

import openbnns as ob
from openbnns import mps

DEVICES = [pytest.param("cpu"), pytest.param("cuda")]


@pytest.fixture(params=DEVICES)
def device(request: Any) -> mps.Device:
    try:
        return mps.Device(request.param)
    except ob.Error as error:
        pytest.skip(f"no {request.param} device: {error}")


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    size = int(np.prod(shape))
    return (np.random.default_rng(seed).permutation(size).reshape(shape) / 64 - size / 128).astype(np.float32)


def windows(x: np.ndarray, k: int, stride: int, dilation: int, offset: int, out: tuple[int, int], clamp: bool) -> np.ndarray:
    """(N, C, OH, OW, k * k): the taps of each window; output i is centred on offset + stride i."""
    n, c, h, w = x.shape
    taps = np.zeros((n, c, *out, k * k), np.float64)
    first = offset - ((k - 1) * dilation + 1) // 2
    for i in range(out[0]):
        for j in range(out[1]):
            for t in range(k * k):
                y0, x0 = first + stride * i + dilation * (t // k), first + stride * j + dilation * (t % k)
                if clamp:
                    taps[:, :, i, j, t] = x[:, :, min(max(y0, 0), h - 1), min(max(x0, 0), w - 1)]
                elif 0 <= y0 < h and 0 <= x0 < w:
                    taps[:, :, i, j, t] = x[:, :, y0, x0]
    return taps


def run(device: mps.Device, encode: Any) -> Any:
    buffer = mps.CommandQueue(device).command_buffer()
    result = encode(buffer)
    buffer.commit()
    buffer.wait_until_completed()
    assert buffer.status == "completed" and buffer.seconds >= 0
    return result


@pytest.mark.parametrize("kind", ["CNNPoolingMax", "CNNPoolingAverage", "CNNPoolingL2Norm", "CNNDilatedPoolingMax"])
@pytest.mark.parametrize("channels", [1, 2, 3, 5, 8])
def test_forward_and_gradient(device: mps.Device, kind: str, channels: int) -> None:
    x = numbers(2, channels, 9, 11)
    dilation = (2, 2) if "Dilated" in kind else ()
    pool = getattr(mps, kind)(device, 3, 3, *dilation, 2, 2)
    pool.edge_mode = "clamp" if kind == "CNNPoolingMax" else "zero"
    source = mps.image(device, x)
    y, state = run(device, lambda b: pool.encode_with_state(b, source))
    d = dilation[0] if dilation else 1
    taps = windows(x, 3, 2, d, pool.offset[0], y.shape[2:], pool.edge_mode == "clamp")
    reduce: Any = {"CNNPoolingAverage": lambda t: t.mean(-1), "CNNPoolingL2Norm": lambda t: np.sqrt((t * t).sum(-1))}.get(
        kind, lambda t: t.max(-1))
    assert pool.offset[0] == pool.offset[1]
    close(y.numpy(), reduce(taps))

    dy = numbers(*y.shape, seed=1)
    gradient = getattr(mps, kind + "Gradient")(device, 3, 3, *dilation, 2, 2)
    dx = run(device, lambda b: gradient.encode(b, mps.image(device, dy), source, state)).numpy()
    assert dx.shape == x.shape
    step, total = 1e-3, 0.0
    r = np.random.default_rng(2)
    for _ in range(6):  # the change of sum(dy y) along a direction is sum(dx direction)
        at = tuple(int(r.integers(s)) for s in x.shape)
        moved = []
        for sign in (1, -1):
            z = x.astype(np.float64).copy()
            z[at] += sign * step
            moved.append((reduce(windows(z, 3, 2, d, pool.offset[0], y.shape[2:], pool.edge_mode == "clamp")) * dy).sum())
        total = max(total, abs((moved[0] - moved[1]) / (2 * step) - dx[at]))
    assert total < 1e-3


def test_destination_clip_and_properties(device: mps.Device) -> None:
    x = numbers(1, 4, 6, 6)
    pool = mps.CNNPoolingMax(device, 2, 2, 2, 2)
    pool.offset, pool.clip_rect = (1, 1, 0), ((1, 0, 0), (2, 3, 1))
    assert pool.offset == (1, 1, 0) and pool.clip_rect == ((1, 0, 0), (2, 3, 1)) and "CNNPoolingMax" in repr(pool)
    y = mps.image(device, np.full((1, 4, 3, 3), 7, np.float32))
    run(device, lambda b: pool.encode(b, mps.image(device, x), y))
    got = y.numpy()
    assert (got[..., 0] == 7).all() and not (got[..., 1:] == 7).any()
    pool.clip_rect = None
    assert pool.clip_rect is None
    average = mps.CNNPoolingAverage(device, 3, 3)
    average.zero_pad_size_x = 2
    assert average.zero_pad_size_x == 2
    pool.padding_method = mps.PaddingMethod.size_valid_only
    assert run(device, lambda b: pool.encode(b, mps.image(device, x))).shape == (1, 4, 3, 3)


@pytest.mark.parametrize("channels", [1, 2, 4, 6])
def test_memory_is_shared_by_dlpack(device: mps.Device, channels: int) -> None:
    x = numbers(2, channels, 3, 5)
    image = mps.image(device, x)
    if device.kind == "cpu":
        assert np.array_equal(mps.tensor(image), x)
        texels = np.from_dlpack(image)
        assert texels.shape == (2, (channels + 3) // 4, 3, 5, min(4, channels))
        assert np.shares_memory(texels, np.from_dlpack(image))
        kept = np.from_dlpack(mps.image(device, x))  # the image is gone, its memory is not
        noise = [mps.image(device, x * 0) for _ in range(20)]
        assert len(noise) == 20 and np.array_equal(kept, texels)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    t = mps.tensor(image, torch)
    assert t.device.type == device.kind and np.array_equal(t.cpu().numpy(), x)
    other = mps.image(device, t * 2)
    assert np.array_equal(other.numpy(), x * 2)


def test_arrays_in(device: mps.Device) -> None:
    x = numbers(1, 3, 4, 4)
    for given in (x, x[0], np.asfortranarray(x), memoryview(x)):
        image = mps.Image(device, x.shape)
        image.write(given)
        assert np.array_equal(image.numpy(), x)
    for dtype in ("float16", "uint8", "uint16"):
        values = (x * 3 + 9).astype(dtype)
        assert np.array_equal(mps.image(device, values).numpy(), values)


def test_refusals(device: mps.Device) -> None:
    image = mps.Image(device, (1, 2, 3, 4))
    for call, reason in ((lambda: mps.Image(device, (1, 2, 3)), "expected \\(N, C, H, W\\)"),
                         (lambda: mps.Image(device, (1, 2, 3, 0)), "Image"),
                         (lambda: mps.Image(device, (1, 2, 3, 4), "float64"), "dtype is float64"),
                         (lambda: image.write(np.zeros((1, 2, 3, 5), np.float32)), "expected \\(1, 2, 3, 4\\)"),
                         (lambda: image.write(np.zeros((1, 2, 3, 4))), "expected float32"),
                         (lambda: mps.CNNPoolingMax(device, 0, 3), "CNNPoolingMax"),
                         (lambda: mps.Device("tpu"), "expected default, cpu or cuda")):
        with pytest.raises(ob.Error, match=reason):
            call()
    for method in ("write", "texels", "__dlpack__"):
        with pytest.raises(TypeError):
            getattr(mps.Image, method)(*[3] * (1 + (method == "write")))
    pool = mps.CNNPoolingMax(device, 2, 2)
    with pytest.raises(ob.Error, match="edge_mode"):
        pool.edge_mode = "mirror"
    buffer = mps.CommandQueue(device).command_buffer()
    with pytest.raises(ob.Error, match="CNNPoolingMax"):
        pool.encode(buffer, image, image)
    with pytest.raises(ob.Error, match="not committed"):
        buffer.wait_until_completed()
    buffer.commit()
    with pytest.raises(ob.Error, match="CNNPoolingMax"):  # it ran nothing
        buffer.wait_until_completed()
    with pytest.raises(ob.Error, match="before"):
        buffer.commit()
    assert device in mps.devices() and mps.Device().name


def test_temporary_images(device: mps.Device) -> None:
    x = numbers(1, 3, 8, 8)
    first, second = mps.CNNPoolingAverage(device, 2, 2, 2, 2), mps.CNNPoolingMax(device, 2, 2, 2, 2)
    for pool in (first, second):
        pool.offset = (1, 1, 0)
        pool.padding_method = mps.PaddingMethod.size_valid_only
    first.temporary_results = True
    assert first.temporary_results and not second.temporary_results
    buffer = mps.CommandQueue(device).command_buffer()
    between = first.encode(buffer, mps.image(device, x))
    assert isinstance(between, mps.TemporaryImage) and between.is_temporary and between.read_count == 1
    y = second.encode(buffer, between)
    assert not isinstance(y, mps.TemporaryImage) and between.read_count == 0
    with pytest.raises(ob.Error, match="read"):
        between.read_count = 2
    own = mps.TemporaryImage(buffer, (1, 3, 4, 4))
    own.read_count = 2
    first.encode(buffer, mps.image(device, x), own)
    again = [second.encode(buffer, own) for _ in range(2)]
    for refused in (own.numpy, own.texels, lambda: own.write(x[:, :, :4, :4])):
        with pytest.raises(ob.Error, match="temporary|command buffer"):
            refused()
    buffer.commit()
    buffer.wait_until_completed()
    expected = x.reshape(1, 3, 4, 2, 4, 2).mean((3, 5)).reshape(1, 3, 2, 2, 2, 2).max((3, 5))
    for image in (y, *again):
        close(image.numpy(), expected)
    other = mps.CommandQueue(device).command_buffer()
    with pytest.raises(ob.Error, match="temporary"):
        second.encode(other, between)


def test_batches(device: mps.Device) -> None:
    xs = [numbers(1, 5, 6, 7, seed=i) for i in range(3)]
    pool, gradient = mps.CNNPoolingL2Norm(device, 3, 3, 2, 2), mps.CNNPoolingL2NormGradient(device, 3, 3, 2, 2)
    sources = [mps.image(device, x) for x in xs]
    ys, states = run(device, lambda b: pool.encode_batch_with_states(b, sources))
    whole, state = run(device, lambda b: pool.encode_with_state(b, mps.image(device, np.concatenate(xs))))
    assert len(ys) == len(states) == 3
    assert np.array_equal(np.concatenate([y.numpy() for y in ys]), whole.numpy())
    plain = run(device, lambda b: pool.encode_batch(b, sources))
    assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(plain, ys))
    dxs = run(device, lambda b: gradient.encode_batch(b, ys, sources, states))
    dx = run(device, lambda b: gradient.encode(b, whole, mps.image(device, np.concatenate(xs)), state))
    assert np.array_equal(np.concatenate([d.numpy() for d in dxs]), dx.numpy())
    into = mps.Image(device, whole.shape)
    views = into.batch_representation()
    pool.offset = (1, 1, 0)
    assert [v.shape[0] for v in views] == [1, 1, 1]
    assert run(device, lambda b: pool.encode_batch(b, sources, views))[1] is views[1]
    for view, image in zip(views, into.numpy()):
        assert np.array_equal(view.numpy()[0], image)
        if device.kind == "cpu":
            assert np.array_equal(mps.tensor(view)[0], image)
    with pytest.raises(ob.Error, match="CNNPoolingL2Norm"):
        pool.encode_batch(mps.CommandQueue(device).command_buffer(), sources, views[:2])
    with pytest.raises((ob.Error, TypeError)):
        pool.encode_batch(mps.CommandQueue(device).command_buffer(), [sources[0], None])  # type: ignore[list-item]


def test_handlers(device: mps.Device, monkeypatch: Any) -> None:
    import threading

    seen: list[Any] = []
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: unraisable.append(u.exc_value))
    buffer = mps.CommandQueue(device).command_buffer()
    buffer.label = "mine"

    def broken(_: mps.CommandBuffer) -> None:
        raise RuntimeError("of a handler")

    buffer.add_scheduled_handler(lambda b: seen.append(("scheduled", b.label)))
    buffer.add_completed_handler(broken)
    buffer.add_completed_handler(lambda b: seen.append((b.status, b.error, threading.current_thread() is threading.main_thread())))
    pool = mps.CNNPoolingMax(device, 2, 2)
    pool.encode(buffer, mps.image(device, numbers(1, 2, 4, 4)))
    buffer.commit()
    buffer.wait_until_completed()
    assert seen == [("scheduled", "mine"), ("completed", None, False)]
    assert [str(e) for e in unraisable] == ["of a handler"]
    with pytest.raises(ob.Error, match="committed before"):
        buffer.add_completed_handler(print)
    failed = mps.CommandQueue(device).command_buffer()
    failed.add_completed_handler(lambda b: seen.append((b.status, b.error)))
    image = mps.Image(device, (1, 1, 2, 2))
    with pytest.raises(ob.Error):
        pool.encode(failed, image, image)
    failed.commit()
    with pytest.raises(ob.Error):
        failed.wait_until_completed()
    assert seen[-1][0] == "error" and "CNNPoolingMax" in seen[-1][1] and failed.error == seen[-1][1]
    dropped = mps.CommandQueue(device).command_buffer()  # never committed: its handler is dropped with it
    dropped.add_completed_handler(lambda b: seen.append("never"))
    del dropped
    assert "never" not in seen


def test_an_interpreter_waits_for_handlers() -> None:
    code = ("from openbnns import mps; import numpy as np; d = mps.Device('cpu'); b = mps.CommandQueue(d).command_buffer(); "
            "p = mps.CNNPoolingMax(d, 9, 9); p.encode(b, mps.image(d, np.zeros((8, 16, 64, 64), np.float32))); "
            "b.add_completed_handler(lambda b: print(b.status, flush=True)); b.commit()")
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (0, "completed\n"), done.stderr


def test_archives(device: mps.Device) -> None:
    x = mps.image(device, numbers(2, 4, 9, 9))
    for kind in ("CNNPoolingMax", "CNNPoolingAverage", "CNNPoolingL2Norm", "CNNDilatedPoolingMax"):
        for name in (kind, kind + "Gradient"):
            made = getattr(mps, name)(device, 3, 3, *((2, 2) if "Dilated" in kind else ()), 2, 2)
            made.label, made.clip_rect = "l", ((1, 0, 0), (2, 3, 1))
            made.padding_method = mps.PaddingMethod.size_valid_only
            if "Average" in kind:
                made.zero_pad_size_x = 3
            for back in (mps.deserialize(made.serialize(), device), made.copy(), copy.deepcopy(made)):
                assert type(back) is type(made) and repr(back) == repr(made) and back.serialize() == made.serialize()
                assert back.clip_rect == made.clip_rect and not back.temporary_results and back.device == device
            assert repr(pickle.loads(pickle.dumps(made))) == repr(made)
    pool = mps.CNNPoolingAverage(device, 3, 3, 2, 2)
    again = mps.deserialize(pool.serialize(), device)
    assert isinstance(again, mps.CNNPoolingAverage)
    assert np.array_equal(*[run(device, lambda b, p=p: p.encode(b, x)).numpy() for p in (pool, again)])
    good, r = pool.serialize(), np.random.default_rng(0)
    for raw in (b"", b"text", good[:-1], *[bytes(b ^ (1 << int(r.integers(8)) if i == at else 0) for i, b in enumerate(good))
                                         for at in r.integers(0, len(good), 300)]):
        try:
            mps.deserialize(raw, device)
        except ob.Error:
            continue
