"""The outer form of a llama.cpp file: magic, version, tokens, architecture; then the memory."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from engine.formats.llama.memory import ARCHITECTURES
from engine.formats.llama.readings import BEFORE, NOW, Era, Finder, Reading
from engine.formats.llama.sections import U32, U64, Rules
from engine.formats.positions import Ints
from engine.formats.source import Damaged, Source

SESSION_MAGIC, SEQUENCE_MAGIC, RAW_SEQUENCE_MAGIC = 0x6767736E, 0x67677371, 0xAF143CD8
SESSION_VERSION, SEQUENCE_VERSION = 10, 3
I32 = struct.Struct("<i")
NAME_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+")
SERVER_HEAD = 3
"""Words before the tokens in llama-server's block: -1, its version, the number of tokens."""


@dataclass(frozen=True, slots=True)
class Container:
    """Header of a file and every reading of its memory."""

    kind: str
    """`session`, `sequence`, `raw-context` or `raw-sequence`."""
    version: int | None
    architecture: str | None
    n_tokens: int | None
    n_media: int
    seq: int | None
    """Sequence id of a raw sequence blob."""
    readings: tuple[Reading, ...]
    remarks: tuple[str, ...] = ()


def first_word(source: Source) -> int:
    return U32.unpack_from(source.data)[0] if source.size >= 4 else -1


def is_llama_state(source: Source) -> bool:
    """Magic of a session, sequence or raw sequence, or a raw context's architecture name."""
    word = first_word(source)
    if word in (SESSION_MAGIC, SEQUENCE_MAGIC, RAW_SEQUENCE_MAGIC):
        return True
    if not 1 <= word <= 63:
        return False
    name = source.bytes(4, word)
    return len(name) > 0 and all(byte in NAME_BYTES for byte in name)


def read_container(source: Source, architecture: str | None) -> Container:
    """Parse `source`; raises Damaged where no reading fits.

    Args:
        architecture: name that the user gave; a name in the file wins over it.
    """
    word = first_word(source)
    if word == SESSION_MAGIC:
        return read_session(source)
    if word == SEQUENCE_MAGIC:
        return read_sequence(source, architecture)
    if word == RAW_SEQUENCE_MAGIC:
        (seq,) = source.unpack(I32, 4, "a sequence id")
        if not 0 <= seq < 256:
            raise Damaged("structure", 4, "a sequence id of 0 to 255", str(seq))
        readings = find(source, 8, Rules(single=True), architecture, NOW + BEFORE)
        return Container("raw-sequence", None, architecture, None, 0, seq, readings)
    name, offset = read_name(source, 0)
    readings = find(source, offset, Rules(single=False), name, NOW + BEFORE)
    return Container("raw-context", None, name, None, 0, None, readings)


def read_session(source: Source) -> Container:
    version = checked_version(source, SESSION_VERSION)
    n_tokens, n_media, remarks, offset = read_tokens(source, 8)
    name, offset = read_name(source, offset)
    rules = Rules(single=False)
    if version == SESSION_VERSION:
        readings = find(source, offset, rules, name, NOW)
    else:
        readings = find_old_session(source, offset, rules, name)
    return Container("session", version, name, n_tokens, n_media, None, readings, remarks)


def read_sequence(source: Source, architecture: str | None) -> Container:
    version = checked_version(source, SEQUENCE_VERSION)
    n_tokens, n_media, remarks, offset = read_tokens(source, 8)
    eras = NOW if version == SEQUENCE_VERSION else BEFORE
    readings = find(source, offset, Rules(single=True), architecture, eras)
    return Container("sequence", version, architecture, n_tokens, n_media, None, readings, remarks)


def checked_version(source: Source, newest: int) -> int:
    """The version if it is the newest or the one before; the layout of others is not known."""
    (version,) = source.unpack(U32, 4, "a version")
    if version not in (newest, newest - 1):
        raise Damaged("version", 4, f"version {newest} or {newest - 1}", f"version {version}")
    return version


def read_name(source: Source, offset: int) -> tuple[str, int]:
    """ARCH block: the architecture's name and the byte behind it."""
    (count,) = source.unpack(U32, offset, "the length of an architecture name")
    if not 1 <= count <= 63:
        raise Damaged("structure", offset, "an architecture name of 1 to 63 bytes", str(count))
    source.need(offset + 4, count, "an architecture name")
    name = source.bytes(offset + 4, count)
    if not all(32 < byte < 127 for byte in name):
        raise Damaged("structure", offset + 4, "a printable architecture name", repr(name))
    return name.decode("ascii"), offset + 4 + count


def read_tokens(source: Source, offset: int) -> tuple[int, int, tuple[str, ...], int]:
    """TOKENS block: tokens, media, remarks, and the byte behind it."""
    (count,) = source.unpack(U32, offset, "a token count")
    if 4 * count > source.size - offset - 4:
        word = "structure" if count > 1 << 24 else "truncated"
        left = source.size - offset - 4
        raise Damaged(word, offset, f"tokens that fit into {left} bytes", f"{count} tokens")
    words: Ints = source.array("<i4", offset + 4, count).astype(np.int64)
    stop = offset + 4 + 4 * count
    if not count or words[0] != -1:
        return count, 0, (), stop
    n_tokens, n_media, remark = server_block(words, source.bytes(offset + 4, 4 * count))
    return n_tokens, n_media, (remark,) if remark else (), stop


def server_block(words: Ints, raw: bytes) -> tuple[int, int, str]:
    """Tokens, media and what is wrong with a llama-server token block; empty when it is sound."""
    if words.size < SERVER_HEAD:
        return 0, 0, "the llama-server token block ends in its header"
    version, n_tokens = int(words[1]), int(words[2])
    media_at = SERVER_HEAD + n_tokens
    if version != 1:
        return 0, 0, f"llama-server token block of version {version}, expected 1"
    if n_tokens < 0 or media_at >= words.size:
        return 0, 0, f"the llama-server token block says {n_tokens} tokens and holds fewer"
    n_media = int(words[media_at])
    offset = 4 * (media_at + 1 + n_media)
    if n_media < 0 or offset > len(raw):
        return n_tokens, 0, f"the llama-server token block says {n_media} media and holds fewer"
    for _ in range(n_media):
        if offset + 4 > len(raw):
            return n_tokens, n_media, "a medium of the llama-server token block is cut"
        offset += 4 + U32.unpack_from(raw, offset)[0]
    if not offset <= len(raw) < offset + 4:
        return n_tokens, n_media, "the media of the llama-server token block do not fill it"
    return n_tokens, n_media, ""


def find(
    source: Source, offset: int, rules: Rules, architecture: str | None, eras: tuple[Era, ...]
) -> tuple[Reading, ...]:
    """Every reading of the memory at `offset`; raises Damaged when there is none."""
    finder = Finder(source, rules, architecture)
    readings = finder.find(offset, eras)
    if readings:
        now = [reading for reading in readings if not reading.old]
        return tuple(now or readings)
    if offset == source.size and not rules.single and architecture not in ARCHITECTURES:
        return ()  # a model without a cache (an encoder) writes nothing here
    raise finder.failure(offset)


def find_old_session(source: Source, offset: int, rules: Rules, name: str) -> tuple[Reading, ...]:
    """Version 9: with and without the output, logits and embedding block of before 2026."""
    failures = []
    for start in (offset, after_outputs(source, offset)):
        try:
            return find(source, start, rules, name, BEFORE)
        except Damaged as failure:
            failures.append(failure)
    raise max(failures, key=lambda failure: failure.offset)


def after_outputs(source: Source, offset: int) -> int:
    """The byte behind a version 9 output block, or `offset` where none fits."""
    start = offset
    for counter, item in ((U32, 4), (U64, 4), (U64, 4)):
        if counter.size > source.size - offset:
            return start
        (count,) = counter.unpack_from(source.data, offset)
        offset += counter.size + count * item
        if offset > source.size:
            return start
    return offset
