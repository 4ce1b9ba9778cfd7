"""What people who come from PyTorch and NumPy do: their arrays, empty batches, changed modules, names that they expect."""

from __future__ import annotations

import array
import copy
import inspect
import threading
from typing import Any

import numpy as np
import pytest
from conftest import close

import openbnns as ob
from openbnns import nn, optim


def net() -> nn.Sequential:
    nn.seed(1)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5))


def batch(n: int = 6) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(0)
    return r.random((n, 1, 8, 8)).astype(np.float32), r.integers(0, 5, n)


def test_float64_says_what_to_do() -> None:
    layer = ob.FullyConnectedLayer(input=(3,), output=(2,), weights=np.zeros((2, 3), np.float32))
    with pytest.raises(ob.Error, match=r'input is of dtype float64.*\.astype\("float32"\)'):
        layer.apply(1, np.zeros((1, 3)), np.zeros((1, 2), np.float32))
    with pytest.raises(ob.Error, match=r'uint8, expected float32.*\.astype\("float32"\)'):
        net()(np.zeros((1, 1, 8, 8), np.uint8))
    x, _ = batch()
    assert np.array_equal(net().eval()(x.astype(np.float64)), net().eval()(x))


def test_arrays_of_any_kind() -> None:
    x, y = batch()
    model = net().eval()
    expected = model(x)
    frozen = x.copy()
    frozen.setflags(write=False)
    for given in (np.asfortranarray(x), np.flip(np.flip(x, 2).copy(), 2), frozen, x.tolist(), np.repeat(x, 2, 0)[::2]):
        assert np.array_equal(model(given), expected)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for given in (torch.tensor(x), torch.tensor(x, requires_grad=True)):
        assert np.array_equal(model(given), expected)
    step = nn.value_and_grad(model, nn.losses.cross_entropy)
    assert step(torch.tensor(x), torch.tensor(y))[0] == step(x, y)[0]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_labels_of_every_integer_type(dtype: str) -> None:
    x, y = batch()
    p = np.random.default_rng(1).standard_normal((6, 5)).astype(np.float32)
    assert nn.losses.cross_entropy(p, y.astype(dtype)) == nn.losses.cross_entropy(p, y.tolist())
    assert nn.Embedding(5, 2)(y.astype(dtype)).shape == (6, 2) if dtype in ("int32", "int64", "uint32", "uint64") else True


def test_wrong_labels_are_named() -> None:
    p = np.zeros((6, 5), np.float32)
    with pytest.raises(ob.Error, match="float32, expected integers"):
        nn.losses.cross_entropy(p, np.zeros(6, np.float32))
    with pytest.raises(ob.Error, match="at least one number"):
        nn.losses.cross_entropy(p[:0], np.zeros(0, np.int64))


EMPTY = {
    "Linear": lambda: (nn.Linear(3, 2), (0, 3)), "Conv2d": lambda: (nn.Conv2d(1, 2, 3), (0, 1, 5, 5)),
    "ReLU": lambda: (nn.ReLU(), (0, 3)), "MaxPool2d": lambda: (nn.MaxPool2d(2), (0, 1, 4, 4)),
    "Softmax": lambda: (nn.Softmax(), (0, 3)), "LayerNorm": lambda: (nn.LayerNorm(3), (0, 3)),
    "Residual": lambda: (nn.Residual(nn.Linear(3, 3)), (0, 3)), "Dropout": lambda: (nn.Dropout(0.5), (0, 3)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_batch(name: str) -> None:
    model, shape = EMPTY[name]()
    x = np.zeros(shape, np.float32)
    out = model(x)
    assert out.shape[0] == 0
    for p in model.parameters():
        p.gradient.data.fill(7)
    value, gradients = nn.value_and_grad(model, lambda p: p.sum())(x)
    assert value == 0 and all(not g.any() for g in gradients.values())


def test_an_empty_batch_of_a_network() -> None:
    x, y = batch()
    model = net().eval()
    assert model(x[:0]).shape == (0, 5) and ob.predict(model, x[:0]).shape == (0, 5)
    with pytest.raises(ob.Error, match="more than one value"):
        model.train()(x[:0])
    with pytest.raises(ob.Error, match="data has 0 samples"):
        ob.fit(model, (x[:0], y[:0]), 1, progress=False)
    assert ob.fit(model, (x, y), 1, batch_size=4, progress=False)[0]["loss"] > 0  # the last batch is smaller
    assert ob.fit(model, (x.tolist(), y.tolist()), 1, progress=False)[0]["loss"] > 0
    with pytest.raises(ob.Error, match="data is generator, expected arrays"):
        ob.fit(model, (b for b in [(x, y)]), 1, progress=False)


def test_changes_of_a_module_take_effect() -> None:
    x = np.ones((1, 2), np.float32)
    layer = nn.Linear(2, 2, bias=False)
    layer(x)
    layer.weight.data = np.full((2, 2), 3)
    assert (layer(x) == 6).all()
    layer.weight = nn.Parameter(np.full((2, 2), 5))
    assert (layer(x) == 10).all()
    layer.bias = nn.Parameter(np.ones(2))
    assert (layer(x) == 11).all()
    layer.bias = None
    assert (layer(x) == 10).all()
    with pytest.raises(ob.Error, match="weight is ndarray, expected a Parameter"):
        layer.weight = np.zeros((2, 2), np.float32)  # type: ignore[assignment]
    with pytest.raises(ob.Error, match=r"data has shape \(3,\), expected \(2, 2\)"):
        layer.weight.data = np.zeros(3)
    pool = nn.MaxPool2d(2)
    pool(np.zeros((1, 1, 4, 4), np.float32))
    pool.stride = (1, 1)
    assert pool(np.zeros((1, 1, 4, 4), np.float32)).shape == (1, 1, 3, 3)


@pytest.mark.parametrize("make,field", [
    (lambda: nn.Linear(0, 2), "in_features"), (lambda: nn.Linear(2, -1), "out_features"),
    (lambda: nn.Conv2d(1, 2, 0), "kernel_size"), (lambda: nn.Conv2d(1, 2, 3, stride=0), "stride"),
    (lambda: nn.ConvTranspose2d(0, 2, 3), "in_channels"), (lambda: nn.Embedding(0, 2), "num_embeddings"),
])
def test_wrong_sizes_are_named(make: Any, field: str) -> None:
    with pytest.raises(ob.Error) as caught:
        make()
    assert caught.value.field == field


@pytest.mark.parametrize("call,reason", [
    (lambda: nn.Conv2d(1, 2, 3)("text"), "Conv2d: input is str, expected an array"),
    (lambda: nn.Linear(3, 2)(None), "Linear: input is NoneType, expected an array"),
    (lambda: nn.Linear(3, 2)(np.array([[None]])), "dtype object, expected numbers"),
    (lambda: nn.Conv2d(1, 2, 3.0), "kernel_size is 3.0, expected a whole number or two"),
    (lambda: nn.MaxPool2d(2, stride=0), "stride is 0"),
    (lambda: nn.Sequential([nn.ReLU()]), "module 0 is list, expected"),
    (lambda: nn.Sequential(nn.ReLU), "the class ReLU, expected an object"),
    (lambda: optim.SGD(nn.Linear(3, 2), lr="0.1"), "lr is '0.1'"),
    (lambda: optim.clip_grad_norm(nn.Linear(3, 2), float("nan")), "max_norm is nan"),
    (lambda: nn.losses.hinge(np.zeros((1, 1), np.float32), np.array([[-1.0]])), "expected 0 and 1"),
    (lambda: nn.value_and_grad(nn.Linear(3, 2), nn.losses.mse)(), "called without inputs"),
    (lambda: ob.fit(net(), "data", 1), "data is str"),
    (lambda: ob.fit(net(), (batch()[0],), 1), "data has 1 array, expected inputs and targets"),
    (lambda: ob.fit(net(), batch(), 1.5), "epochs is 1.5"),
    (lambda: ob.accuracy(np.zeros((3, 1)), np.zeros((3, 1))[:, 0]), "dtype float64, expected classes"),
])
def test_refusals_of_what_people_write(call: Any, reason: str) -> None:
    with pytest.raises(ob.Error, match=reason):
        call()


def test_what_people_write_works() -> None:
    x, y = batch()
    assert ob.fit(net(), (x, y > 2), 1, progress=False)[0]["loss"] > 0  # bool labels are classes 0 and 1
    assert ob.accuracy(np.eye(3), np.eye(3)) == 1 == ob.accuracy(np.eye(3), np.arange(3))
    line = nn.Sequential(nn.Linear(2, 1))
    data = (np.ones((4, 2)), np.ones((4, 1)))
    assert set(ob.evaluate(line, data, loss=nn.losses.mse)) == {"loss"} and "accuracy" in ob.evaluate(net(), (x, y))
    assert "accuracy" not in ob.fit(line, data, 1, loss=nn.losses.mse, progress=False)[0]
    a = nn.value_and_grad(line, lambda p, t: ((p - t) ** 2).mean())(*data)
    b = nn.value_and_grad(line, nn.losses.mse)(*data)
    close(np.array(a[0]), b[0])
    cubes = [nn.value_and_grad(line, f)(data[0])[1]["0.weight"].copy() for f in (lambda p: (p ** 3).sum(), lambda p: (p * p * p).sum())]
    close(cubes[0], cubes[1])
    with pytest.raises(ob.Error, match="exponent is 0.5"):
        nn.value_and_grad(line, lambda p: (p ** 0.5).sum())(data[0])


def test_files_say_what_is_wrong(tmp_path: Any) -> None:
    model, (x, y) = net(), batch()
    with pytest.raises(FileNotFoundError, match="no such folder.*missing'"):
        model.save(tmp_path / "missing/w.safetensors")
    ob.fit(model, (x, y), 1, checkpoint=tmp_path / "c.safetensors", progress=False)
    with pytest.raises(ob.Error, match="and 5 more.*checkpoint of fit: openbnns.load_checkpoint"):
        model.load(tmp_path / "c.safetensors")
    assert ob.load_checkpoint(tmp_path / "c.safetensors", model)["epoch"] == 1


def test_names_that_people_expect() -> None:
    model = net()
    assert [n for n, _ in model.named_modules()][:3] == ["", "0", "1"]
    assert isinstance(model[:2], nn.Sequential) and len(model[:2]) == 2 and model[:2][0] is model[0]
    x, y = batch()
    nn.value_and_grad(model, nn.losses.cross_entropy)(x, y)
    assert model[5].weight.grad.any()
    adam = optim.Adam(model, lr=0.5)
    adam.zero_grad()
    assert not model[5].weight.grad.any()
    assert "lr=0.5" in repr(adam) and "Conv2d(1, 4" in repr(model) and "BatchNorm2d(4" in repr(model)
    assert repr(ob.array(np.zeros((2, 3), np.float32))) == "Array((2, 3), float32)"
    layer = ob.FullyConnectedLayer(input=(3,), output=(2,), weights=np.zeros((2, 3), np.float32))
    assert repr(layer) == "FullyConnectedLayer((3,) -> (2,), float32)"


def test_help_says_shapes() -> None:
    for name in nn.__all__:
        thing = getattr(nn, name)
        if inspect.isclass(thing) and issubclass(thing, nn.Module) and name not in ("Identity",):
            assert thing.__doc__ and len(thing.__doc__) > 5, name
    assert "(batch_size, *sample)" in (ob.ConvolutionLayer.apply.__doc__ or "")
    assert "W^T" in (nn.Linear.__doc__ or "")


def test_state_dicts_of_other_types() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    theirs = torch.nn.Linear(3, 2)
    ours = nn.Linear(3, 2)
    ours.load_state_dict(dict(theirs.named_parameters()))
    close(ours.weight.data, theirs.weight.detach().numpy(), 0)
    ours.load_state_dict(theirs.bfloat16().state_dict())
    close(ours.weight.data, theirs.weight.detach().float().numpy(), 0)


def test_models_in_threads() -> None:
    model = net().eval()
    x, _ = batch(32)
    expected, wrong = model(x), []

    def work() -> None:
        for _ in range(50):
            if not np.array_equal(model(x), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_eval_differs_from_train() -> None:
    x, _ = batch()
    model = nn.Sequential(net(), nn.Dropout(0.5))
    model(x)
    before = copy.deepcopy(model).state_dict()
    assert not np.array_equal(model.train()(x), model.train()(x))
    assert np.array_equal(model.eval()(x), model.eval()(x))
    assert all(np.array_equal(before[k], v) for k, v in model.state_dict().items())


def test_memory_cannot_be_resized_while_a_call_runs() -> None:
    n, block = 512, array.array("f", bytes(4 * 512 * 512))
    w = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32)
    layer = ob.FullyConnectedLayer(input=(n,), output=(n,), weights=w)
    x = np.frombuffer(bytes(4 * n * n), np.float32)
    begun = threading.Event()

    def work() -> None:
        begun.set()
        for _ in range(40):
            layer.apply(n, x, block)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    refused = 0
    while thread.is_alive():
        try:
            block.append(0.0)
            block.pop()
        except BufferError:
            refused += 1
    thread.join()
    assert refused
