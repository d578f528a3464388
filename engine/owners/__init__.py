"""`OWNERS`: everything persistent, in publish order. A new owner is one module plus one line."""

from __future__ import annotations

from typing import Final

from engine.owner import OwnerSpec
from engine.owners.fixed import FixedOwner
from engine.owners.groups import GroupOwner
from engine.owners.history import HistoryOwner
from engine.owners.positional import PositionalOwner
from engine.owners.saved import SavedOwner
from engine.owners.tokens import TokenOwner

OWNERS: Final = (
    OwnerSpec("history", HistoryOwner, unit="position", needs_model=False),
    OwnerSpec("tokens", TokenOwner, unit="position"),
    OwnerSpec("qsa.kv", PositionalOwner, unit="position"),
    OwnerSpec("qsa.index", PositionalOwner, unit="position"),
    OwnerSpec("qsa.groups", GroupOwner, unit="group"),
    OwnerSpec("gdn.conv", FixedOwner, unit="sequence"),
    OwnerSpec("gdn.recurrent", FixedOwner, unit="sequence"),
    OwnerSpec("ple.history", FixedOwner, unit="sequence"),
    OwnerSpec("ple.conv", FixedOwner, unit="sequence"),
    OwnerSpec("residual", FixedOwner, unit="sequence"),
    OwnerSpec("routes", FixedOwner, unit="sequence"),
    OwnerSpec("logits", FixedOwner, unit="sequence"),
    OwnerSpec("saved", SavedOwner, unit="slot", needs_model=False),
)
