"""Opening a session: which folder a model name means, which device runs it, and is it exact.

Everything is loaded and evaluated in the calling thread, which is the engine's from then on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from engine.engine import Engine
from engine.errors import Unreadable

BACKENDS: Final = ("auto", "metal", "cuda", "cpu")


def models_folder() -> Path:
    """Where the built-in models lie."""
    import resources

    return Path(next(iter(resources.__path__))) / "models"


def builtin_models() -> tuple[str, ...]:
    """Names of the models that ship with the program."""
    return tuple(sorted(p.parent.name for p in models_folder().glob("*/config.json")))


def model_folder(name: str) -> Path:
    """The folder of a built-in name or of a path. Raises: Unreadable naming what there is."""
    if name in builtin_models():
        return models_folder() / name
    folder = Path(name)
    if not folder.is_dir():
        expected = f"a model folder or one of {', '.join(builtin_models())}"
        raise Unreadable(
            name, "no such model", expected, "a file" if folder.exists() else "nothing"
        )
    return folder


def open_engine(
    model: str | None = None,
    *,
    backend: str = "auto",
    dtype: str | None = None,
    self_check: bool = False,
    **settings: Any,
) -> Engine:
    """A new session.

    Args:
        model: a model folder, a built-in name, or None for a history without contents.
        backend: `auto` takes Metal, then CUDA, then the CPU.
        self_check: measure first whether cutting rows differently changes bits on this device.
        settings: further arguments of `Engine`.
    Raises: Unreadable and Malformed for the folder or the backend.
    """
    if backend not in BACKENDS:
        raise Unreadable("backend", "unknown backend", ", ".join(BACKENDS), backend)
    if model is None:
        return Engine(None, **settings)
    folder = model_folder(model)
    import mlx.core as mx

    from engine.graph.backend import backend_for
    from engine.graph.selfcheck import proven_backend
    from engine.weights import load_model

    name = device_named(backend)
    mx.set_default_device(mx.Device(mx.cpu if name == "cpu" else mx.gpu))
    exact = "not checked"
    if self_check:
        device, _, proved = proven_backend(name)
        exact = "proved" if proved else "unproved"
    else:
        device = backend_for(name)
    engine = Engine(load_model(folder, dtype, device), name=model, **settings)
    engine.exact = exact
    return engine


def device_named(backend: str) -> str:
    """The device of a backend name. Raises: Unreadable when this machine does not have it."""
    import metal

    found = [name for name in metal.available() if name in BACKENDS]
    if backend == "auto":
        return found[0]
    if backend not in found:
        raise Unreadable("backend", "not on this machine", ", ".join(found), backend)
    return backend
