"""Live events from real sockets: order, replay in both framings, losses, restarts, many ranks."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
import zmq

from engine.errors import Unreadable
from engine.formats.kv_events.live import Watch
from engine.formats.report import Report

END = b"\xff" * 8
PATIENCE = 200  # polls of 50 ms until something that must come has come


def stored(hashes: list[int], parent: int | None, size: int = 8) -> dict[str, Any]:
    tokens = list(range(len(hashes) * size))
    return {
        "type": "BlockStored",
        "block_hashes": hashes,
        "parent_block_hash": parent,
        "token_ids": tokens,
        "block_size": size,
        "medium": "GPU",
    }


def removed(hashes: list[int]) -> dict[str, Any]:
    return {"type": "BlockRemoved", "block_hashes": hashes, "medium": "GPU"}


def payload(ts: float, events: list[Any], rank: int | None = None) -> bytes:
    return msgspec.msgpack.encode([ts, events, rank])


class Server:
    """A publisher as the engines have them: PUB, and ROUTER for replays."""

    def __init__(self, context: Any, framing: str = "plain") -> None:
        self.pub = context.socket(zmq.XPUB)
        self.address = f"tcp://127.0.0.1:{self.pub.bind_to_random_port('tcp://127.0.0.1')}"
        self.router = context.socket(zmq.ROUTER)
        self.replay = f"tcp://127.0.0.1:{self.router.bind_to_random_port('tcp://127.0.0.1')}"
        self.framing = framing
        self.stored: list[tuple[int, bytes]] = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.answer)

    def answer(self) -> None:
        while not self.stop.is_set():
            if not self.router.poll(20):
                continue
            who, _, first = self.router.recv_multipart()
            (number,) = struct.unpack(">Q", first)
            topic = [b"kv"] if self.framing == "topic" else []
            for own, data in self.stored:
                if own >= number:
                    self.router.send_multipart([who, b"", *topic, struct.pack(">Q", own), data])
            end = [b""] if self.framing == "topic" else []
            self.router.send_multipart([who, b"", *end, END, b""])

    def wait(self) -> None:
        """Until the subscriber is there; messages before are lost, as with any PUB socket."""
        assert self.pub.poll(10_000)
        self.pub.recv()

    def send(self, number: int, data: bytes, keep: bool = True, publish: bool = True) -> None:
        if keep:
            self.stored.append((number, data))
        if publish:
            self.pub.send_multipart([b"kv", struct.pack(">Q", number), data])


@contextmanager
def serving(n: int = 1, framing: str = "plain") -> Iterator[list[Server]]:
    context: Any = zmq.Context()
    servers = [Server(context, framing) for _ in range(n)]
    for server in servers:
        server.thread.start()
    try:
        yield servers
    finally:
        for server in servers:
            server.stop.set()
            server.thread.join()
        context.destroy(linger=0)


def until(watch: Watch, done: Any) -> Report:
    """Poll until the report satisfies `done`."""
    for _ in range(PATIENCE):
        watch.poll(0.05)
        report = watch.report()
        if done(report):
            return report
    raise AssertionError(f"never came: {watch.report().to_json()}")


def verdict(wanted: str) -> Any:
    return lambda report: report.verdict == wanted and report.sequences


def test_a_hole_shows_when_the_parent_goes() -> None:
    with serving() as (server,), Watch((server.address,)) as watch:
        server.wait()
        server.send(0, payload(1.0, [stored([11, 12, 13], None)]))
        report = until(watch, verdict("ok"))
        assert report.sequences[0].run == (0, 24)
        server.send(1, payload(2.0, [removed([12])]))
        report = until(watch, verdict("hole"))
        assert report.sequences[0].holes == ((8, 16),)
        assert report.sequences[0].usable == (0, 8)


def test_a_lost_message_is_said_and_is_no_hole() -> None:
    with serving() as (server,), Watch((server.address,)) as watch:
        server.wait()
        server.send(0, payload(1.0, [stored([11], None)]))
        server.send(2, payload(3.0, [stored([13], 12)]))
        report = until(watch, verdict("lost_events"))
        listed = report.to_json()["publishers"][0]
        assert listed["missing_seq"] == [[1, 1]]
        assert [code.value for code in report.codes] == ["lost_events"]


@pytest.mark.parametrize("framing", ["plain", "topic"])
def test_a_replay_fills_what_a_late_subscriber_missed(framing: str) -> None:
    with serving(framing=framing) as (server,):
        server.send(0, payload(1.0, [stored([11, 12], None)]), publish=False)
        server.send(1, payload(2.0, [stored([13], 12)]), publish=False)
        with Watch((server.address,), (server.replay,)) as watch:
            server.wait()
            server.send(2, payload(3.0, [stored([14], 13)]))
            report = until(watch, lambda own: own.sequences and own.sequences[0].run == (0, 32))
            assert report.verdict == "ok"
            assert report.to_json()["publishers"][0]["missing_seq"] == []


def test_a_gap_is_filled_by_a_later_replay() -> None:
    with serving() as (server,), Watch((server.address,), (server.replay,)) as watch:
        server.wait()
        server.send(0, payload(1.0, [stored([11], None)]))
        until(watch, verdict("ok"))
        server.send(1, payload(2.0, [stored([12], 11)]), publish=False)
        server.send(2, payload(3.0, [stored([13], 12)]))
        report = until(watch, lambda own: own.sequences and own.sequences[0].run == (0, 24))
        assert report.verdict == "ok"


def test_a_replay_that_is_too_short_leaves_the_loss() -> None:
    with serving() as (server,), Watch((server.address,), (server.replay,)) as watch:
        server.wait()
        server.send(5, payload(1.0, [stored([11], None)]), keep=False)
        report = until(watch, verdict("lost_events"))
        assert report.to_json()["publishers"][0]["missing_seq"] == [[0, 4]]


def test_a_restart_forgets_the_old_blocks() -> None:
    with serving() as (server,), Watch((server.address,)) as watch:
        server.wait()
        for number in range(3):
            server.send(number, payload(1.0 + number, [stored([20 + number], None)]))
        until(watch, lambda own: len(own.sequences) == 3)
        server.send(0, payload(9.0, [stored([31], None)]))
        report = until(watch, lambda own: len(own.sequences) == 1)
        assert report.sequences[0].id == "31"
        assert report.to_json()["publishers"][0]["restarts"] == 1
        assert report.verdict == "ok"


def test_ranks_and_addresses_have_their_own_numbers() -> None:
    with serving(2) as servers:
        addresses = tuple(server.address for server in servers)
        with Watch(addresses) as watch:
            for rank, server in enumerate(servers):
                server.wait()
                server.send(0, payload(1.0, [stored([11, 12], None)], rank))
            servers[1].send(1, payload(2.0, [removed([11])], 1))
            report = until(watch, verdict("hole"))
            publishers = {own["port"]: own for own in report.to_json()["publishers"]}
            assert publishers[addresses[0]]["chains"][0]["holes"] == []
            assert publishers[addresses[1]]["chains"][0]["holes"] == [[0, 7]]


def test_garbage_is_undecodable_and_does_not_stop_the_watch() -> None:
    with serving() as (server,), Watch((server.address,)) as watch:
        server.wait()
        server.send(0, b"\xc1\xff not msgpack")
        server.pub.send_multipart([b"only", b"frames"])
        server.send(1, payload(2.0, [stored([11], None)]))
        report = until(watch, verdict("undecodable"))
        assert report.sequences[0].run == (0, 8)
        assert watch.endpoints[0].malformed == 1


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(Unreadable, match="no address"), Watch(("nonsense://here",)):
        pass
