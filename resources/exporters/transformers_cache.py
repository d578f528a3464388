"""Save a transformers cache as tensors that `bankflip check` reads; run it in your own process.

    from transformers_cache import save
    save(cache, "cache.safetensors")

Needs torch, transformers 5 and safetensors. Nothing is pickled. The metadata name each layer's
class and how many tokens it has taken in, which the tensors of a sliding window do not show.
"""

import safetensors.torch


def length_of(layer):
    """Tokens that a layer has taken in; None where it does not count them."""
    for name in ("cumulative_length_int", "cumulative_length"):
        value = getattr(layer, name, None)
        if value is not None:
            return name, int(value)
    return None


def save(cache, path):
    tensors, metadata = {}, {}
    for number, layer in enumerate(cache.layers):
        metadata[f"layers.{number}.class"] = type(layer).__name__
        length = length_of(layer)
        if length is not None:
            metadata[f"layers.{number}.{length[0]}"] = str(length[1])
        for name in ("keys", "values", "conv_states", "recurrent_states"):
            tensor = getattr(layer, name, None)
            if hasattr(tensor, "contiguous"):
                tensors[f"layers.{number}.{name}"] = tensor.detach().cpu().contiguous().clone()
    safetensors.torch.save_file(tensors, path, metadata=metadata)
