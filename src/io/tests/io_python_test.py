"""Files of libbnns.so beside those of the Python package safetensors: the same bytes, and each reads the other's.

io_python_test.py path/to/libbnns.so
Exits with 77 and a reason where safetensors or NumPy is missing.
"""
import ctypes
import pathlib
import sys
import tempfile

try:
    import numpy as np
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file
except ImportError as reason:
    print(f"skipped: the Python packages safetensors and numpy are not installed ({reason})")
    sys.exit(77)

TYPES = {"float32": 0x10020, "float16": 0x10010, "int8": 0x20008, "int16": 0x20010, "int32": 0x20020, "int64": 0x20040,
         "uint8": 0x40008, "uint16": 0x40010, "uint32": 0x40020, "uint64": 0x40040, "bool": 0x100008}
ROW_MAJOR, COLUMN_MAJOR, OIHW, CHW, VECTOR = 0x20000, 0x20001, 0x40000, 0x30000, 0x10000


class Array(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint32), ("layout", ctypes.c_uint32), ("size", ctypes.c_size_t * 8),
                ("stride", ctypes.c_size_t * 8), ("data", ctypes.c_void_p), ("data_type", ctypes.c_uint32),
                ("table_data", ctypes.c_void_p), ("table_data_type", ctypes.c_uint32),
                ("data_scale", ctypes.c_float), ("data_bias", ctypes.c_float)]


class Named(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("array", ctypes.POINTER(Array))]


class Pair(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


library = ctypes.CDLL(sys.argv[1])
library.BNNSExtArrayFileOpen.restype = ctypes.c_void_p
library.BNNSExtArrayFileMetadata.restype = ctypes.c_char_p
library.BNNSExtLastError.restype = ctypes.c_char_p


def check(good):
    assert good, library.BNNSExtLastError().decode()


def describe(values, layout):
    """The sizes of `values` in the order of the layout: reversed, but for first-major ones."""
    first_major = layout & 0x8001 == 0x8001
    sizes = values.shape if first_major else values.shape[::-1]
    array = Array(layout=layout, data=values.ctypes.data, data_type=TYPES[str(values.dtype)])
    array.size[:len(sizes)] = sizes
    return array


def save(path, arrays, metadata=()):
    kept = [describe(values, layout) for values, layout in arrays.values()]
    named = (Named * len(kept))(*[Named(name.encode(), ctypes.pointer(a)) for name, a in zip(arrays, kept)])
    pairs = (Pair * len(metadata))(*[Pair(k.encode(), v.encode()) for k, v in metadata])
    check(library.BNNSExtArraysSave(str(path).encode(), ctypes.c_size_t(len(kept)), named, ctypes.c_size_t(len(pairs)), pairs) == 0)


random = np.random.default_rng(1)
arrays = {f"value.{name}": ((random.random((3, 5)) * 2).astype(name), 0x28001) for name in TYPES}
arrays |= {"conv1.weight": (random.random((4, 3, 2, 5)).astype("float32"), OIHW),
           "fc.weight": (random.random((2, 7)).astype("float32"), ROW_MAJOR),
           "column": (random.random((2, 7)).astype("float16"), COLUMN_MAJOR),
           "image": (random.random((2, 3, 4)).astype("float32"), CHW), "größe \"層\"\n": (np.arange(3, dtype="int8"), VECTOR),
           "last": (random.random((2, 1, 3, 1, 2, 1, 2, 1)).astype("float32"), 0x88000)}
with tempfile.TemporaryDirectory() as temporary:
    ours, theirs = pathlib.Path(temporary) / "ours.safetensors", pathlib.Path(temporary) / "theirs.safetensors"
    for metadata in ((), (("format", "pt"),)):
        save(ours, arrays, metadata)
        save_file({name: values for name, (values, _) in arrays.items()}, theirs, dict(metadata) or None)
        loaded = load_file(ours)
        assert set(loaded) == set(arrays)
        for name, (values, _) in arrays.items():
            assert loaded[name].dtype == values.dtype and loaded[name].shape == values.shape, name
            assert loaded[name].tobytes() == values.tobytes(), name
        with safe_open(ours, framework="np") as file:
            assert (file.metadata() or {}) == dict(metadata), file.metadata()
        assert ours.read_bytes() == theirs.read_bytes(), "another order or another spelling of the header"

        for mode in (0, 1):
            handle = ctypes.c_void_p(library.BNNSExtArrayFileOpen(str(theirs).encode(), mode))
            check(handle)
            for name, (values, layout) in arrays.items():
                got = np.zeros_like(values)
                check(library.BNNSExtArrayFileCopy(handle, name.encode(), ctypes.byref(describe(got, layout))) == 0)
                assert got.tobytes() == values.tobytes(), name
            for key, value in metadata:
                assert library.BNNSExtArrayFileMetadata(handle, key.encode()) == value.encode()
            library.BNNSExtArrayFileClose(handle)
print(f"{len(arrays)} arrays of {len(TYPES)} types: the same bytes as safetensors' save_file, and each reads the other")
