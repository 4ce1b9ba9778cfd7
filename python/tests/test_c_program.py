"""The same training in C and in Python ends in the same bits: examples/cnn.c, and the same layers in Python."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest

import openbnns as ob

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH, SIZE, CLASSES, STEPS = 64, 16, 4, 150

AROUND = """
#define main cnn_main
#include "examples/cnn.c"
#undef main
int main(int argc, char** argv) {
  const size_t counts[] = {9 * CHANNELS, CHANNELS, CHANNELS, CLASSES * FEATURES, CLASSES};
  FILE* file = argc == 2 && cnn_main() == 0 ? fopen(argv[1], "wb") : NULL;
  for (int i = 0; file && i < PARAMETERS; i++) fwrite(memory[0][i], sizeof(float), counts[i], file);
  return file ? fclose(file) : 1;
}
"""


class Pictures:
    """draw_batch of cnn.c: bars, poles, crosses and frames over noise."""

    def __init__(self) -> None:
        self.state = 1

    def roll(self, sides: int) -> int:
        self.state = (self.state * 1664525 + 1013904223) & 0xFFFFFFFF
        return (self.state >> 8) % sides

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        x, labels = np.empty((BATCH, 1, SIZE, SIZE), np.float32), np.empty(BATCH, np.int64)
        i, j = np.mgrid[:9, :9]
        row, column, frame = i == 4, j == 4, (i % 8 == 0) | (j % 8 == 0)
        for n in range(BATCH):
            shape, top, left = self.roll(CLASSES), 1 + self.roll(6), 1 + self.roll(6)
            labels[n] = shape
            noise = np.array([self.roll(100) for _ in range(SIZE * SIZE)], np.float32) / np.float32(200)
            x[n, 0] = noise.reshape(SIZE, SIZE)
            ink = (row, column, row | column, frame)[shape]
            x[n, 0, top:top + 9, left:left + 9][ink] += np.float32(0.6)
        return x, labels


def test_weights_equal_those_of_the_c_program(tmp_path: Any) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "around.c").write_text(AROUND)
    library = pathlib.Path(ob.__file__).parent / "libbnns.so.0"
    subprocess.run([compiler, "-std=c99", f"-I{ROOT}", f"-I{ROOT}/include", str(tmp_path / "around.c"), str(library), "-lm",
                    f"-Wl,-rpath,{library.parent}", "-o", str(tmp_path / "around")], check=True)
    subprocess.run([str(tmp_path / "around"), str(tmp_path / "weights")], check=True, stdout=subprocess.DEVNULL)

    w1, w2, b2 = np.empty((8, 1, 3, 3), np.float32), np.empty((CLASSES, 512), np.float32), np.zeros(CLASSES, np.float32)
    beta, gamma, mean, variance = [np.full(8, v, np.float32) for v in (0, 1, 0, 1)]
    random = ob.RandomGenerator(seed=1)
    random.fill_uniform(w1, -0.8, 0.8)
    random.fill_uniform(w2, -0.1, 0.1)
    stages = [ob.fused_convolution(w1, padding=1),
              ob.fused_normalization(ob.NormalizationKind.batch, beta, gamma, moving_mean=mean, moving_variance=variance,
                                     momentum=0.9, activation=ob.ActivationFunction("relu"))]
    fused = ob.FusedParametersLayer(inputs=(1, SIZE, SIZE), output=(8, SIZE, SIZE), fused_layer_parameters=stages,
                                    filter_parameters=ob.use_client_pointer)
    pool = ob.PoolingLayer(type=ob.PoolingFunction.max, input=(8, SIZE, SIZE), output=(8, 8, 8), kernel_size=2, stride=2)
    last = ob.FullyConnectedLayer(input=(512,), output=(CLASSES,), weights=w2, bias=b2, filter_parameters=ob.use_client_pointer)
    judge = ob.LossLayer(input=(CLASSES,), loss_function=ob.LossFunction.softmax_cross_entropy)
    adam = ob.AdamOptimizer(learning_rate=0.01)
    trained = [w1, beta, gamma, w2, b2]
    d1, dbeta, dgamma, d2, db2 = gradients = [np.zeros_like(a) for a in trained]
    moments = [np.zeros_like(a) for _ in range(2) for a in trained]
    y, p, z = [np.empty((BATCH, *s), np.float32) for s in ((8, SIZE, SIZE), (8, 8, 8), (CLASSES,))]
    dy, dp, dz = np.empty_like(y), np.empty_like(p), np.empty_like(z)
    indices, loss, pictures = np.empty(p.shape, np.uint64), np.empty(1, np.float32), Pictures()
    for t in range(1, STEPS + 1):
        x, labels = pictures.batch()
        fused.apply(BATCH, x, y, training=True)
        pool.apply(BATCH, y, p, indices)
        last.apply(BATCH, p, z)
        judge.apply(BATCH, z, np.eye(CLASSES, dtype=np.float32)[labels], loss, generating_input_gradient=dz)
        last.apply_backward(BATCH, p, z, dz, dp, d2, db2)
        pool.apply_backward(BATCH, output_gradient=dp, generating_input_gradient=dy, indices=indices)
        fused.apply_backward(BATCH, x, y, dy, None, [d1, None, dbeta, dgamma])
        adam.time_step = t
        adam.step(trained, gradients, moments)
    assert b"".join(a.tobytes() for a in trained) == (tmp_path / "weights").read_bytes()
