"""One published message: its number, and its events whatever their encoding.

Three encodings exist and may mix: events as arrays, events as maps, everything as maps. Fields
that are not known are ignored; a payload that does not fit is undecodable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

DEFAULT_TIER: Final = "GPU"
MAX_BLOCK = 1 << 31
STORED_FIELDS: Final = (
    "block_hashes",
    "parent_block_hash",
    "token_ids",
    "block_size",
    "lora_id",
    "medium",
    "lora_name",
    "extra_keys",
    "group_idx",
    "kv_cache_spec_kind",
    "kv_cache_spec_sliding_window",
)
REMOVED_FIELDS: Final = ("block_hashes", "medium", "group_idx")


class Undecodable(Exception):
    """A payload does not hold a batch of events; says why."""


@dataclass(frozen=True, slots=True)
class Stored:
    hashes: tuple[int, ...]
    parent: int | None
    block_size: int
    tier: str
    group: int
    kind: str | None
    window: int | None


@dataclass(frozen=True, slots=True)
class Removed:
    hashes: tuple[int, ...]
    tier: str
    group: int


@dataclass(frozen=True, slots=True)
class Cleared:
    """Every block of the publisher is gone, in all groups and tiers."""


Event = Stored | Removed | Cleared


@dataclass(frozen=True, slots=True)
class Batch:
    """One message: wall clock in seconds, events in order, rank of the engine."""

    ts: float
    events: tuple[Event, ...]
    rank: int | None
    ignored: int = 0
    """Events of a type that is not known."""


def decode(payload: bytes) -> Batch:
    """The batch of a payload. Raises: Undecodable."""
    try:
        value = msgspec.msgpack.decode(payload)
    except (msgspec.DecodeError, RecursionError, ValueError, TypeError, MemoryError) as error:
        raise Undecodable(f"no msgpack value: {str(error)[:80]}") from None
    if isinstance(value, dict):
        rank = value.get("data_parallel_rank", value.get("attn_dp_rank"))
        value = [value.get("ts"), value.get("events"), rank]
    if not isinstance(value, list) or len(value) < 2:
        raise Undecodable("no batch")
    ts, events, rank = value[0], value[1], value[2] if len(value) > 2 else None
    if isinstance(ts, bool) or not isinstance(ts, (int, float)) or not isinstance(events, list):
        raise Undecodable("a batch without a time or without events")
    decoded = [event_of(event) for event in events]
    known = tuple(event for event in decoded if event is not None)
    rank = rank if type(rank) is int else None
    return Batch(float(ts), known, rank, len(decoded) - len(known))


def event_of(value: Any) -> Event | None:
    """One event; None for a type that is not known."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        name = value[0]
        fields = REMOVED_FIELDS if name == "BlockRemoved" else STORED_FIELDS
        value = dict(zip(fields, value[1:], strict=False))
    elif isinstance(value, dict) and isinstance(value.get("type"), str):
        name = value["type"]
    else:
        raise Undecodable("an event without a name")
    if name == "AllBlocksCleared":
        return Cleared()
    if name == "BlockRemoved":
        return Removed(hashes_of(value), tier_of(value), group_of(value))
    if name != "BlockStored":
        return None
    parent, size = value.get("parent_block_hash"), value.get("block_size")
    if type(size) is not int or not 0 < size < MAX_BLOCK:
        raise Undecodable("a stored event without a block size")
    kind, window = value.get("kv_cache_spec_kind"), value.get("kv_cache_spec_sliding_window")
    return Stored(
        hashes=hashes_of(value),
        parent=None if parent is None else hash_of(parent),
        block_size=size,
        tier=tier_of(value),
        group=group_of(value),
        kind=kind if isinstance(kind, str) else None,
        window=window if type(window) is int and window > 0 else None,
    )


def hashes_of(value: dict[Any, Any]) -> tuple[int, ...]:
    hashes = value.get("block_hashes")
    if not isinstance(hashes, list):
        raise Undecodable("an event without block hashes")
    return tuple(hash_of(entry) for entry in hashes)


def hash_of(value: Any) -> int:
    """A block's name: an integer, or the last eight bytes of a digest, big-endian."""
    if type(value) is int:
        return value
    if isinstance(value, bytes) and value:
        return int.from_bytes(value[-8:], "big")
    raise Undecodable("a block hash that is neither a number nor bytes")


def tier_of(value: dict[Any, Any]) -> str:
    medium = value.get("medium")
    return medium[:64] if isinstance(medium, str) and medium else DEFAULT_TIER


def group_of(value: dict[Any, Any]) -> int:
    group = value.get("group_idx")
    return group if type(group) is int else 0
