"""Files: safetensors both ways with its own package and PyTorch, npz, IDX, PNG; damaged files end in one exception."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from typing import Any

import numpy as np
import pytest

import openbnns as ob
from openbnns import data, io, nn

RUNS = int(os.environ.get("OPENBNNS_FUZZ", "400"))  # damaged files of each kind


def arrays() -> dict[str, np.ndarray]:
    r = np.random.default_rng(0)
    return {"a.weight": r.standard_normal((3, 4)).astype(np.float32), "b": np.arange(5), "flag": np.array([True, False]),
            "half": np.ones((2, 2), np.float16), "none": np.zeros((0, 3), np.float32), "one": np.array(7, np.int64)}


@pytest.mark.parametrize("suffix", [".safetensors", ".npz"])
def test_round_trip(tmp_path: Any, suffix: str) -> None:
    path = tmp_path / ("x" + suffix)
    io.save(path, arrays())
    back = io.load(path)
    assert back.keys() == arrays().keys()
    for name, value in arrays().items():
        assert back[name].dtype == value.dtype and np.array_equal(back[name], value) and back[name].shape == value.shape
    assert os.listdir(tmp_path) == [path.name]


def test_the_format_s_own_package_agrees(tmp_path: Any) -> None:
    st = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    ours, theirs = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    io.save(ours, arrays())
    st.save_file(arrays(), theirs)
    for name, value in st.load_file(ours).items():
        assert np.array_equal(value, arrays()[name])
    for name, value in io.load(theirs).items():
        assert np.array_equal(value, arrays()[name])


def resnet(lib: Any, residual: Any) -> Any:
    """ResNet-18's shape: 4 stages of 2 blocks, shortcuts where the size changes."""
    def block(i: int, o: int, stride: int) -> Any:
        body = lib.Sequential(lib.Conv2d(i, o, 3, stride, 1, bias=False), lib.BatchNorm2d(o), lib.ReLU(),
                              lib.Conv2d(o, o, 3, 1, 1, bias=False), lib.BatchNorm2d(o))
        short = lib.Sequential(lib.Conv2d(i, o, 1, stride, bias=False), lib.BatchNorm2d(o)) if stride != 1 or i != o else None
        return residual(body, short, lib.ReLU())

    layers = [lib.Conv2d(3, 16, 7, 2, 3, bias=False), lib.BatchNorm2d(16), lib.ReLU(), lib.MaxPool2d(3, 2, 1)]
    width = 16
    for stage in range(4):
        for k in range(2):
            out = 16 << stage
            layers.append(block(width, out, 2 if stage and not k else 1))
            width = out
    return lib.Sequential(*layers, lib.AdaptiveAvgPool2d(1), lib.Flatten(), lib.Linear(width, 10))


def test_state_dict_of_pytorch_both_ways(tmp_path: Any) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    st = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    from test_modules import TorchResidual

    theirs, ours = resnet(torch.nn, TorchResidual).eval(), resnet(nn, nn.Residual).eval()
    st.save_file(theirs.state_dict(), tmp_path / "t.safetensors")
    ours.load(tmp_path / "t.safetensors")
    x = np.random.default_rng(0).standard_normal((2, 3, 64, 64)).astype(np.float32)
    with torch.no_grad():
        assert np.abs(ours(x) - theirs(torch.tensor(x)).numpy()).max() < 1e-4
    nn.seed(5)
    other = resnet(nn, nn.Residual).eval()
    other.save(tmp_path / "o.safetensors")
    theirs.load_state_dict(st.load_file(tmp_path / "o.safetensors"))
    with torch.no_grad():
        assert np.abs(other(x) - theirs(torch.tensor(x)).numpy()).max() < 1e-4


def test_load_is_all_or_nothing() -> None:
    model = nn.Linear(3, 2)
    before = model.state_dict()
    for state in ({"weight": np.zeros((2, 3))}, {"weight": np.zeros((2, 3)), "bias": np.zeros(3)},
                  {"weight": np.zeros((2, 3)), "bias": np.zeros(2), "more": np.zeros(1)}):
        with pytest.raises(ob.Error, match="load_state_dict"):
            model.load_state_dict(state)
        assert all(np.array_equal(before[k], v) for k, v in model.state_dict().items())
    model.load_state_dict({"weight": np.zeros((2, 3))}, strict=False)
    assert not model.weight.data.any()


def header(text: str, data_bytes: bytes = b"") -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode() + data_bytes


@pytest.mark.parametrize("raw", [
    b"", b"1234567", struct.pack("<Q", 1 << 60), struct.pack("<Q", 5) + b"{}", header("[]"), header("{"), header("\xff"),
    header('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b"123"),
    header('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b"12345"),
    header('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', b"1234"),
    header('{"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}}', b"1234"),
    header('{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}', b"1234"),
    header('{"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}', b"1234"),
    header('{"a":{"dtype":"F32","shape":[true],"data_offsets":[0,4]}}', b"1234"),
    header('{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}', b"123"),
    header('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}', b"123"),
    header('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
    header('{"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}}'),
    header('{"__metadata__":{"a":1}}'), header("[" * 100000),
])
def test_damaged_safetensors(tmp_path: Any, raw: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(raw)
    with pytest.raises(ob.Error, match="damaged"):
        io.load(path)


def damaged(good: bytes, r: np.random.Generator) -> bytes:
    raw = bytearray(good)
    for _ in range(int(r.integers(1, 4))):
        kind, at = r.integers(4), int(r.integers(len(raw))) if raw else 0
        if not raw:
            break
        if kind == 0:
            raw[at] = int(r.integers(256))
        elif kind == 1:
            raw[at] ^= 1 << int(r.integers(8))
        elif kind == 2:
            del raw[at:]
        else:
            raw[at:at] = bytes(r.integers(0, 256, 3, dtype=np.uint8))
    return bytes(raw)


def png(image: np.ndarray, filters: Any = None) -> bytes:
    c, h, w = image.shape
    rows = b"".join(bytes([0]) + image[:, y].T.tobytes() for y in range(h))

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", w, h, 8, {1: 0, 3: 2}[c], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def idx(a: np.ndarray) -> bytes:
    return bytes([0, 0, 8, a.ndim]) + struct.pack(f">{a.ndim}I", *a.shape) + a.astype(np.uint8).tobytes()


def test_fuzz(tmp_path: Any) -> None:
    io.save(tmp_path / "g.safetensors", arrays())
    io.save(tmp_path / "g.npz", arrays())
    image = np.arange(48, dtype=np.uint8).reshape(3, 4, 4)
    (tmp_path / "g.idx").write_bytes(idx(image))
    (tmp_path / "g.gz").write_bytes(gzip.compress(idx(image)))
    (tmp_path / "g.png").write_bytes(png(image))
    readers = {"safetensors": io.load, "npz": io.load, "idx": data.read_idx, "gz": data.read_idx, "png": data.read_png}
    r = np.random.default_rng(1)
    refused = 0
    for suffix, reader in readers.items():
        good = (tmp_path / f"g.{suffix}").read_bytes()
        reader(tmp_path / f"g.{suffix}")
        path = tmp_path / f"bad.{suffix}"
        for _ in range(RUNS):
            path.write_bytes(damaged(good, r))
            try:
                reader(path)
            except ob.Error:
                refused += 1
    assert refused > RUNS


def test_images(tmp_path: Any) -> None:
    r = np.random.default_rng(0)
    for label, name in enumerate(("cat", "dog")):
        (tmp_path / name).mkdir()
        for i in range(3):
            (tmp_path / name / f"{i}.png").write_bytes(png(np.full((3, 4, 5), 10 * label + i, np.uint8)))
    folder = data.ImageFolder(tmp_path)
    assert folder.classes == ["cat", "dog"] and len(folder) == 6
    image, label = folder[4]
    assert image.shape == (3, 4, 5) and label == 1 and abs(image.max() - 11 / 255) < 1e-6
    batches = list(data.Loader(folder, 4, shuffle=True, seed=2))
    assert batches[0][0].shape == (4, 3, 4, 5) and len(batches) == 2
    try:
        from PIL import Image
    except ImportError:
        return
    noise = r.integers(0, 256, (9, 7, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "n.png")
    assert np.array_equal(data.read_png(tmp_path / "n.png"), noise.transpose(2, 0, 1))


def test_loader() -> None:
    x, y = np.arange(10), np.arange(10) * 2
    plain = list(data.Loader((x, y), 4))
    assert [len(a) for a, _ in plain] == [4, 4, 2] and np.shares_memory(plain[0][0], x)
    mixed = data.Loader((x, y), 3, shuffle=True, seed=1)
    first = np.concatenate([a for a, _ in mixed.epoch(0)])
    assert sorted(first) == list(range(10)) and not np.array_equal(first, x)
    assert np.array_equal(first, np.concatenate([a for a, _ in mixed.epoch(0)]))
    assert not np.array_equal(first, np.concatenate([a for a, _ in mixed.epoch(1)]))
    assert np.array_equal(first[3:], np.concatenate([a for a, _ in mixed.epoch(0, first=1)]))

    def broken(*_: Any) -> Any:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        list(data.Loader((x, y), 3, transform=broken))
    with pytest.raises(ob.Error, match="lengths"):
        data.Loader((x, y[:3]))
    import threading

    before = threading.active_count()
    for _ in data.Loader((x, y), 1):
        break
    assert threading.active_count() <= before + 1
