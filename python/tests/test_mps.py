"""Pooling classes of Metal Performance Shaders from Python: against plain loops, memory by DLPack, refusals; on each device."""

from __future__ import annotations

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
