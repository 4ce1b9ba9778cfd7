"""Data: a loader with a reproducible shuffle and a prefetching thread, MNIST-style IDX files, folders of images."""

from __future__ import annotations

import os
import pathlib
import struct
import threading
import zlib
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from ._errors import Error
from .nn.tape import as_array


class Loader:
    """Batches of arrays, or of anything with len() and [i] that gives a tuple of arrays.

        for x, y in Loader((images, labels), batch_size=32, shuffle=True, seed=1): ...

    The order of an epoch follows from seed and the epoch's number alone. Without a shuffle batches of arrays are views. A
    thread prepares `prefetch` batches ahead (0: none); `transform(*batch)` is run there.
    """

    def __init__(self, data: Any, batch_size: int = 32, shuffle: bool = False, seed: int = 0, drop_last: bool = False,
                 prefetch: int = 2, transform: Callable[..., tuple[Any, ...]] | None = None) -> None:
        if batch_size < 1:
            raise Error(f"Loader: batch_size is {batch_size}, expected 1 or more")
        self.arrays: tuple[np.ndarray, ...] | None = None
        self.items: Any = None
        if hasattr(data, "shape"):
            data = (data,)
        if isinstance(data, (str, bytes)):
            raise Error(f"Loader: data is {type(data).__name__}, expected arrays, or something with len() and [i]")
        if isinstance(data, tuple) or (isinstance(data, list) and data and all(hasattr(a, "shape") for a in data)):
            self.arrays = tuple(as_array(a) for a in data)
            sizes = {len(a) for a in self.arrays}
            if len(sizes) != 1:
                raise Error(f"Loader: arrays have lengths {sorted(sizes)}, expected one length")
            self.length = sizes.pop()
        elif hasattr(data, "__len__") and hasattr(data, "__getitem__"):
            self.items, self.length = data, len(data)
        else:
            hint = ": give its .dataset" if hasattr(data, "dataset") else ""
            raise Error(f"Loader: data is {type(data).__name__}, expected arrays, or something with len() and [i]{hint}")
        self.batch_size, self.shuffle, self.seed, self.drop_last = batch_size, shuffle, seed, drop_last
        self.prefetch, self.transform = prefetch, transform
        self.passes = 0

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self.length // self.batch_size if self.drop_last else -(-self.length // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self.passes += 1
        return self.epoch(self.passes - 1)

    def epoch(self, number: int, first: int = 0) -> Iterator[tuple[Any, ...]]:
        """The batches of an epoch by its number, from batch `first` on."""
        order = np.random.default_rng([self.seed, number]).permutation(self.length) if self.shuffle else None
        batches = (self._batch(order, i) for i in range(first, len(self)))
        return _ahead(batches, self.prefetch) if self.prefetch > 0 else batches

    def _batch(self, order: np.ndarray | None, i: int) -> tuple[Any, ...]:
        begin, end = i * self.batch_size, min((i + 1) * self.batch_size, self.length)
        if self.arrays is not None:
            if order is None:
                batch: tuple[Any, ...] = tuple(a[begin:end] for a in self.arrays)
            else:
                batch = tuple(a[order[begin:end]] for a in self.arrays)
        else:
            chosen = range(begin, end) if order is None else order[begin:end]
            rows = [self.items[int(k)] for k in chosen]
            batch = tuple(np.stack([np.asarray(r[c]) for r in rows]) for c in range(len(rows[0])))
        return batch if self.transform is None else tuple(self.transform(*batch))


def _ahead(source: Iterator[Any], depth: int) -> Iterator[Any]:
    """The same items, made by a thread. An exception there is raised here; leaving the loop ends the thread."""
    import queue

    ready: queue.Queue[tuple[str, Any]] = queue.Queue(depth)
    stop = threading.Event()

    def put(item: tuple[str, Any]) -> bool:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in source:
                if not put(("item", item)):
                    return
            put(("end", None))
        except BaseException as error:
            put(("error", error))

    thread = threading.Thread(target=work, name="openbnns-loader", daemon=True)
    thread.start()
    try:
        while True:
            kind, value = ready.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value
    finally:
        stop.set()
        thread.join()


_IDX: dict[int, np.dtype[Any]] = {0x08: np.dtype("u1"), 0x09: np.dtype("i1"), 0x0B: np.dtype(">i2"), 0x0C: np.dtype(">i4"), 0x0D: np.dtype(">f4"),
        0x0E: np.dtype(">f8")}


def read_idx(path: Any) -> np.ndarray:
    """An array of an IDX file (MNIST's format), also packed by gzip. Sizes are compared with the file before memory is taken."""
    path = pathlib.Path(path)
    raw = path.read_bytes()
    try:
        if path.suffix == ".gz":
            raw = _gunzip(raw)
        if len(raw) < 4 or raw[0] or raw[1] or raw[2] not in _IDX or not 1 <= raw[3] <= 8:
            raise ValueError("it does not begin like an IDX file")
        dtype, rank = _IDX[raw[2]], raw[3]
        if len(raw) < 4 + 4 * rank:
            raise ValueError("it ends within its header")
        shape = struct.unpack(f">{rank}I", raw[4:4 + 4 * rank])
        size = dtype.itemsize
        for s in shape:
            size *= s
        if size != len(raw) - 4 - 4 * rank:
            raise ValueError(f"it has {len(raw) - 4 - 4 * rank} bytes of data, its sizes {shape} take {size}")
        array = np.frombuffer(raw, dtype, offset=4 + 4 * rank).reshape(shape)
        native: np.ndarray = array.astype(dtype.newbyteorder("="))
        return native
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise Error(f"read_idx: {path} is damaged: {error}") from None


def _gunzip(raw: bytes) -> bytes:
    import gzip
    import io

    limit = 1032 * len(raw) + 64  # deflate cannot do better
    with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ValueError("it unpacks to more than its size allows")
    return data


def mnist(folder: Any, split: str = "t10k") -> tuple[np.ndarray, np.ndarray]:
    """(images as float32 (N, 1, H, W) in [0, 1], labels as int64) of a folder of IDX files; split is "train" or "t10k"."""
    found = {}
    for kind in ("images", "labels"):
        names = sorted(p for p in pathlib.Path(folder).iterdir() if p.name.startswith(f"{split}-{kind}"))
        if not names:
            raise Error(f"mnist: {os.fspath(folder)} has no {split}-{kind}*, expected IDX files")
        found[kind] = read_idx(names[0])
    images, labels = found["images"], found["labels"]
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
        raise Error(f"mnist: images has shape {images.shape} and labels {labels.shape}, expected (N, H, W) and (N,)")
    return (images[:, None].astype(np.float32) / np.float32(255)), labels.astype(np.int64)


def read_png(path: Any) -> np.ndarray:
    """(C, H, W) uint8 of a PNG of 8 bits, grey, RGB or with alpha, not interlaced."""
    raw = pathlib.Path(path).read_bytes()
    try:
        if raw[:8] != b"\x89PNG\r\n\x1a\n":
            raise ValueError("it does not begin like a PNG file")
        at, packed, head = 8, [], None
        while at + 12 <= len(raw):
            length, kind = struct.unpack(">I4s", raw[at:at + 8])
            if length > len(raw) - at - 12:
                raise ValueError("a chunk is longer than the file")
            body = raw[at + 8:at + 8 + length]
            if kind == b"IHDR" and length == 13:
                head = struct.unpack(">IIBBBBB", body)
            elif kind == b"IDAT":
                packed.append(body)
            elif kind == b"IEND":
                break
            at += 12 + length
        if head is None or head[2] != 8 or head[3] not in (0, 2, 4, 6) or head[6] != 0:
            raise ValueError("it is no PNG of 8 bits, grey, RGB or with alpha, without interlacing")
        width, height, channels = head[0], head[1], {0: 1, 2: 3, 4: 2, 6: 4}[head[3]]
        needed = height * (1 + width * channels)
        if needed > 1032 * len(raw) + 64 or needed == 0:
            raise ValueError("its sizes do not fit its bytes")
        data = zlib.decompressobj().decompress(b"".join(packed), needed)
        if len(data) != needed:
            raise ValueError("it ends within the image")
        rows = np.frombuffer(data, np.uint8).reshape(height, 1 + width * channels)
        out = np.zeros((height + 1, (width + 1) * channels), np.int64)  # a row and a pixel of zeros before the image
        for y in range(height):
            _unfilter(int(rows[y, 0]), rows[y, 1:], out[y], out[y + 1], channels)
        image = out[1:, channels:].astype(np.uint8).reshape(height, width, channels)
        return np.ascontiguousarray(image.transpose(2, 0, 1))
    except (ValueError, struct.error, zlib.error) as error:
        raise Error(f"read_png: {os.fspath(path)} is damaged: {error}") from None


def _unfilter(kind: int, row: np.ndarray, above: np.ndarray, out: np.ndarray, n: int) -> None:
    if kind == 0:
        out[n:] = row
    elif kind == 1:
        out[n:] = np.cumsum(row.reshape(-1, n).astype(np.int64), axis=0).ravel() & 255
    elif kind == 2:
        out[n:] = (row + above[n:]) & 255
    elif kind in (3, 4):
        for i in range(n, len(out)):
            a, b, c = int(out[i - n]), int(above[i]), int(above[i - n])
            if kind == 3:
                guess = (a + b) // 2
            else:
                pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
                guess = a if pa <= pb and pa <= pc else b if pb <= pc else c
            out[i] = (int(row[i - n]) + guess) & 255
    else:
        raise ValueError(f"a row has filter {kind}")


class ImageFolder:
    """Images of folder/class/*.png (other formats where Pillow is installed) with the number of their class.

    Item i is (float32 (C, H, W) in [0, 1], label). All images must have one size; `classes` are the folders' names, sorted.
    """

    def __init__(self, folder: Any, transform: Callable[[np.ndarray], np.ndarray] | None = None) -> None:
        root = pathlib.Path(folder)
        self.classes: Sequence[str] = sorted(p.name for p in root.iterdir() if p.is_dir())
        self.files = [(file, label) for label, name in enumerate(self.classes)
                      for file in sorted((root / name).iterdir()) if file.is_file()]
        self.transform = transform
        if not self.files:
            raise Error(f"ImageFolder: {os.fspath(folder)} has no images, expected folder/class/*.png")

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        file, label = self.files[i]
        image = read_png(file) if file.suffix.lower() == ".png" else _by_pillow(file)
        scaled = image.astype(np.float32) / np.float32(255)
        return (scaled if self.transform is None else self.transform(scaled)), np.int64(label)  # type: ignore[return-value]


def _by_pillow(path: pathlib.Path) -> np.ndarray:
    try:
        from PIL import Image  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise Error(f"ImageFolder: {path} is {path.suffix or 'without an ending'}, expected .png (others need Pillow)") from None
    with Image.open(path) as image:
        array = np.asarray(image.convert("L" if image.mode in ("1", "L") else "RGB"))
    return np.ascontiguousarray(array[None] if array.ndim == 2 else array.transpose(2, 0, 1))
