"""What the tests share: PyTorch where it is installed, and a comparison that scales with the numbers."""

from __future__ import annotations

import os
import pathlib
import signal

os.environ.setdefault("BNNS_VERBOSE", "0")

import numpy as np
import pytest

LONG = "OPENBNNS_LONG" in os.environ  # all cases, and trainings of a minute
CASES = int(os.environ.get("OPENBNNS_CASES", 200 if LONG else 12))  # random shapes of each module, loss and optimizer


@pytest.fixture(autouse=True, scope="session")
def interrupts() -> None:
    """A background job of a shell begins with Ctrl-C ignored, which `fit` leaves so."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def error(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, as a part of the largest number or of 1."""
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    assert got.shape == expected.shape
    return float(np.abs(got - expected).max()) / max(1.0, float(np.abs(expected).max())) if expected.size else 0.0


def close(got: np.ndarray, expected: np.ndarray, bound: float = 1e-5) -> None:
    worst = error(got, expected)
    assert worst <= bound, f"differs by {worst:.3g}, expected at most {bound:.3g}"


@pytest.fixture
def digits() -> pathlib.Path:
    """The folder of MNIST-style files: OPENBNNS_DIGITS, or shared/data/mnist-t10k beside or above the repository."""
    root = pathlib.Path(__file__).resolve().parents[2]
    for folder in (os.environ.get("OPENBNNS_DIGITS", ""), root / "shared/data/mnist-t10k", root.parent / "shared/data/mnist-t10k",
                   root.parent.parent / "shared/data/mnist-t10k"):
        if folder and pathlib.Path(folder).is_dir():
            return pathlib.Path(folder)
    pytest.skip("no MNIST-style files: set OPENBNNS_DIGITS to their folder")
