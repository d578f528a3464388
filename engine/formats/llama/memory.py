"""Which sections a llama.cpp file may have: one table of memory kinds, one of architectures.

A file does not say how many sections follow, so a reader tries the lists of the architecture, or
all of them where the file does not name one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Slot:
    """One section in a list: its role and whether V blocks follow (None: either)."""

    role: str
    """`attention`, `attention-swa`, `index`, `recurrent`, `second` (window or index) or `dsv4`."""
    values: bool | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """A kind of memory: its name and its sections in file order."""

    name: str
    slots: tuple[Slot, ...]


FULL, KEYS, ANY = Slot("attention", True), Slot("attention", False), Slot("attention")
WINDOW, WINDOW_ANY = Slot("attention-swa", True), Slot("attention-swa")
INDEX_KEYS, INDEX_FULL = Slot("index", False), Slot("index", True)
REC = Slot("recurrent")

PLAIN: Final = (Memory("kv", (FULL,)), Memory("kv+swa", (FULL, WINDOW)))
WINDOWED: Final = (Memory("kv+swa", (FULL, WINDOW)),)
LATENT: Final = (Memory("kv", (ANY,)), Memory("kv+swa", (ANY, WINDOW_ANY)))
MSA: Final = (Memory("kv+index", (FULL, INDEX_FULL)),)
DSA: Final = (Memory("kv+index", (KEYS, INDEX_KEYS)),)
DSA_OR_LATENT: Final = (*DSA, *LATENT)
DSA_WINDOW: Final = (Memory("kv+index+swa", (KEYS, INDEX_KEYS, WINDOW_ANY)),)
RECURRENT: Final = (Memory("recurrent", (REC,)),)
HYBRID: Final = (
    Memory("hybrid", (FULL, REC)),
    Memory("hybrid+swa", (FULL, WINDOW, REC)),
)
HYBRID_LATENT: Final = (
    Memory("hybrid", (ANY, REC)),
    Memory("hybrid+swa", (ANY, WINDOW_ANY, REC)),
)
HYBRID_INDEX: Final = (Memory("hybrid+index", (ANY, REC, INDEX_KEYS)),)
DSV4: Final = (Memory("dsv4", (Slot("dsv4"),)),)

UNKNOWN: Final = (
    # where no architecture is known, the simpler memory first
    Memory("kv", (ANY,)),
    Memory("kv+?", (ANY, Slot("second"))),
    Memory("kv+index+swa", (KEYS, INDEX_KEYS, WINDOW_ANY)),
    Memory("recurrent", (REC,)),
    Memory("hybrid", (ANY, REC)),
    Memory("hybrid+swa", (ANY, WINDOW_ANY, REC)),
    Memory("hybrid+index", (ANY, REC, INDEX_KEYS)),
    *DSV4,
)

PLAIN_NAMES: Final = (
    "llama llama4 deci falcon grok gpt2 gptj gptneox mpt baichuan starcoder refact bloom "
    "stablelm qwen qwen2 qwen2moe qwen2vl qwen3 qwen3moe qwen3vl qwen3vlmoe phi2 phi3 phimoe "
    "plamo plamo3 codeshell orion internlm2 minicpm minicpm3 gemma starcoder2 xverse command-r "
    "dbrx olmo olmo2 olmoe openelm arctic deepseek chatglm glm4 glm4moe bitnet jais nemotron "
    "exaone exaone4 granite granitemoe chameleon bailingmoe bailingmoe2 bailingmoe3 dots1 "
    "arcee ernie4_5 ernie4_5-moe hunyuan-moe hunyuan-dense hunyuan_vl smollm3 dream llada "
    "llada-moe seed_oss grovemoe apertus minimax-m2 cogvlm pangu-embedded afmoe mistral3 "
    "paddleocr"
)
WINDOWED_NAMES: Final = "gemma2 gemma3 gemma3n gemma4 gpt-oss cohere2"
RECURRENT_NAMES: Final = "mamba mamba2 rwkv6 rwkv7 arwkv7 rwkv6qwen2"
HYBRID_NAMES: Final = (
    "lfm2 lfm2moe jamba falcon-h1 granitehybrid plamo2 nemotron_h nemotron_h_moe qwen3next "
    "qwen35 qwen35moe minimax-01"
)

ARCHITECTURES: Final[dict[str, tuple[Memory, ...]]] = {
    **dict.fromkeys(PLAIN_NAMES.split(), PLAIN),
    **dict.fromkeys(WINDOWED_NAMES.split(), WINDOWED),
    **dict.fromkeys(("deepseek2", "mistral4", "plm"), LATENT),
    "minimax-m3": MSA,
    **dict.fromkeys(("deepseek32", "glm-dsa"), DSA),
    "hy_v4": DSA_OR_LATENT,
    "dots3note": DSA_WINDOW,
    **dict.fromkeys(RECURRENT_NAMES.split(), RECURRENT),
    **dict.fromkeys(HYBRID_NAMES.split(), HYBRID),
    "kimi-linear": HYBRID_LATENT,
    **dict.fromkeys(("qwen4exp", "glm5-next"), HYBRID_INDEX),
    "deepseek4": DSV4,
}

PLE_ARCHITECTURES: Final = frozenset({"qwen4exp"})
"""Recurrent sections of these may hold n-gram history blocks between the R blocks."""


def lists_for(architecture: str | None) -> tuple[Memory, ...]:
    """Section lists to try; all of them for an architecture that this table does not name."""
    return UNKNOWN if architecture is None else ARCHITECTURES.get(architecture, UNKNOWN)


def may_have_history(architecture: str | None) -> bool:
    return (
        architecture is None
        or architecture not in ARCHITECTURES
        or (architecture in PLE_ARCHITECTURES)
    )
