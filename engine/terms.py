"""The field's words as types: positions, cells, stages, kinds and reasons.

Owns the vocabulary that every layer shares. Knows no array library and no state.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NewType

Position = NewType("Position", int)
"""A token's place in its sequence's timeline, 0 to 2^31 - 1."""

Cell = NewType("Cell", int)
"""A physical place along a bank's time axis, counted from 0."""

SeqId = NewType("SeqId", int)
TxnId = NewType("TxnId", int)

MAX_POSITION: Final = 2**31 - 1
GROUP_SIZE: Final = 4


class TxnStage(StrEnum):
    """The stages of every transaction, in order."""

    RESERVE = "reserve"
    LOAD = "load"
    WRITE = "write"
    COMPRESS = "compress"
    INDEX = "index"
    VERIFY = "verify"
    PUBLISH = "publish"


class FailKind(StrEnum):
    """How a stage can fail."""

    STRUCTURAL = "structural"
    NONFINITE = "nonfinite"
    OOM = "oom"
    COMMAND = "command"
    STATUS = "status"
    CANCEL = "cancel"


class Reason(StrEnum):
    """Why a request was refused; the value is the word that scenarios and JSON use."""

    DUPLICATE = "duplicate"
    NOT_CONSECUTIVE = "not-consecutive"
    NEGATIVE = "negative"
    TOO_LARGE = "too-large"
    OVERLAP = "overlap"
    GAP = "gap"
    CAPACITY = "capacity"
    OUT_OF_RANGE = "out-of-range"
    INTERNAL_HOLE = "internal-hole"
    DESTINATION_NOT_EMPTY = "destination-not-empty"
    UNKNOWN_SLOT = "unknown-slot"
    # only where a model gives the op a meaning, or the session is not free to take it
    NOT_DERIVABLE = "not-derivable"
    NO_CHECKPOINT = "no-checkpoint"
    BUSY = "busy"
    OOM = "oom"
    TOKEN = "token"
