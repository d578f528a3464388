"""One sentence for each stage and owner, for hover help and the glossary."""

from __future__ import annotations

from typing import Final

STAGES: Final = {
    "reserve": "claims cells and catches the private bank up with the public one",
    "load": "reads a slot, another sequence or the old state back",
    "write": "writes the new values into the private bank; the graph runs inside",
    "compress": "checks and seals the complete groups of four",
    "index": "checks and seals the index rows",
    "verify": "compares counts, lineages, finite values and status words",
    "publish": "seals every owner, then flips the one integer that says which bank is public",
    "embed": "turns token ids into the four residual streams",
    "head": "turns the last token's streams into logits",
    "ple": "adds the embedding of the last tokens' n-gram",
    "mix_in": "mixes the residual streams into the input of the mixer",
    "mix_mlp": "mixes the residual streams into the input of the experts",
    "gdn": "gated delta rule: convolution window and recurrent state",
    "qsa.project": "makes queries, keys, values and index keys of the new positions",
    "qsa.partition": "cuts the run into complete groups and a raw tail; refuses a hole",
    "qsa.pool": "pools each complete group of index keys to one key",
    "qsa.select": "scores the groups and chooses the best for each query",
    "qsa.attend": "attends to the chosen groups and the raw tail",
    "moe.route": "chooses experts for each token",
    "moe.experts": "runs the chosen experts and the shared one",
}
OWNERS: Final = {
    "history": "which position is in which cell, for each sequence",
    "tokens": "token ids and lineage",
    "qsa.kv": "keys (normalised, not yet rotated) and values of each position",
    "qsa.index": "raw index key of each position",
    "qsa.groups": "pooled key of each complete group; rebuilt when the first position moves",
    "gdn.conv": "convolution window; needs a checkpoint to go back in time",
    "gdn.recurrent": "recurrent state; needs a checkpoint to go back in time",
    "ple.history": "the last token ids as n-gram context",
    "ple.conv": "convolution window of the n-gram embedding",
    "residual": "the four streams of the last token",
    "routes": "experts chosen for the last token",
    "logits": "logits of the last token",
    "saved": "named saved states",
}

FOREIGN_LAYER: Final = "one layer of a model that mlx-lm runs"


def of_owner(name: str) -> str:
    """The sentence for an owner; empty when unknown."""
    if name.startswith("layer."):
        return f"cache of {FOREIGN_LAYER}"
    return OWNERS.get(name, "")


def of_stage(name: str) -> str:
    """The sentence for a stage by its full name (`layer.3.qsa.select`); empty when unknown."""
    parts = name.split(".")
    if parts[0] == "layer" and len(parts) == 2:
        return FOREIGN_LAYER
    short = ".".join(parts[2:]) if parts[0] == "layer" and len(parts) > 2 else name
    return STAGES.get(short, "")
