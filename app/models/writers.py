"""Which chunk wrote a position, and with which token id; followed op by op. No Qt."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from engine.snapshot import Record


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of positions that one record wrote."""

    start: int
    stop: int
    record: int
    tokens: tuple[int, ...] = ()
    """One id a position, empty where the op named none."""

    def moved(self, delta: int) -> Piece:
        """The same at other positions."""
        return Piece(self.start + delta, self.stop + delta, self.record, self.tokens)

    def clipped(self, start: int, stop: int) -> Piece | None:
        """The part in [start, stop)."""
        a, b = max(start, self.start), min(stop, self.stop)
        if a >= b:
            return None
        return Piece(a, b, self.record, self.tokens[a - self.start : b - self.start])


@dataclass(slots=True)
class Writers:
    """Pieces of every sequence, kept up to date by its records."""

    pieces: dict[int, list[Piece]] = field(default_factory=dict)
    slots: dict[str, list[Piece]] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Follow one record; a refused or failed op changes nothing."""
        if record.outcome != "ok":
            return
        self._apply(_fields(record.op_json), record)
        bounds = {view.seq: (view.start, view.stop) for view in record.sequences}
        for seq, pieces in list(self.pieces.items()):
            start, stop = bounds.get(seq, (0, 0))
            if pieces and start <= pieces[0].start and pieces[-1].stop <= stop:
                continue  # what an append does; pieces are kept in the order of positions
            kept = (piece.clipped(start, stop) for piece in self.pieces[seq])
            self.pieces[seq] = [piece for piece in kept if piece is not None]

    def _apply(self, op: dict[str, Any], record: Record) -> None:
        name = op.get("op", record.op)
        seq = int(op.get("seq", record.seq))
        if name == "transaction":
            for inner in op.get("ops", ()):
                self._apply(inner, record)
        elif name == "shift":
            delta = int(op.get("delta", 0))
            self.pieces[seq] = [p.moved(delta) for p in self.pieces.get(seq, [])]
        elif name in ("fork", "copy"):
            source, target = int(op.get("src", seq)), int(op.get("dst", seq))
            low = op.get("start") or 0
            high = 2**31 if op.get("stop") is None else int(op["stop"])
            cut = (p.clipped(low, high) for p in self.pieces.get(source, []))
            self.pieces.setdefault(target, []).extend(p for p in cut if p is not None)
        elif name == "save":
            self.slots[str(op.get("slot"))] = list(self.pieces.get(seq, []))
        elif name == "restore":
            self.pieces[seq] = list(self.slots.get(str(op.get("slot")), []))
        elif name == "reset":
            self.pieces[seq] = []
        if name == "append" and record.positions_written is not None and record.seq == seq:
            start, stop = record.positions_written
            named = op.get("tokens")
            tokens = tuple(named) if isinstance(named, list) else ()
            piece = Piece(start, stop, record.number, tokens if len(tokens) == stop - start else ())
            self.pieces.setdefault(seq, []).append(piece)

    def at(self, seq: int, position: int) -> Piece | None:
        """The piece that holds a position."""
        for piece in reversed(self.pieces.get(seq, [])):
            if piece.start <= position < piece.stop:
                return piece
        return None

    def words(self, seq: int, position: int) -> str:
        """`token 57, written by event 12`; empty where nothing is known."""
        piece = self.at(seq, position)
        if piece is None:
            return ""
        token = f"token {piece.tokens[position - piece.start]}, " if piece.tokens else ""
        return f"{token}written by event {piece.record}"


def _fields(op_json: str) -> dict[str, Any]:
    try:
        value = json.loads(op_json) if op_json else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
