"""Pictures of a training, by matplotlib (pip install openbnns[plot]): each function returns the figure.

    from openbnns import plot
    plot.history(records).savefig("loss.png")
"""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ._errors import Error
from .nn.layers import Conv2d
from .nn.module import Module


def _subplots(*args: Any, **options: Any) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("openbnns.plot needs matplotlib: pip install matplotlib") from None
    return plt.subplots(*args, **options)


def history(records: Sequence[dict[str, Any]]) -> Any:
    """Loss and metrics of the records that fit returns, training and validation side by side."""
    names = [k for k, v in records[-1].items() if isinstance(v, float) and not k.startswith("val_") and k not in ("lr", "seconds")]
    figure, axes = _subplots(1, len(names), figsize=(5 * len(names), 3.5), squeeze=False)
    for ax, name in zip(axes[0], names):
        for key, label in ((name, "training"), ("val_" + name, "validation")):
            points = [(r["epoch"] + 1, r[key]) for r in records if key in r]
            if points:
                ax.plot(*zip(*points), marker="o", label=label)
        ax.set_xlabel("epoch"), ax.set_ylabel(name), ax.legend()
    figure.tight_layout()
    return figure


def confusion(prediction: np.ndarray, target: np.ndarray, classes: Sequence[str] | None = None) -> Any:
    """How often each class (rows) was taken for each (columns). prediction: (N, classes) scores or (N,) classes."""
    chosen = np.argmax(prediction, axis=-1) if np.ndim(prediction) == 2 else np.asarray(prediction)
    n = int(max(chosen.max(), target.max())) + 1
    table = np.zeros((n, n), np.int64)
    np.add.at(table, (np.asarray(target), chosen), 1)
    figure, ax = _subplots(figsize=(1 + 0.45 * n, 1 + 0.45 * n))
    ax.imshow(np.sqrt(table), cmap="Blues")
    for (i, j), count in np.ndenumerate(table):
        if count:
            ax.text(j, i, str(count), ha="center", va="center", color="white" if count > table.max() / 3 else "black", fontsize=8)
    names = list(classes) if classes is not None else [str(i) for i in range(n)]
    ax.set_xticks(range(n), names), ax.set_yticks(range(n), names)
    ax.set_xlabel("prediction"), ax.set_ylabel("target")
    figure.tight_layout()
    return figure


def mistakes(images: np.ndarray, scores: np.ndarray, target: np.ndarray, count: int = 12) -> Any:
    """The images whose target got the lowest score, worst first. images (N, C, H, W), scores (N, classes)."""
    own = scores[np.arange(len(target)), target]
    chosen = np.argmax(scores, axis=1)
    worst = [i for i in np.argsort(own - scores.max(axis=1)) if chosen[i] != target[i]][:count]
    if not worst:
        raise Error("mistakes: scores are right everywhere, expected a mistake")
    columns = min(6, len(worst))
    rows = -(-len(worst) // columns)
    figure, axes = _subplots(rows, columns, figsize=(1.5 * columns, 1.8 * rows), squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    for ax, i in zip(axes.flat, worst):
        ax.imshow(_picture(images[i]), cmap="gray")
        ax.set_title(f"{target[i]}, not {chosen[i]}", fontsize=9)
    figure.tight_layout()
    return figure


def filters(model: Module) -> Any:
    """The kernels of the first convolution."""
    first = next((m for m in model.modules() if isinstance(m, Conv2d)), None)
    if first is None:
        raise Error("filters: model is without a Conv2d, expected one")
    kernels = first.weight.data
    columns = min(8, len(kernels))
    rows = -(-len(kernels) // columns)
    figure, axes = _subplots(rows, columns, figsize=(1.2 * columns, 1.2 * rows), squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    for ax, kernel in zip(axes.flat, kernels):
        scaled = (kernel - kernel.min()) / max(1e-12, float(kernel.max() - kernel.min()))
        ax.imshow(_picture(scaled), cmap="gray")
    figure.tight_layout()
    return figure


def _picture(image: np.ndarray) -> np.ndarray:
    return image.transpose(1, 2, 0) if image.ndim == 3 and image.shape[0] in (3, 4) else image.reshape(-1, *image.shape[-2:])[0]
