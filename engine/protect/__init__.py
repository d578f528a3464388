"""Make any mlx-lm model transactional: a forward pass moves every cache, or none.

Plain mlx-lm advances each layer's offset while the graph is built. A failure in the middle leaves
some layers ahead, and the next call gives finite, wrong logits. Five lines cure a loop:

    from bankflip import protect                          # 1
    model, tokenizer = mlx_lm.load("my/model")
    model = protect.TransactionalModel(model)             # 2
    cache = protect.make_prompt_cache(model)              # 3
    try:                                                  # 4
        for token, _ in mlx_lm.generate_step(prompt, model, prompt_cache=cache): ...
    except Exception: ...                                 # 5: the cache is as after the last step

`generate`, `stream_generate`, batch generation, speculative decoding and `save_prompt_cache` take
the wrapped model as it is. `model.transaction(cache)` makes several calls one; `rewind`, `trim`
and `fork` are exact or refused.

This package imports MLX, mlx-lm, NumPy and the standard library only.
"""

try:
    import mlx_lm as _mlx_lm  # noqa: F401
except ImportError as error:
    raise ImportError(
        "engine.protect needs mlx-lm, which is optional: install it with"
        " `pip install 'bankflip[mlx-lm]'`"
    ) from error

from . import faults, views
from .errors import InjectedFault, NotFinite, ProtectError, Refused, StateLost
from .folder import BadFolder, is_model_folder
from .model import TransactionalModel, make_prompt_cache
from .session import ProtectedSession
from .transaction import Transaction

__all__ = [
    "BadFolder",
    "InjectedFault",
    "NotFinite",
    "ProtectError",
    "ProtectedSession",
    "Refused",
    "StateLost",
    "Transaction",
    "TransactionalModel",
    "faults",
    "is_model_folder",
    "make_prompt_cache",
    "views",
]
