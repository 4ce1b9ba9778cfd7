"""JAX as a peer of the training steps: the same networks, one jitted step with donated buffers, in a process of its own
whose CPUs are as many as there are threads (XLA makes its pool when it starts). bench.py asks it to take its turns.

    peers_jax.py STEP.npz      then lines on standard input: `loss` (of the third step) or `time CALLS` (seconds a call)

STEP.npz: op, direction, threads, x, labels and the parameters p00, p01, ... in PyTorch's order.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np


class Worker:
    """The other end of the pipe."""

    def __init__(self, row, arrays, threads):
        handle, self.path = tempfile.mkstemp(suffix=".npz")
        os.close(handle)
        np.savez(self.path, op=row["op"], direction=row["direction"], threads=threads, **arrays)
        self.process = subprocess.Popen([sys.executable, __file__, self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.loss = self.ask("loss")  # behind the compilation

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("JAX's process ended")
        return float(answer)

    def time(self, calls):
        return self.ask(f"time {calls}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        os.unlink(self.path)


def networks(jax):
    jnp, lax = jax.numpy, jax.lax

    def conv(x, w, stride=1, pad=0):
        return lax.conv_general_dilated(x, w, (stride, stride), ((pad, pad), (pad, pad)), dimension_numbers=("NCHW", "OIHW", "NCHW"))

    def pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def mlp(p, x):
        return jax.nn.relu(x @ p[0].T + p[1]) @ p[2].T + p[3]

    def lenet(p, x):
        x = pool(conv(x, p[0]) + p[1][:, None, None])
        x = pool(conv(x, p[2]) + p[3][:, None, None])
        return jax.nn.relu(x.reshape(x.shape[0], -1) @ p[4].T + p[5]) @ p[6].T + p[7]

    def residual(p, x):
        rest = iter(p)

        def pair(x, stride, pad):
            y = conv(x, next(rest), stride, pad)
            mean, variance = y.mean((0, 2, 3), keepdims=True), y.var((0, 2, 3), keepdims=True)
            return (y - mean) * lax.rsqrt(variance + 1e-5) * next(rest)[:, None, None] + next(rest)[:, None, None]

        x = jax.nn.relu(pair(x, 1, 1))
        for stride in (1, 2, 2):
            skip = pair(x, stride, 0) if stride == 2 else x
            x = jax.nn.relu(pair(jax.nn.relu(pair(x, stride, 1)), 1, 1) + skip)
        return x.mean((2, 3)) @ next(rest).T + next(rest)
    return {"MLP 784-128-10": mlp, "LeNet": lenet, "residual network": residual}


def make_step(jax, forward, adam):
    jnp = jax.numpy

    def loss(p, x, labels):
        return -(labels * jax.nn.log_softmax(forward(p, x))).sum(1).mean()

    def step(p, m, v, t, x, labels):
        value, g = jax.value_and_grad(loss)(p, x, labels)
        if not adam:
            return [a - 0.01 * b for a, b in zip(p, g)], m, v, t, value
        t = t + 1
        m = [0.9 * a + 0.1 * b for a, b in zip(m, g)]
        v = [0.999 * a + 0.001 * b * b for a, b in zip(v, g)]
        rate = 1e-3 / (1 - 0.9 ** t)
        return ([a - rate * b / (jnp.sqrt(c / (1 - 0.999 ** t)) + 1e-8) for a, b, c in zip(p, m, v)], m, v, t, value)
    return jax.jit(step, donate_argnums=(0, 1, 2, 3))


def main(path):
    import time
    file = np.load(path)
    cpus = sorted(os.sched_getaffinity(0))[:int(file["threads"])]
    os.sched_setaffinity(0, cpus)
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    jnp = jax.numpy
    parameters = [jnp.array(file[name]) for name in sorted(file.files) if name[0] == "p" and name[1:].isdigit()]
    adam = str(file["direction"]) == "Adam"
    zeros = [jnp.zeros_like(p) if adam else jnp.zeros(()) for p in parameters]
    state = [parameters, zeros, [z + 0 for z in zeros], jnp.zeros(())]
    x, labels = jnp.array(file["x"]), jnp.array(file["labels"])
    step = make_step(jax, networks(jax)[str(file["op"])], adam)

    def run(calls):
        for _ in range(calls):
            *state[:], value = step(*state, x, labels)
        return float(value)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "loss":
            print(run(3), flush=True)
            continue
        start = time.perf_counter()
        run(int(words[1]))
        print((time.perf_counter() - start) / int(words[1]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
