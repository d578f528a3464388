"""Which folders hold a model for mlx-lm, and opening one, from its files alone and offline.

mlx-lm is optional: nothing of it is imported before such a folder is opened.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.config import MAX_CONFIG_BYTES, MODEL_TYPES
from engine.errors import EngineError, Malformed, Unreadable
from engine.small_file import content_of

if TYPE_CHECKING:
    from engine.lm_session import LmSession

MISSING: Final = (
    "a model for mlx-lm, which is an optional extra: install it with pip install 'bankflip[mlx-lm]'"
)
MOST_PARTS: Final = 16_384
"""Layers, experts and blocks beyond this number are no model: building them would take hours."""
_OFFLINE: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
}


def is_lm_folder(folder: str | Path | None) -> bool:
    """True for a folder whose config.json names a `model_type` that is not this engine's own."""
    from engine.opening import builtin_models

    if folder is None or str(folder) in builtin_models():
        return False
    return _foreign_type(_config(Path(folder))) is not None


def _config(folder: Path) -> dict[str, Any]:
    """The configuration, empty where there is none that can be read."""
    path = folder / "config.json"
    try:
        config = json.loads(content_of(path, MAX_CONFIG_BYTES))
    except (OSError, ValueError, RecursionError, Malformed):
        return {}
    return config if isinstance(config, dict) else {}


def _foreign_type(config: dict[str, Any]) -> str | None:
    inner = config.get("text_config")
    types = [c.get("model_type") for c in (config, inner) if isinstance(c, dict)]
    if not isinstance(types[0] if types else None, str) or set(map(str, types)) & set(MODEL_TYPES):
        return None
    return str(types[0])


def open_lm(folder: str | Path, *, backend: str = "auto", **settings: Any) -> LmSession:
    """A session on a folder for which `is_lm_folder` is true.

    Args:
        backend: `auto` takes Metal, then CUDA, then the CPU.
        settings: further arguments of `LmSession`.
    Raises: Unreadable or Malformed, one sentence, for whatever is wrong with the folder, and when
    mlx-lm is not installed.
    """
    from engine.opening import device_named

    path = Path(folder)
    device = device_named(backend)
    _judge(path)
    _admit(path, device)
    need_mlx_lm(folder)
    import mlx.core as mx

    from engine.lm_session import LmSession
    from engine.protect import ProtectError
    from engine.protect.folder import load

    mx.set_default_device(mx.Device(mx.cpu if device == "cpu" else mx.gpu))
    try:
        model, tokenizer, _ = load(path)
        session = LmSession(model, tokenizer, name=str(folder), backend=device, **settings)
        trial = session.blank.feed([0])
    except EngineError:
        raise
    except ProtectError as error:
        raise Unreadable(str(folder), _sentence(error, path)) from error
    except Exception as error:  # a model's own code may raise anything
        told = f"mlx-lm can't run this model: {type(error).__name__}: {_sentence(error, path)}"
        raise Unreadable(str(folder), told) from error
    if trial["kind"] == "command":
        told = " ".join(str(trial["error"]).split())[:300]
        raise Unreadable(str(folder), f"mlx-lm can't run this model: {told}")
    return session


def need_mlx_lm(folder: str | Path | None) -> None:
    """Import mlx-lm, told to stay off the network. Raises: Unreadable when it is not there."""
    for name, value in _OFFLINE.items():
        os.environ.setdefault(name, value)
    if importlib.util.find_spec("mlx_lm") is None:
        raise Unreadable(str(folder), MISSING)
    try:
        importlib.import_module("engine.protect")
    except ImportError as error:
        raise Unreadable(str(folder), f"mlx-lm can't be used: {error}") from error


def _judge(path: Path) -> None:
    """Refuse what mlx-lm should not even look at. Raises: Malformed."""
    config, where = _config(path), str(path / "config.json")
    kind = _foreign_type(config) or ""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", kind):
        raise Malformed(where, "model_type", "a name of letters, digits, - and _", kind[:40])
    if config.get("model_file") is not None:
        raise Malformed(
            where, "the model brings code of its own, which is never run", "no model_file"
        )
    for key, value in _numbers(config):
        counted = any(word in key for word in ("layer", "expert", "block"))
        if counted and isinstance(value, int) and abs(value) > MOST_PARTS:
            raise Malformed(where, key, f"at most {MOST_PARTS}", str(value)[:40])


def _admit(path: Path, device: str) -> None:
    """Refuse weights that are not whole, or larger than the memory. Raises: Unreadable."""
    from engine.memory import admit_bytes
    from engine.tensor_file import TensorFile

    for file in sorted(path.iterdir()):
        if not (file.is_file() or file.is_dir()):  # mlx-lm would wait for a pipe
            raise Malformed(str(file), "not a plain file", "files and folders", "something else")
    files = [TensorFile(file) for file in sorted(path.glob("model*.safetensors"))]
    n_bytes = sum(file.n_bytes for file in files)
    admit_bytes(str(path), "weights", n_bytes, device)


def _numbers(value: dict[str, Any]) -> list[tuple[str, Any]]:
    inner = [v for v in value.values() if isinstance(v, dict)]
    return [*value.items(), *(item for part in inner for item in part.items())]


def _sentence(error: Exception, path: Path) -> str:
    """What went wrong, on one line, without the folder's name in front."""
    text = " ".join(str(error).split())
    return text.removeprefix(f"{path}: ")[:400]
