"""Live events over ZMQ: subscribe to publishers, fill gaps from their replay sockets.

One SUB socket an address. Delivery on one connection is in order, so a gap is a loss unless a
replay socket can fill it; then what follows is held back until the replay has ended. A DEALER
socket asks for replays, since REQ would get the first message of the answer only.
"""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass, field
from types import TracebackType

import zmq

from engine.errors import Unreadable
from engine.formats.kv_events.messages import Batch, Undecodable, decode
from engine.formats.kv_events.report import report_of
from engine.formats.kv_events.streams import Streams
from engine.formats.options import Options
from engine.formats.report import Report

NUMBER = struct.Struct(">Q")
END_NUMBER = 2**64 - 1
REPLAY_PATIENCE_S = 2.0
"""A replay that is silent for so long has ended."""
MESSAGES_A_POLL = 4096
HIGH_WATER = 100_000


@dataclass(slots=True)
class Endpoint:
    """One publisher's address, and the replay that is under way."""

    address: str
    live: zmq.Socket[bytes]
    replay: zmq.Socket[bytes] | None
    replay_from: int | None = None
    """First number that was asked for; None while no replay is under way."""
    heard_at: float = 0.0
    malformed: int = 0
    """Messages whose frames did not fit."""


@dataclass(slots=True)
class Watch:
    """Subscriptions to several addresses. Use it in a `with` statement."""

    addresses: tuple[str, ...]
    replays: tuple[str, ...] = ()
    """Replay addresses, in the order of `addresses`; fewer are fine."""
    options: Options = field(default_factory=Options)
    streams: Streams = field(default_factory=Streams)
    endpoints: list[Endpoint] = field(default_factory=list)
    context: zmq.Context[zmq.Socket[bytes]] = field(default_factory=zmq.Context)

    def __enter__(self) -> Watch:
        """Connect. Raises: Unreadable for an address that can't be."""
        self.streams.last_copy_only = self.options.last_copy_only
        try:
            for number, address in enumerate(self.addresses):
                replay = self.replays[number] if number < len(self.replays) else None
                self.endpoints.append(self.connect(address, replay))
        except zmq.ZMQError as error:
            self.close()
            expected = "such as tcp://127.0.0.1:5557 or ipc:///tmp/events"
            raise Unreadable(address, "no address to watch", expected, error.strerror) from None
        for endpoint in self.endpoints:
            self.ask(endpoint, 0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.context.destroy(linger=0)

    def connect(self, address: str, replay: str | None) -> Endpoint:
        live = self.context.socket(zmq.SUB)
        live.setsockopt(zmq.RCVHWM, HIGH_WATER)
        live.setsockopt(zmq.SUBSCRIBE, b"")
        live.connect(address)
        dealer = None
        if replay is not None:
            dealer = self.context.socket(zmq.DEALER)
            dealer.setsockopt(zmq.RCVHWM, HIGH_WATER)
            dealer.connect(replay)
        return Endpoint(address, live, dealer)

    def ask(self, endpoint: Endpoint, first: int) -> None:
        """Ask for a replay from a number on, if there is a replay socket and none under way."""
        if endpoint.replay is None or endpoint.replay_from is not None:
            return
        try:
            endpoint.replay.send_multipart([b"", NUMBER.pack(first)], zmq.NOBLOCK)
        except zmq.Again:
            return
        endpoint.replay_from, endpoint.heard_at = first, time.monotonic()

    def poll(self, timeout_s: float) -> bool:
        """Take what arrives within `timeout_s`; says whether anything changed."""
        poller = zmq.Poller()
        for endpoint in self.endpoints:
            poller.register(endpoint.live, zmq.POLLIN)
            if endpoint.replay is not None:
                poller.register(endpoint.replay, zmq.POLLIN)
        ready = dict(poller.poll(int(timeout_s * 1000)))
        changed = False
        for endpoint in self.endpoints:
            if endpoint.replay is not None and endpoint.replay in ready:
                changed |= self.take_replay(endpoint)
            if endpoint.live in ready:
                changed |= self.take_live(endpoint)
            waiting = endpoint.replay_from is not None
            if waiting and time.monotonic() - endpoint.heard_at > REPLAY_PATIENCE_S:
                changed |= self.end_replay(endpoint)
        return changed

    def take_live(self, endpoint: Endpoint) -> bool:
        for frames in received(endpoint.live):
            parts = live_parts(frames)
            if parts is None:
                endpoint.malformed += 1
                continue
            number, payload = parts
            publisher, became = self.streams.feed(endpoint.address, number, batch_of(payload))
            if became in ("held", "restart") and publisher.held:
                self.ask(endpoint, publisher.next)
                if endpoint.replay is None:
                    publisher.give_up()
        return True

    def take_replay(self, endpoint: Endpoint) -> bool:
        assert endpoint.replay is not None
        endpoint.heard_at = time.monotonic()
        for frames in received(endpoint.replay):
            parts = replay_parts(frames)
            if parts is None:
                endpoint.malformed += 1
            elif parts[0] == END_NUMBER:
                self.end_replay(endpoint)
            else:
                self.fill(endpoint, *parts)
        return True

    def fill(self, endpoint: Endpoint, number: int, payload: bytes) -> None:
        """A replayed message counts where it is new; the overlap with live ones is expected."""
        batch = batch_of(payload)
        publisher = self.streams.publisher(
            endpoint.address, batch.rank if batch is not None else None
        )
        if number >= publisher.next and number not in publisher.held:
            publisher.take(number, batch)

    def end_replay(self, endpoint: Endpoint) -> bool:
        """What the replay did not fill is lost."""
        endpoint.replay_from = None
        for publisher in self.streams.of(endpoint.address):
            publisher.give_up()
        return True

    def report(self) -> Report:
        """The present state of all publishers."""
        name = " ".join(self.addresses)
        return report_of(name, self.streams.ordered(), self.options.group_size)[0]


def received(socket: zmq.Socket[bytes]) -> list[list[bytes]]:
    """Messages that are there now."""
    messages: list[list[bytes]] = []
    while len(messages) < MESSAGES_A_POLL:
        try:
            messages.append(socket.recv_multipart(zmq.NOBLOCK))
        except zmq.Again:
            break
    return messages


def live_parts(frames: list[bytes]) -> tuple[int, bytes] | None:
    """Number and payload of `[topic, seq, payload]`."""
    if len(frames) != 3 or len(frames[1]) != NUMBER.size:
        return None
    return NUMBER.unpack(frames[1])[0], frames[2]


def replay_parts(frames: list[bytes]) -> tuple[int, bytes] | None:
    """Number and payload of `[seq, payload]` or `[topic, seq, payload]` behind a delimiter."""
    if len(frames) > 2 and not frames[0]:
        frames = frames[1:]
    if len(frames) == 3:
        frames = frames[1:]
    if len(frames) != 2 or len(frames[0]) != NUMBER.size:
        return None
    return NUMBER.unpack(frames[0])[0], frames[1]


def batch_of(payload: bytes) -> Batch | None:
    try:
        return decode(payload)
    except Undecodable:
        return None
