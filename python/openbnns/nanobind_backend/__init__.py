"""nanobind's part for this Python, which extensions of the stable ABI ask for by name. Only in wheels for several versions of Python
(scripts/python-wheel): there its modules lie in this folder, one for each version. A newer Python takes the installed nanobind-backend."""

from typing import Any


def fill(*arguments: Any) -> Any:
    try:
        from . import _nb_backend_v1 as backend  # type: ignore[attr-defined, unused-ignore]
    except ImportError:
        try:
            import nanobind_backend as backend  # type: ignore[import-not-found, no-redef, unused-ignore]
        except ImportError:
            raise ImportError("this wheel of openbnns has no nanobind for this Python: pip install nanobind-backend") from None
    return backend.fill(*arguments)
