"""The CNN pooling classes of Metal Performance Shaders and their gradients, on a CUDA GPU or on the CPU.

    device = mps.Device()                                  # the first GPU, else the CPU
    buffer = mps.CommandQueue(device).command_buffer()
    x = mps.image(device, array)                           # (N, C, H, W)
    y, state = mps.CNNPoolingMax(device, 3, 3, 2, 2).encode_with_state(buffer, x)
    buffer.commit()
    buffer.wait_until_completed()                          # openbnns.Error where an encode was refused
    y.numpy()

    dx = mps.CNNPoolingMaxGradient(device, 3, 3, 2, 2).encode(another_buffer, dy, x, state)

Names, arguments and their order (width before height) are Metal's in Python's spelling. An image's memory is exported by
DLPack, on a GPU too: `tensor(y, torch)` is a PyTorch tensor on it, and `image.write` takes tensors of its GPU.
"""

from __future__ import annotations

import enum
import importlib
from typing import Any

import numpy as np

from . import _mps
from ._errors import Error
from ._mps import (CNNDilatedPoolingMax, CNNDilatedPoolingMaxGradient, CNNPooling, CNNPoolingAverage, CNNPoolingAverageGradient,
                   CNNPoolingGradient, CNNPoolingL2Norm, CNNPoolingL2NormGradient, CNNPoolingMax, CNNPoolingMaxGradient,
                   CommandBuffer, CommandQueue, Device, Image, State, TemporaryImage, devices)

__all__ = [
    "CNNDilatedPoolingMax", "CNNDilatedPoolingMaxGradient", "CNNPooling", "CNNPoolingAverage", "CNNPoolingAverageGradient",
    "CNNPoolingGradient", "CNNPoolingL2Norm", "CNNPoolingL2NormGradient", "CNNPoolingMax", "CNNPoolingMaxGradient",
    "CommandBuffer", "CommandQueue", "Device", "Image", "PaddingMethod", "State", "TemporaryImage", "deserialize", "devices", "image",
    "tensor",
]


class PaddingMethod(enum.IntFlag):
    """How large a new destination is and how the source is aligned to it; one of each kind, joined by |."""

    align_centered = 0
    align_top_left = 1
    align_bottom_right = 2
    add_remainder_to_top_left = 0
    add_remainder_to_top_right = 4
    add_remainder_to_bottom_left = 8
    add_remainder_to_bottom_right = 12
    size_valid_only = 0
    size_same = 16
    size_full = 32
    exclude_edges = 1 << 15


def deserialize(data: bytes, device: Device | None = None) -> CNNPooling | CNNPoolingGradient:
    """The kernel of the class that kernel.serialize() had, on a device: by default the first GPU, else the CPU."""
    return _mps.deserialize(data, device)


def image(device: Device, x: Any) -> Image:
    """A new image with the numbers of an array (N, C, H, W), or (C, H, W) for one image; of the CPU or of the device's GPU."""
    shape = tuple(int(s) for s in x.shape)
    made = Image(device, (1,) * (4 - len(shape)) + shape, str(x.dtype).removeprefix("torch."))
    made.write(x)
    return made


def tensor(image: Image, library: Any = np) -> Any:
    """(N, C, H, W) of an image by DLPack, as an array of `library`: numpy, or torch or cupy, on a GPU too.

    It lies on the image's own memory where C is 1, 2 or 4, else it is a copy on the same device.
    """
    texels = library.from_dlpack(image)
    n, slices, h, w, lanes = texels.shape
    return library.moveaxis(texels, -1, 2).reshape(n, slices * lanes, h, w)[:, :image.shape[1]]


def _write_elsewhere(image: Image, x: Any) -> None:
    """Image.write of what is no packed array of the CPU: of a GPU, by its own library, or with gaps."""
    if not hasattr(x, "__dlpack_device__") or int(x.__dlpack_device__()[0]) in (1, 3):
        return image.write(np.ascontiguousarray(x))
    if tuple(x.__dlpack_device__()) != tuple(image.__dlpack_device__()):
        raise Error(f"Image.write: x is on device {tuple(x.__dlpack_device__())}, expected the CPU or {tuple(image.__dlpack_device__())}")
    if tuple(x.shape) != image.shape or str(x.dtype).removeprefix("torch.") != image.dtype:
        raise Error(f"Image.write: x has shape {tuple(x.shape)} and dtype {x.dtype}, expected {image.shape} and {image.dtype}")
    library = importlib.import_module(type(x).__module__.partition(".")[0])
    _fill(library.from_dlpack(image), x, library.moveaxis)
    cuda = library.cuda
    (cuda.current_stream(x.device) if hasattr(cuda, "current_stream") else cuda.get_current_stream()).synchronize()


def _fill(texels: Any, x: Any, moveaxis: Any) -> None:
    """Channels to the lanes of texels (N, slices, H, W, lanes)."""
    n, c, h, w = x.shape
    lanes = texels.shape[-1]
    whole = c // lanes
    texels[:, :whole] = moveaxis(x[:, :whole * lanes].reshape(n, whole, lanes, h, w), 2, -1)
    if c % lanes:
        texels[:, whole, :, :, :c % lanes] = moveaxis(x[:, whole * lanes:], 1, -1)
