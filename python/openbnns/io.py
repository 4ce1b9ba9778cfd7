"""Saving and loading arrays by name: safetensors and .npz. Readers are strict and allocate no more than the file holds.

A safetensors file is 8 bytes with the length of a JSON header (little-endian), the header with dtype, shape and place of each
tensor, and the tensors one after the other. Refused: headers above 100 MB or that are no JSON, names that come twice, tensors
that overlap, leave holes, or end elsewhere than the file, and shapes that do not fit their bytes. Files are written under
another name and renamed, so that a crash leaves the old one.
"""

from __future__ import annotations

import errno
import json
import os
import pathlib
import struct
from typing import Any, Callable, Mapping

import numpy as np

from ._errors import Error

HEADER_LIMIT = 100_000_000
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U64": "<u8",
          "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1", "BF16": "<u2"}
_NAMES = {np.dtype(v): k for k, v in _TYPES.items() if k != "BF16"}


def _bfloat16() -> Any:
    try:
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    except ImportError:
        return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the name {key!r} comes twice")
        result[key] = value
    return result


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r} is no size")
    return value


def parse_header(header: bytes, data_size: int) -> tuple[dict[str, tuple[str, tuple[int, ...], int, int]], dict[str, str]]:
    """Tensors by name as (dtype, shape, begin, end), and the metadata. Raises ValueError where the header is not sound."""
    table = json.loads(header.decode("utf-8"), object_pairs_hook=_unique)
    if not isinstance(table, dict):
        raise ValueError("the header is no object")
    metadata = table.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError("__metadata__ is no object of texts")
    tensors: dict[str, tuple[str, tuple[int, ...], int, int]] = {}
    for name, entry in table.items():
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise ValueError(f"{name!r} has other fields than dtype, shape and data_offsets")
        dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in _TYPES:
            raise ValueError(f"{name!r} is of dtype {dtype!r}")
        if not isinstance(shape, list) or len(shape) > 32 or not isinstance(offsets, list) or len(offsets) != 2:
            raise ValueError(f"{name!r} has a wrong shape or place")
        sizes, (begin, end) = tuple(_count(s) for s in shape), (_count(offsets[0]), _count(offsets[1]))
        size = np.dtype(_TYPES[dtype]).itemsize
        for s in sizes:
            size *= s
        if end - begin != size:
            raise ValueError(f"{name!r} has {end - begin} bytes, expected {size}")
        if end > data_size:
            raise ValueError(f"{name!r} ends at byte {end} of the data, the file has {data_size}")
        tensors[name] = (dtype, sizes, begin, end)
    at = 0
    for name, (_, _, begin, end) in sorted(tensors.items(), key=lambda item: item[1][2:]):
        if begin != at:
            raise ValueError(f"{name!r} begins at {begin}, expected {at}: tensors lie one after the other")
        at = end
    if at != data_size:
        raise ValueError(f"the tensors end at {at}, the file at {data_size}")
    return tensors, metadata


def load_safetensors(path: Any) -> dict[str, np.ndarray]:
    """Arrays by name. bfloat16 needs ml_dtypes, else it becomes float32."""
    try:
        with open(path, "rb") as file:
            total = os.fstat(file.fileno()).st_size
            first = file.read(8)
            if len(first) != 8:
                raise ValueError(f"the file has {total} bytes, expected 8 or more")
            (length,) = struct.unpack("<Q", first)
            if length > min(HEADER_LIMIT, total - 8):
                raise ValueError(f"the header has {length} bytes, expected at most {min(HEADER_LIMIT, total - 8)}")
            tensors, _ = parse_header(file.read(length), total - 8 - length)
            half = _bfloat16()
            result = {}
            for name, (dtype, shape, begin, end) in tensors.items():
                array = np.empty((end - begin) // np.dtype(_TYPES[dtype]).itemsize, _TYPES[dtype])
                file.seek(8 + length + begin)
                if file.readinto(array.data.cast("B") if array.size else bytearray()) != end - begin:
                    raise ValueError("the file became shorter while it was read")
                if dtype == "BF16":
                    array = array.view(half) if half is not None else (array.astype("<u4") << 16).view("<f4")
                result[name] = array.reshape(shape)
            return result
    except (ValueError, RecursionError, UnicodeDecodeError) as error:
        raise Error(f"load_safetensors: {os.fspath(path)} is damaged: {error}") from None


def _write(path: Any, write: Callable[[Any], None]) -> None:
    """Writes to a file beside `path` and renames it."""
    import tempfile

    target = pathlib.Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(target.parent))
    handle, name = tempfile.mkstemp(prefix=target.name + ".", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def save_safetensors(path: Any, arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Writes arrays by name, larger element types first, as the format's own writer does."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    entries = []
    for name, value in arrays.items():
        array = np.asarray(value)
        if array.dtype.name == "bfloat16":
            dtype, array = "BF16", array.view(np.uint16)
        elif array.dtype.newbyteorder("<") in _NAMES:
            dtype = _NAMES[array.dtype.newbyteorder("<")]
        else:
            raise Error(f"save_safetensors: {name} is of dtype {array.dtype}, expected numbers or bool")
        if name == "__metadata__":
            raise Error("save_safetensors: a name is '__metadata__', expected another")
        entries.append((name, dtype, np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)))
    entries.sort(key=lambda e: (-e[2].itemsize, e[0]))
    at = 0
    for name, dtype, array in entries:
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)

    def write(file: Any) -> None:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, array in entries:
            file.write(array.tobytes())

    _write(path, write)


def load_npz(path: Any) -> dict[str, np.ndarray]:
    """Arrays of a .npz file: plain numbers alone, no pickles, and no member that unpacks to more than it says."""
    import zipfile

    try:
        result: dict[str, np.ndarray] = {}
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                name = info.filename[:-4] if info.filename.endswith(".npy") else info.filename
                if name in result:
                    raise ValueError(f"the name {name!r} comes twice")
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
                    raise ValueError(f"{name!r} is packed in another way than stored or deflated")
                if info.file_size > 1032 * max(1, info.compress_size):
                    raise ValueError(f"{name!r} claims {info.file_size} bytes of {info.compress_size}")
                with archive.open(info) as member:
                    version = np.lib.format.read_magic(member)
                    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
                    if read is None:
                        raise ValueError(f"{name!r} is of version {version}")
                    shape, fortran, dtype = read(member)
                    if dtype.hasobject:
                        raise ValueError(f"{name!r} holds Python objects")
                    size = dtype.itemsize
                    for s in shape:
                        size *= s
                    if size < 0 or size > info.file_size:
                        raise ValueError(f"{name!r} is of {size} bytes, the member has {info.file_size}")
                    data = member.read(size + 1)
                    if len(data) != size:
                        raise ValueError(f"{name!r} has {len(data)} bytes, expected {size}")
                result[name] = np.frombuffer(bytearray(data), dtype).reshape(shape, order="F" if fortran else "C")
        return result
    except FileNotFoundError:
        raise
    except Exception as error:  # zipfile and NumPy raise many kinds for damaged files
        raise Error(f"load_npz: {os.fspath(path)} is damaged: {error}") from None


def save_npz(path: Any, arrays: Mapping[str, Any]) -> None:
    """Writes arrays by name, not compressed."""
    plain: dict[str, Any] = {k: np.asarray(v) for k, v in arrays.items()}
    _write(path, lambda file: np.savez(file, **plain))


def save(path: Any, arrays: Mapping[str, Any]) -> None:
    """Writes .safetensors or .npz, by the name of the file."""
    suffix = pathlib.Path(path).suffix
    if suffix not in (".safetensors", ".npz"):
        raise Error(f"save: path is {os.fspath(path)}, expected a name that ends in .safetensors or .npz")
    (save_safetensors if suffix == ".safetensors" else save_npz)(path, arrays)


def load(path: Any) -> dict[str, np.ndarray]:
    """Reads .safetensors or .npz, by the name of the file."""
    suffix = pathlib.Path(path).suffix
    if suffix not in (".safetensors", ".npz"):
        raise Error(f"load: path is {os.fspath(path)}, expected a name that ends in .safetensors or .npz")
    return load_safetensors(path) if suffix == ".safetensors" else load_npz(path)
