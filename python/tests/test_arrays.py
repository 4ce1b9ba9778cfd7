"""Arrays in and out: no copies, read-only memory, strides, types, refusals; and the layers and functions of openbnns itself."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from conftest import close

import openbnns as ob

R = np.random.default_rng(0)


def new(*shape: int) -> np.ndarray:
    return R.standard_normal(shape).astype(np.float32)


def dense(**more: Any) -> tuple[ob.FullyConnectedLayer, np.ndarray]:
    w = new(2, 3)
    return ob.FullyConnectedLayer(input=(3,), output=(2,), weights=w, filter_parameters=ob.use_client_pointer, **more), w


def test_pointers_are_equal() -> None:
    x = new(4, 3)
    assert ob.array(x).address == x.ctypes.data and ob.array(x).owner is x
    block = bytearray(8)
    view = memoryview(block)
    assert ob.array(view).shape == (8,)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    t = torch.zeros(2, 3)
    assert ob.array(t).address == t.data_ptr()
    assert ob.array(t.to(torch.bfloat16)).dtype == "bfloat16"
    layer, w = dense()
    y = torch.zeros(2, 2)
    layer.apply(2, torch.ones(2, 3), y)
    close(y.numpy(), np.ones((2, 3)) @ w.T)


def test_weights_are_read_where_they_are() -> None:
    layer, w = dense()
    x, y = new(4, 3), np.zeros((4, 2), np.float32)
    w *= 2
    layer.apply(4, x, y)
    close(y, x @ w.T)


def test_memory_outlives_its_owner() -> None:
    def make() -> ob.FullyConnectedLayer:
        return ob.FullyConnectedLayer(input=(64,), output=(64,), weights=np.eye(64, dtype=np.float32),
                                      filter_parameters=ob.use_client_pointer)

    layer = make()
    noise = [np.full((64, 64), 7, np.float32) for _ in range(20)]
    x, y = new(1, 64), np.zeros((1, 64), np.float32)
    layer.apply(1, x, y)
    assert len(noise) == 20 and np.array_equal(x, y)
    block = bytearray(16)
    held = ob.array(memoryview(block))
    with pytest.raises(BufferError):
        block.extend(b"more")
    assert held.shape == (16,)


def test_read_only_outputs_are_refused() -> None:
    layer, _ = dense()
    x, y = new(4, 3), np.zeros((4, 2), np.float32)
    x.setflags(write=False)
    layer.apply(4, x, y)
    y.setflags(write=False)
    with pytest.raises(ob.Error) as caught:
        layer.apply(4, x, y)
    assert caught.value.field == "output" and caught.value.given == "read-only"
    with pytest.raises(ob.Error, match="read-only"):
        ob.clip(0, 1, x, b"1234")


@pytest.mark.parametrize("x,y,field,expected", [
    (np.zeros((4, 3)), np.zeros((4, 2), np.float32), "input", "float32"),
    (np.zeros((4, 3), np.float16), np.zeros((4, 2), np.float32), "input", "float32"),
    (np.zeros((3, 3), np.float32), np.zeros((4, 2), np.float32), "input", "(4, 3)"),
    (np.zeros((4, 3), np.float32), np.zeros((4, 3), np.float32), "output", "(4, 2)"),
    (np.zeros((4, 6), np.float32)[:, ::2], np.zeros((4, 2), np.float32), "input", "packed"),
    (np.zeros((4, 3), np.float32)[::-1], np.zeros((4, 2), np.float32), "input", "above 0"),
    ("text", np.zeros((4, 2), np.float32), "input", "an array in CPU memory"),
    (None, np.zeros((4, 2), np.float32), "input", "an array"),
])
def test_refusals_say_what_is_wrong(x: Any, y: Any, field: str, expected: str) -> None:
    layer, _ = dense()
    before = y.copy()
    with pytest.raises((ob.Error, TypeError)) as caught:
        layer.apply(4, x, y)
    assert np.array_equal(before, y)
    if isinstance(caught.value, ob.Error):
        assert caught.value.field == field and expected in str(caught.value.expected)
        assert caught.value.function == "FullyConnectedLayer"


def test_the_library_s_reason_is_passed_on() -> None:
    with pytest.raises(ob.Error) as caught:
        ob.FullyConnectedLayer(input=(4,), output=(2,), weights=new(2, 3))
    e = caught.value
    assert (e.operator, e.field, e.given, e.expected) == ("fully_connected", "w_desc.size[0]", "3", "4 = elements of i_desc")


def test_samples_may_lie_apart() -> None:
    layer, w = dense()
    wide, y = new(4, 2, 3), np.zeros((4, 2), np.float32)
    layer.apply(4, wide[:, 1], y)
    close(y, wide[:, 1] @ w.T)


def test_gradients_and_accumulation() -> None:
    layer, w = dense()
    x, y, dy = new(4, 3), new(4, 2), new(4, 2)
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    layer.apply_backward(4, x, y, dy, dx, dw)
    close(dx, dy @ w)
    close(dw, dy.T @ x)
    layer.apply_backward(4, x, y, dy, None, ob.array(dw).accumulating())
    close(dw, 2 * dy.T @ x)


def test_half_types() -> None:
    types: list[Any] = [np.float16]
    try:
        import ml_dtypes

        types.append(ml_dtypes.bfloat16)
    except ImportError:
        pass
    for dtype in types:
        w = new(2, 3)
        layer = ob.FullyConnectedLayer(input=ob.shape((3,), dtype), output=ob.shape((2,), dtype), weights=w.astype(dtype))
        x, y = new(4, 3).astype(dtype), np.zeros((4, 2), dtype)
        layer.apply(4, x, y)
        close(y.astype(np.float32), x.astype(np.float32) @ w.astype(dtype).astype(np.float32).T, 2e-2)


def test_threads_share_a_layer() -> None:
    layer, w = dense()
    wrong: list[int] = []

    def work(seed: int) -> None:
        x, y = np.random.default_rng(seed).standard_normal((8, 3)).astype(np.float32), np.zeros((8, 2), np.float32)
        for _ in range(200):
            layer.apply(8, x, y)
            if not np.allclose(y, x @ w.T, atol=1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_layers() -> None:
    x = new(2, 3, 4, 4)
    pad = np.zeros((2, 3, 6, 6), np.float32)
    ob.PaddingLayer(input=(3, 4, 4), output=(3, 6, 6), size=[(0, 0), (1, 1), (1, 1)], value=2.0).apply(2, x, pad)
    close(pad, np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=2))
    turned = np.zeros((2, 4, 4, 3), np.float32)
    permute = ob.PermuteLayer(input=(3, 4, 4), output=(4, 4, 3), permutation=(1, 2, 0))
    permute.apply(2, x, turned)
    close(turned, x.transpose(0, 2, 3, 1))
    back = np.zeros_like(x)
    permute.apply_backward(2, turned, back)
    close(back, x)
    total = np.zeros((2, 3, 1, 1), np.float32)
    ob.ReductionLayer(function=ob.ReductionFunction.sum, input=(3, 4, 4), output=(3, 1, 1)).apply(2, x, total)
    close(total, x.sum((2, 3), keepdims=True))
    large = np.zeros((2, 3, 8, 8), np.float32)
    ob.ResizeLayer(method=ob.InterpolationMethod.nearest, input=(3, 4, 4), output=(3, 8, 8)).apply(2, x, large)
    close(large, x.repeat(2, 2).repeat(2, 3))
    gram = np.zeros((2, 3, 3), np.float32)
    ob.GramLayer(input=(3, 4, 4), output=(3, 3)).apply(2, x, gram)
    flat = x.reshape(2, 3, 16)
    close(gram, flat @ flat.transpose(0, 2, 1))
    a, b, c = new(2, 3, 4), new(2, 4, 5), np.zeros((2, 3, 5), np.float32)
    ob.BroadcastMatrixMultiplyLayer(input_a=(3, 4), input_b=(4, 5), output=(3, 5)).apply(2, a, b, c)
    close(c, a @ b)
    c[...] = 0
    ob.TensorContractionLayer(operation="a_ij, b_jk -> out_ik", input_a=(3, 4), input_b=(4, 5), output=(3, 5)).apply(2, a, b, c)
    close(c, a @ b)
    y = np.zeros_like(x)
    ob.UnaryArithmeticLayer(input=(3, 4, 4), output=(3, 4, 4), function=ob.ArithmeticFunction.exp).apply(2, x, y)
    close(y, np.exp(x))
    ob.TernaryArithmeticLayer(input_a=(48,), input_b=(48,), input_c=(48,), output=(48,),
                              function=ob.ArithmeticFunction.multiply_add).apply(2, x, x, x, y)
    close(y, x * x + x)
    ids, table, rows = np.array([[2, 0], [1, 1]]), new(3, 5), np.zeros((2, 2, 5), np.float32)
    ob.EmbeddingLayer(input=(2,), output=(2, 5), dictionary=table).apply(2, ids, rows)
    close(rows, table[ids])


def test_fused_layer() -> None:
    x, w, b = new(5, 2, 6, 6), new(3, 2, 3, 3), new(3)
    beta, gamma = new(3), new(3)
    y = np.zeros((5, 3, 4, 4), np.float32)
    stages = [ob.fused_convolution(w, b), ob.fused_normalization(ob.NormalizationKind.batch, beta, gamma)]
    layer = ob.FusedParametersLayer(inputs=(2, 6, 6), output=(3, 4, 4), fused_layer_parameters=stages,
                                    filter_parameters=ob.use_client_pointer)
    layer.apply(5, x, y, training=True)
    plain = np.zeros_like(y)
    ob.ConvolutionLayer(input=(2, 6, 6), weights=w, output=(3, 4, 4), bias=b).apply(5, x, plain)
    mean, variance = plain.mean((0, 2, 3), keepdims=True), plain.var((0, 2, 3), keepdims=True)
    close(y, (plain - mean) / np.sqrt(variance + 1e-5) * gamma.reshape(1, 3, 1, 1) + beta.reshape(1, 3, 1, 1))
    assert layer.parameter_gradient_count == 4
    dbeta, dx, dy = np.zeros_like(beta), np.zeros_like(x), new(5, 3, 4, 4)
    layer.apply_backward(5, x, y, dy, dx, [None, None, dbeta, None])
    close(dbeta, dy.sum((0, 2, 3)))


def test_functions() -> None:
    x = new(3, 5)
    y = np.zeros_like(x)
    ob.clip(-0.5, 0.5, x, y)
    close(y, np.clip(x, -0.5, 0.5))
    ob.apply_activation(ob.ActivationFunction("softmax"), x, y, axes=-1)
    close(y, np.exp(x) / np.exp(x).sum(1, keepdims=True))
    part = np.zeros((3, 3), np.float16)
    ob.copy(x[:, ::2], part)
    close(part, x[:, ::2], 1e-3)
    t = np.zeros((5, 3), np.float32)
    ob.transpose(x, t, 0, 1)
    close(t, x.T)
    s = np.zeros((3, 1), np.float32)
    ob.apply_reduction(ob.ReductionFunction.max, x, s)
    close(s, x.max(1, keepdims=True))
    lengths = np.zeros(3, np.float32)
    ob.compute_norm(x, lengths, axes=1)
    close(lengths, np.linalg.norm(x, axis=1))
    m = np.zeros((3, 3), np.float32)
    ob.apply_matrix_multiplication(x, x, m, b_transposed=True)
    close(m, x @ x.T)
    assert ob.matrix_multiplication_workspace_size(x, x, m, b_transposed=True) is not None
    less = np.zeros((3, 5), bool)
    ob.compare(x, -x, ob.RelationalOperator.less, less)
    assert np.array_equal(less, x < -x)
    tiled = np.zeros((6, 10), np.float32)
    ob.tile(x, tiled)
    close(tiled, np.tile(x, (2, 2)))
    got = np.zeros((2, 5), np.float32)
    ob.gather(x, np.array([2, 0]), got, axis=0)
    close(got, x[[2, 0]])
    into = np.zeros((3, 5), np.float32)
    ob.scatter(got, np.array([1, 1]), into, axis=0, reduction_function=ob.ReductionFunction.sum)
    close(into[1], got.sum(0))
    best, where = np.zeros((3, 2), np.float32), np.zeros((3, 2), np.int32)
    ob.apply_top_k(2, x, best, where, axis=1)
    close(best, -np.sort(-x, axis=1)[:, :2])
    band = np.zeros((3, 3), np.float32)
    ob.copy_band_part(m, band, 0, None)
    close(band, np.triu(m))
    q = np.zeros((3, 5), np.int8)
    ob.quantize(x, q, scale=np.array([10], np.float32))
    assert np.abs(q - x * 10).max() <= 0.51
    pixels, shuffled = new(1, 4, 2, 2), np.zeros((1, 1, 4, 4), np.float32)
    ob.shuffle(ob.ShuffleType.pixel_shuffle_nchw, pixels, shuffled)
    close(shuffled[0, 0, 0, :2], pixels[0, :2, 0, 0])


def test_random_and_neighbors() -> None:
    a, b = np.zeros(100, np.float32), np.zeros(100, np.float32)
    g = ob.RandomGenerator(seed=3)
    state = g.state
    g.fill_uniform(a, -1, 1)
    g.state = state
    g.fill_uniform(b, -1, 1)
    assert np.array_equal(a, b) and a.min() >= -1 and a.max() < 1 and a.std() > 0.3
    g.fill_normal(a, 5, 0.1)
    assert abs(a.mean() - 5) < 0.1
    points = new(10, 3)
    store = ob.NearestNeighbors(capacity=10, dimension_count=3, neighbor_count=2)
    store.append(points)
    at, far = np.zeros((10, 2), np.int32), np.zeros((10, 2), np.float32)
    store.apply(None, at, far)
    assert (at >= 0).all() and (at < 10).all()
    with pytest.raises(ob.Error, match="output_indices"):
        store.apply(None, np.zeros(3, np.int32))


def test_optimizers_of_the_overlay() -> None:
    w, g = new(4), new(4)
    expected = w - 0.1 * g
    ob.SGDMomentumOptimizer(learning_rate=0.1).step([w], [g])
    close(w, expected)
    ob.AdamOptimizer(learning_rate=0.1).step([w], [g], [np.zeros(4, np.float32), np.zeros(4, np.float32)])
    close(w, expected - 0.1 * np.sign(g), 1e-4)
    with pytest.raises(ob.Error, match="accumulators"):
        ob.AdamWOptimizer().step([w], [g], [])


def test_wrong_shapes_of_modules_are_named() -> None:
    from openbnns import nn

    with pytest.raises(ob.Error, match=r"Conv2d: input has shape \(2, 3, 8, 8\), expected \(N, 1, H, W\)"):
        nn.Conv2d(1, 2, 3)(np.zeros((2, 3, 8, 8), np.float32))
    with pytest.raises(ob.Error, match="expected integers"):
        nn.Embedding(3, 2)(np.zeros(3, np.float32))
    with pytest.raises(ob.Error, match="int64, expected float32"):
        nn.Linear(3, 2)(np.zeros((1, 3), np.int64))
    with pytest.raises(ob.Error, match="target has classes"):
        nn.losses.cross_entropy(np.zeros((2, 3), np.float32), np.array([0, 3]))
