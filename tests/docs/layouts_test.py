"""docs/layouts.md is true: it has every layout of the header, the NumPy shape beside each is where the library finds the
elements, and its program prints what it says.

Usage: layouts_test.py LIBRARY C_COMPILER
"""
import ctypes
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
page = (ROOT / "docs/layouts.md").read_text(encoding="utf-8")
header = (ROOT / "include/bnns/bnns_constants.h").read_text(encoding="utf-8")
values = {name: int(value, 0) for name, value in re.findall(r"^  (BNNSDataLayout\w+) = (0x\w+)", header, re.M)}
rows = re.findall(r"^\| `(BNNSDataLayout\w+)` \|([^|\n]*)\|([^|\n]*)\|[^|\n]*\|$", page, re.M)
assert sorted(name for name, _, _ in rows) == sorted(values), "the table is not the header's list"


class Descriptor(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint32), ("layout", ctypes.c_uint32), ("size", ctypes.c_size_t * 8),
                ("stride", ctypes.c_size_t * 8), ("data", ctypes.c_void_p), ("data_type", ctypes.c_uint32),
                ("table_data", ctypes.c_void_p), ("table_data_type", ctypes.c_uint32), ("data_scale", ctypes.c_float),
                ("data_bias", ctypes.c_float)]


FLOAT32 = 0x10000 | 32
library = ctypes.CDLL(os.path.abspath(sys.argv[1]))
library.BNNSNDArrayGetDataSize.restype = ctypes.c_size_t
library.BNNSExtLastError.restype = ctypes.c_char_p


def describe(layout, sizes, data=None):
    d = Descriptor(layout=layout, data_type=FLOAT32)
    d.size[:len(sizes)] = sizes
    d.data = ctypes.cast(data, ctypes.c_void_p) if data is not None else None
    return d


def volume(sizes):
    total = 1
    for size in sizes:
        total *= size
    return total


def check(name, axes, shape):
    """Fills memory by the NumPy shape, copies it to a layout whose first index is the fastest, and looks there."""
    extent = {axis: 2 + k % 3 for k, axis in enumerate(axes)}
    assert sorted(axes) == sorted(shape), f"{name}: sizes and NumPy shape have different axes"
    # Copies pair elements by index: (row, column) of a matrix, (x, y, in, out) of convolution weights, else size order.
    order = list(reversed(axes)) if name.endswith("RowMajorMatrix") else list(axes)
    if "IOHrWr" in name:
        order = ["kernel_width", "kernel_height", "in", "out"]
    rotated = ("kernel_width", "kernel_height") if "HrWr" in name else ()
    count = volume(extent.values())
    source, target = (ctypes.c_float * count)(*range(count)), (ctypes.c_float * count)()
    from_descriptor = describe(values[name], [extent[axis] for axis in axes], source)
    last_major = len(axes) << 16 | 0x8000
    to_descriptor = describe(last_major, [extent[axis] for axis in order], target)
    status = library.BNNSCopy(ctypes.byref(to_descriptor), ctypes.byref(from_descriptor), None)
    assert status == 0, library.BNNSExtLastError()
    for position, index in enumerate(itertools.product(*(range(extent[axis]) for axis in shape))):
        at = dict(zip(shape, index))
        for axis in rotated:
            at[axis] = extent[axis] - 1 - at[axis]
        place, step = 0, 1
        for axis in order:
            place, step = place + at[axis] * step, step * extent[axis]
        assert target[place] == position, f"{name}: {at} is not where {shape} says"


checked = 0
for name, sizes, shape in rows:
    axes = [axis.strip() for axis in sizes.split(",")]
    if name.endswith("Pack32"):  # 5 outputs are stored as one group of 32
        d = describe(values[name], [2, 3, 4, 5], (ctypes.c_float * 1)())  # asked for its size, not read
        assert library.BNNSNDArrayGetDataSize(ctypes.byref(d)) == 4 * 1 * 4 * 3 * 2 * 32
    elif not name.endswith("Sparse"):
        check(name, axes, [axis.strip() for axis in shape.strip(" ()").split(",")])
        checked += 1
assert checked == 26, checked

(program,) = re.findall(r"^```c\n(.*?)^```$", page, re.M | re.S)
prints = re.match(r"// cc .*\n// prints: (.*)\n", program).group(1)
with tempfile.TemporaryDirectory() as folder:
    (pathlib.Path(folder) / "layouts.c").write_text(program, encoding="utf-8")
    where = os.path.dirname(os.path.abspath(sys.argv[1]))
    subprocess.run([sys.argv[2], "-std=c99", "-Wall", "-Wextra", "-Werror", "layouts.c", "-o", "layouts", f"-I{ROOT}/include",
                    f"-L{where}", "-lbnns"], cwd=folder, check=True)
    done = subprocess.run(["./layouts"], cwd=folder, env={**os.environ, "LD_LIBRARY_PATH": where}, capture_output=True,
                          text=True, check=True)
assert done.stdout == prints + "\n", f"{done.stdout!r}, but the page says {prints!r}"
print(f"{len(rows)} layouts, {checked} of them element by element")
