"""The programs and the notebook of examples/python run, and type checkers accept them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import openbnns as ob
from conftest import LONG

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/python"
PACKAGE = pathlib.Path(ob.__file__).parents[1]


def run(*arguments: Any, timeout: int = 600) -> str:
    environment = dict(os.environ, PYTHONPATH=str(PACKAGE), MPLBACKEND="Agg")
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_fine_tune(tmp_path: Any) -> None:
    assert "accuracy" in run(EXAMPLES / "fine_tune.py")
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    st = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    theirs = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                                 torch.nn.Flatten(), torch.nn.Linear(8 * 5 * 5, 10))
    st.save_file(theirs.state_dict(), tmp_path / "weights.safetensors")
    assert "accuracy" in run(EXAMPLES / "fine_tune.py", tmp_path / "weights.safetensors")


def test_lstm_text() -> None:
    out = run(EXAMPLES / "lstm_text.py", EXAMPLES / "lstm_text.py", 60)
    assert float(out.split("loss ")[1].split()[0]) < 3.2


def test_digits_value_and_grad(digits: Any, tmp_path: Any) -> None:
    out = run(EXAMPLES / "digits_value_and_grad.py", digits, tmp_path / "w.safetensors")
    assert float(out.split()[-1]) > 0.95 and (tmp_path / "w.safetensors").exists()


@pytest.mark.skipif(not LONG, reason="a minute of training: set OPENBNNS_LONG=1")
def test_digits_in_ten_lines(digits: Any) -> None:
    assert float(run(EXAMPLES / "digits.py", digits).split()[-1]) >= 0.985


def test_notebook() -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    for needed in ("ipykernel", "matplotlib"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    book = nbformat.read(EXAMPLES / "shapes.ipynb", as_version=4)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(PACKAGE)
    try:
        nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    finally:
        os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)
    pictures = [o for cell in book.cells for o in cell.get("outputs", []) if "image/png" in o.get("data", {})]
    assert len(pictures) >= 3
    assert all(not cell.get("outputs") for cell in nbformat.read(EXAMPLES / "shapes.ipynb", as_version=4).cells)


def test_type_checkers_accept_the_examples_and_the_package(tmp_path: Any) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    if not (PACKAGE / "openbnns/_core.pyi").exists():
        pytest.skip("the package was built without type stubs")
    environment = dict(os.environ)
    if PACKAGE.name != "site-packages":  # mypy looks there by itself
        environment.update(MYPYPATH=str(PACKAGE), PYTHONPATH=str(PACKAGE))
    for what in (list(map(str, sorted(EXAMPLES.glob("*.py")))), ["-p", "openbnns"]):
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--cache-dir", str(tmp_path), *what],
                              capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr


def test_import_is_quick(tmp_path: Any) -> None:
    """Processor time, with the compiled files that an installed package has."""
    code = "import numpy, time; t = time.process_time(); import openbnns; print(time.process_time() - t)"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment.update(PYTHONPATH=str(PACKAGE), PYTHONPYCACHEPREFIX=str(tmp_path))
    times = [float(subprocess.check_output([sys.executable, "-c", code], text=True, env=environment)) for _ in range(5)]
    assert min(times) < 0.1, times
