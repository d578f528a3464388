"""Files that are known and not opened: pickles run code when loaded, others hold no cache."""

from __future__ import annotations

import re
import tomllib

from engine.formats.opened import Opened
from engine.formats.options import Options
from engine.formats.report import Code, Finding, Report
from engine.formats.source import Source

CONVERT = (
    "a pickle is not opened, since loading one runs code from the file; in your own process, where "
    "the cache is in memory, save its tensors with safetensors.torch.save_file: layers.N.keys and "
    "layers.N.values for each layer N, and in the metadata layers.N.class and "
    "layers.N.cumulative_length (resources/exporters/transformers_cache.py does it)"
)
OTHERS = (
    # first bytes, what it is
    (b"GGUF", "a GGUF model file, not the state of a cache"),
    (b"\x93NUMPY", "a NumPy array, not the state of a cache"),
    (b"\x89HDF", "an HDF5 file, not the state of a cache"),
)
OPS = re.compile(
    rb"""\A\s*\{[^\x00]*"ops"\s*:\s*\[|\A[^\x00{]*^(\[\[ops\]\]|ops\s*=\s*\[)""", re.MULTILINE
)
"""How a scenario in JSON or TOML begins."""
SCENARIO_HEAD = 1 << 16
ZIP, LEGACY_TORCH = b"PK\x03\x04", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."


def is_pickle(source: Source) -> bool:
    """A pickle, or a zip archive that torch.save would have made around one."""
    head = source.bytes(0, 16)
    if head.startswith(LEGACY_TORCH) or (head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05"):
        return len(head) > 1
    return head.startswith(ZIP)


def refuse_pickle(source: Source, options: Options) -> Opened:
    return Opened(refusal(source, "hf-transformers", CONVERT, "pickle"), source)


def is_other(source: Source) -> bool:
    return bool(_what_else(source))


def refuse_other(source: Source, options: Options) -> Opened:
    return Opened(refusal(source, None, _what_else(source), "magic"), source)


def _what_else(source: Source) -> str:
    """What a file is that is known and holds no cache; empty for any other."""
    for head, words in OTHERS:
        if source.bytes(0, len(head)) == head:
            return words
    if _begins_a_scenario(source.bytes(0, min(source.size, SCENARIO_HEAD))):
        return "a scenario, which `bankflip run` executes, not the state of a cache"
    return ""


def _begins_a_scenario(head: bytes) -> bool:
    """JSON with ops, or ops behind what is TOML; a text that shows an example is neither."""
    found = OPS.search(head)
    if found is None or found[1] is None:
        return found is not None
    try:
        tomllib.loads(head[: found.start(1)].decode())
    except (ValueError, RecursionError):
        return False
    return True


def refusal(source: Source, name: str | None, words: str, detail: str) -> Report:
    found = (Finding(Code.UNREADABLE, words, offset=0),)
    return Report(str(source.path), name, found, reason=words, detail=detail)
