"""Many publishers by endpoint and rank: each message goes to the stream that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.formats.kv_events.messages import Batch
from engine.formats.kv_events.publisher import Name, Publisher

MAX_PUBLISHERS = 1024
Key = tuple[Name, int | None]
"""Endpoint and data-parallel rank; each has its own numbering."""


@dataclass(slots=True)
class Streams:
    """Publishers of one recording or one watch."""

    last_copy_only: bool = False
    publishers: dict[Key, Publisher] = field(default_factory=dict)

    def feed(self, endpoint: Name, number: int, batch: Batch | None) -> tuple[Publisher, str]:
        """Give one message to its publisher; says which, and what became of it."""
        publisher = self.publisher(endpoint, batch.rank if batch is not None else None)
        return publisher, publisher.feed(number, batch)

    def publisher(self, endpoint: Name, rank: int | None) -> Publisher:
        own = [key for key in self.publishers if key[0] == endpoint]
        key: Key = (endpoint, rank)
        if rank is None and own:
            key = own[0]
        elif rank is not None and (endpoint, None) in self.publishers:
            # the first messages did not name the rank
            self.publishers[key] = self.publishers.pop((endpoint, None))
        if key not in self.publishers:
            if len(self.publishers) >= MAX_PUBLISHERS:
                return next(iter(self.publishers.values()))
            name = endpoint if endpoint is not None or rank is None else f"rank {rank}"
            self.publishers[key] = Publisher(name, self.last_copy_only)
        return self.publishers[key]

    def of(self, endpoint: Name) -> list[Publisher]:
        return [own for key, own in self.publishers.items() if key[0] == endpoint]

    def ordered(self) -> list[Publisher]:
        """Ports by number, then names, then ranks."""
        return [self.publishers[key] for key in sorted(self.publishers, key=order)]


def order(key: Key) -> tuple[bool, int, str, int]:
    endpoint, rank = key
    number = endpoint if isinstance(endpoint, int) else 0
    return not isinstance(endpoint, int), number, str(endpoint), rank or 0
