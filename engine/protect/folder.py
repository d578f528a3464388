"""Open a folder with an mlx-lm model: config, weights, tokenizer. Never downloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mlx_lm.utils import load_model, load_tokenizer
from safetensors import safe_open

from .errors import ProtectError

_FROM_DISK = {"trust_remote_code": False, "local_files_only": True}
"""Left open, the tokenizer library would ask whether to run code that came with the folder."""


class BadFolder(ProtectError):
    """A folder that holds no model mlx-lm can run."""


def is_model_folder(folder: Path) -> bool:
    """True when the folder looks like one that mlx-lm opens: a config and weights."""
    return (folder / "config.json").is_file() and any(folder.glob("model*.safetensors"))


def load(folder: str | Path) -> tuple[Any, Any | None, dict[str, Any]]:
    """Model with lazy weights, tokenizer (None when the folder has none), config.

    Raises: BadFolder, naming the file and what is wrong with it.
    """
    path = Path(folder)
    config = _config(path)
    files = sorted(path.glob("model*.safetensors"))
    if not files:
        raise BadFolder(f"{path}: no weights, expected files named model*.safetensors")
    for file in files:
        # of a file that is not whole mlx-lm hears in the middle of an evaluation, if at all
        try:
            with safe_open(str(file), framework="np"):
                pass
        except Exception as error:  # the library has more than one family
            raise BadFolder(f"{file}: can't open these weights: {_words(error)}") from error
    try:
        model, config = load_model(path, lazy=True)
    except Exception as error:  # mlx-lm and its model files raise anything here
        raise BadFolder(f"{path}: mlx-lm can't open this model: {_words(error)}") from error
    return model, _tokenizer(path, config), config


def _config(path: Path) -> dict[str, Any]:
    file = path / "config.json"
    if not path.is_dir():
        raise BadFolder(f"{path}: expected a model folder, found no such folder")
    if not file.is_file():
        raise BadFolder(f"{path}: expected a config.json, found none")
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadFolder(f"{file}: expected JSON: {error}") from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise BadFolder(f"{file}: expected an object with a `model_type`")
    return config


def _tokenizer(path: Path, config: dict[str, Any]) -> Any | None:
    names = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json")
    if not any((path / name).is_file() for name in names):
        return None
    try:
        return load_tokenizer(path, dict(_FROM_DISK), eos_token_ids=config.get("eos_token_id"))
    except Exception as error:  # the tokenizer library raises anything here
        raise BadFolder(f"{path}: the tokenizer can't be opened: {_words(error)}") from error


def _words(error: Exception) -> str:
    """What an error says; some say nothing but their name."""
    return str(error) or type(error).__name__
