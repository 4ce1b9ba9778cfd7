"""openbnns.distributed under mpirun: equal bits on any number of ranks, resume, refusals, and a group without an MPI."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from conftest import close

import openbnns as ob
from openbnns import _core, distributed, nn, optim
from openbnns._alone import MAX, MEAN, SUM, Alone

HERE = pathlib.Path(__file__).resolve().parent
ROOT, WORKER = HERE.parents[1], HERE / "distributed_worker.py"
PACKAGE = pathlib.Path(ob.__file__).parents[1]
sys.path.append(str(ROOT / "src/mpi/tests"))
from mpi_launch import Launcher  # noqa: E402

NO_LIBRARY = _core.load_mpi()
needs_library = pytest.mark.skipif(bool(NO_LIBRARY), reason=f"no libbnns_mpi: {NO_LIBRARY}")


@pytest.fixture(scope="module")
def launcher() -> Any:
    if NO_LIBRARY:
        pytest.skip(f"no libbnns_mpi: {NO_LIBRARY}")
    mpiexec = os.environ.get("OPENBNNS_MPIEXEC") or shutil.which("mpiexec")
    if not mpiexec:
        pytest.skip("no mpiexec: set OPENBNNS_MPIEXEC to that of the MPI of libbnns_mpi")
    made = Launcher(mpiexec)
    made.environment["PYTHONPATH"] = str(PACKAGE)
    return made


def worker(*arguments: Any) -> list[str]:
    return [sys.executable, str(WORKER), *map(str, arguments)]


def alone(*arguments: Any, package: pathlib.Path = PACKAGE, **more: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI"))}
    done = subprocess.run(worker(*arguments), capture_output=True, text=True, timeout=120,
                          env=dict(environment, PYTHONPATH=str(package), **more))
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def bare(tmp_path_factory: Any) -> pathlib.Path:
    """The package without libbnns_mpi."""
    folder = tmp_path_factory.mktemp("bare")
    left_out = shutil.ignore_patterns("libbnns_mpi*", "libbnns_mps*", "_mps*", "__pycache__")
    shutil.copytree(PACKAGE / "openbnns", folder / "openbnns", ignore=left_out)
    code = "from openbnns import _core; print(_core.load_mpi())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=str(folder)))
    if not said.stdout.strip():
        pytest.skip("this machine has a libbnns_mpi where the loader looks")
    return folder


def digests(output: str, ranks: int) -> set[str]:
    found = re.findall(r"rank \d: digest (\w+)", output)
    assert len(found) == ranks, output
    return set(found)


@pytest.mark.parametrize("more", [(), ("bfloat16",), ("clip",)], ids=lambda m: "-".join(m) or "plain")
def test_fit_ends_in_the_same_bits(launcher: Any, bare: Any, tmp_path: Any, more: tuple[str, ...]) -> None:
    """Convolution, batch normalization with moving statistics, dropout, records: on ranks, alone, and without the library."""
    expected = digests(alone("train", tmp_path / "a.safetensors", 2, *more), 1)
    assert digests(alone("train", tmp_path / "b.safetensors", 2, *more, package=bare), 1) == expected
    for ranks, threads in ((1, 1), (2, 2), (4, 1)):
        code, output = launcher.run(ranks, worker("train", tmp_path / f"{ranks}.safetensors", 2, *more), threads=threads, timeout=120)
        assert code == 0 and digests(output, ranks) == expected, output
        assert len(re.findall("epoch 1/2", output)) == 1, output  # rank 0 alone prints


@needs_library
def test_resume_on_another_number_of_ranks(launcher: Any, tmp_path: Any) -> None:
    """A run that one of four ranks interrupts in the middle of an epoch goes on on two, then in one process."""
    expected = digests(alone("train", tmp_path / "whole.safetensors", 4), 1)
    file = tmp_path / "run.safetensors"
    code, output = launcher.run(4, worker("train", file, 4, "stop"), timeout=120)
    assert code == 0 and output.count("interrupted True") == 4, output
    code, output = launcher.run(2, worker("train", file, 3), timeout=120)
    assert code == 0 and len(digests(output, 2)) == 1, output
    assert digests(alone("train", file, 4), 1) == expected


def test_a_group_follows_the_training_of_one_process() -> None:
    """Without layers that look at a batch the mean over shards is the gradient of the batch, up to rounding."""
    r = np.random.default_rng(2)
    x = r.standard_normal((64, 6)).astype(np.float32)
    y = np.argmax(x[:, :3], axis=1)
    found = []
    for group in (None, distributed.Group()):
        nn.seed(1)
        model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
        history = ob.fit(model, (x, y), 5, batch_size=16, optimizer=optim.SGD(model, lr=0.5, momentum=0.9), progress=False, group=group)
        found.append([*(p.data for p in model.parameters()), [h["loss"] for h in history], [h["accuracy"] for h in history]])
    assert found[0][-2][-1] < 0.8 * found[0][-2][0]
    for alone, together in zip(*found):
        close(together, alone, 1e-4)


def test_every_shard_draws_its_own_dropout(monkeypatch: Any) -> None:
    drawn: list[int] = []
    draw = nn.Dropout.draw
    monkeypatch.setattr(nn.Dropout, "draw", lambda self: drawn.append(draw(self)) or drawn[-1])
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    with distributed.Group() as group:
        ob.fit(model, (np.ones((32, 4), np.float32), np.zeros(32, np.int64)), 2, batch_size=16, progress=False, group=group)
    assert len(drawn) == 32 and len(set(drawn)) == 32, drawn  # 4 steps of 8 shards


def test_a_callback_of_one_rank_ends_all(launcher: Any, tmp_path: Any) -> None:
    code, output = launcher.run(2, worker("train", tmp_path / "w.safetensors", 4, "callback"), timeout=120)
    assert code == 0 and len(digests(output, 2)) == 1 and "epoch 1/4" in output and "epoch 2/4" not in output, output


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_calls(launcher: Any, ranks: int) -> None:
    code, output = launcher.run(ranks, worker("calls"))
    assert code == 0 and all(f"rank {r}: ok" in output for r in range(ranks)), output


def test_fast_mode_on_three_ranks(launcher: Any) -> None:
    code, output = launcher.run(3, worker("fast"))
    assert code == 0 and all(f"rank {r}: ok" in output for r in range(3)), output


@pytest.mark.parametrize("what, ranks, message", [
    ("batch", 2, "batch is 36, expected a multiple of 8 = shards of all ranks"),
    ("last", 2, "fit: the last batch has 4 samples, expected a multiple of 8"),
    ("shards", 4, "4 ranks are more than 2 shards"),
    ("sizes", 2, "arrays[0] has 4 elements of Float32 on rank 1, 3 elements of Float32 on rank 0"),
])
def test_refused_on_every_rank(launcher: Any, what: str, ranks: int, message: str) -> None:
    _, output = launcher.run(ranks, worker("refused", what), survive=True)
    refusals = [line for line in output.splitlines() if "refused: " in line]
    assert len(refusals) == ranks and all(message in line for line in refusals), output


def test_ranks_that_were_told_other_epochs(launcher: Any) -> None:
    _, output = launcher.run(2, worker("refused", "epochs"), survive=True)
    assert "refused: fit: rank 1 has other samples, batch_size, seed or epochs" in output, output


@pytest.mark.parametrize("what", ["dead", "raises"])
def test_a_dead_rank_is_named_within_the_timeout(launcher: Any, what: str) -> None:
    """Also one whose program ends with an exception, which does not wait for the others."""
    _, output = launcher.run(4, worker("refused", what), survive=True)
    refusals = [line for line in output.splitlines() if "refused: " in line]
    assert len(refusals) == 3 and all("no answer from rank 1" in line for line in refusals), output
    assert "too late" not in output, output


NUMBERS = np.random.default_rng(1)


@needs_library
@pytest.mark.parametrize("wire", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shards", [1, 2, 8, 32])
def test_without_the_library_the_bits_are_its_own(wire: str, shards: int) -> None:
    theirs, ours = distributed.Group(wire=wire, shards=shards), Alone(False, wire, shards)
    for reduction in (SUM, MEAN, MAX):
        a = np.empty((3, 700), np.float32)
        b, c, d = a.copy(), np.empty(90, np.float16), np.empty(90, np.float16)
        for s in range(shards):
            scale = 10.0 ** NUMBERS.integers(-44, 30, a.shape) if wire == "float32" else 10.0 ** NUMBERS.integers(-4, 3, a.shape)
            a[:] = NUMBERS.standard_normal(a.shape) * scale
            a[0, 0] = np.nextafter(np.finfo(np.float32).tiny * np.float32(shards), np.float32(0)) if s == 0 else 0  # a mean just below
            b[:] = a
            c[:] = d[:] = NUMBERS.standard_normal(90)
            theirs._handle.reduce_start(s, [_core.Array(a), _core.Array(c)], reduction)
            ours.reduce_start(s, [_core.Array(b), _core.Array(d)], reduction)
        theirs.reduce_wait()
        ours.reduce_wait()
        assert a.tobytes() == b.tobytes() and c.tobytes() == d.tobytes()
        a[:] = b[:] = NUMBERS.standard_normal(a.shape)
        theirs._handle.all_reduce([_core.Array(a)], reduction)
        ours.all_reduce([_core.Array(b)], reduction)
        assert a.tobytes() == b.tobytes()
    for shard, batch in ((0, 64), (shards - 1, 64), (shards, 64), (0, 33)):
        said = []
        for group in (theirs._handle, ours):
            try:
                said.append(str(group.items(batch, shard)))
            except ob.Error as error:
                said.append(error.reason)
        assert said[0] == said[1]
    theirs.finalize()


def groups() -> list[Any]:
    made: list[Any] = [distributed.Group(shards=2)]
    if not NO_LIBRARY:
        other = distributed.Group(shards=2)
        other._handle = Alone(False, "float32", 2)
        made.append(other)
    return made


def test_misuse_is_refused() -> None:
    for arguments in ({"mode": "quick"}, {"wire": "int8"}, {"shards": 3}, {"shards": -1}, {"mode": "fast", "shards": 2}):
        with pytest.raises(ob.Error):
            distributed.Group(**arguments)  # type: ignore[arg-type]
    for group in groups():
        a, b = np.zeros(3, np.float32), np.zeros(4, np.float32)
        with pytest.raises(ob.Error, match="root is 1"):
            group.broadcast([a], root=1)
        with pytest.raises(ob.Error, match="reduction is 'min'"):
            group.all_reduce([a], "min")
        group.reduce_start(0, [a])
        with pytest.raises(ob.Error, match="shard 0 has given 1 of 1"):
            group.reduce_wait()
        with pytest.raises(ob.Error, match="is not what shard 0 gave"):
            group.reduce_start(1, [b])
        group.reduce_start(1, [a])
        group.reduce_wait()
        parameter = nn.module.Parameter(np.zeros(2, np.float32))
        with pytest.raises(ob.Error, match=r"gradients\[0\] was not given to reduce_start"):
            group.step(optim.SGD([parameter], lr=1.0))
        frozen = np.zeros(3, np.float32)
        frozen.flags.writeable = False
        with pytest.raises(ob.Error, match="read-only"):
            group.all_reduce([frozen])
        group.finalize()
        with pytest.raises(ob.Error, match="the group has ended"):
            group.items(8, 0)


@needs_library
def test_results_keep_their_memory() -> None:
    """An array that its user forgets between reduce_start and reduce_wait is still there to be written."""
    group = distributed.Group(shards=1)
    group.reduce_start(0, [np.ones(1 << 20, np.float32)])
    waste = [np.ones(1 << 20, np.float32) for _ in range(4)]
    group.reduce_wait()
    assert all((w == 1).all() for w in waste)
    group.finalize()


def test_under_mpirun_without_the_library(bare: Any) -> None:
    output = alone("fast", package=bare, OMPI_COMM_WORLD_SIZE="2")
    assert "openbnns._errors.Error: Group: libbnns_mpi cannot be loaded in this process of an mpirun (libbnns_mpi.so.0: " in output
    assert "libopenmpi-dev openmpi-bin" in output
    assert "rank 0: ok" in alone("fast", package=bare)


def test_another_copy_of_libbnns_is_refused(bare: Any, tmp_path: Any) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    names = ("Create", "Finalize", "Rank", "Size", "Shards", "Items", "Broadcast", "AllReduce", "ReduceStart", "ReduceWait")
    (tmp_path / "other.c").write_text("".join(f"void BNNSExtGroup{n}(void) {{}}\n" for n in names) + "void BNNSExtVersion(void) {}\n")
    subprocess.run([compiler, "-shared", "-fPIC", str(tmp_path / "other.c"), "-o", str(tmp_path / "libbnns_mpi.so.0")], check=True)
    output = alone("fast", package=bare, LD_LIBRARY_PATH=str(tmp_path), OMPI_COMM_WORLD_SIZE="2")
    assert "expected the libbnns of this package" in output, output


def test_the_example(launcher: Any, tmp_path: Any) -> None:
    said = set()
    for ranks in (1, 2):
        # What goes to stderr, the progress, would lie within lines of stdout.
        command = f'exec "{sys.executable}" "{ROOT}/examples/python/distributed.py" 2>>"{tmp_path}/stderr"'
        code, output = launcher.run(ranks, ["sh", "-c", command], timeout=120)
        assert code == 0, output + (tmp_path / "stderr").read_text()
        found = re.findall(r"accuracy ([0-9.]+)\s+weights (\w+)", output)
        assert len(found) == 1 and float(found[0][0]) > 0.9, output
        said.update(found)
    assert len(said) == 1
