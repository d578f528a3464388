"""The client hands on what it hears and loses no record; its thread begins and ends."""

from __future__ import annotations

import threading

import pytest

from app.client import Client
from app.worker import EngineThread
from engine.commands import Do, Pause, SetChunk
from engine.events import FeedChanged, SessionOpened, Trouble
from engine.progress import CancelToken, Progress
from tests.app import values


@pytest.fixture
def client(qapp):
    client = Client()
    yield client
    client.stop()


def test_snapshots_are_merged_and_records_are_not(client: Client) -> None:
    seen, records = [], []
    client.snapshot_changed.connect(lambda s: seen.append(s.number))
    client.record_added.connect(lambda r: records.append(r.number))
    for n in range(50):
        client.receive(0, values.snapshot(values.sequence(0, 0, n), number=n))
        client.receive(0, values.record(n))
    client.deliver_now()
    assert seen == [49]
    assert records == list(range(50))
    assert [r.number for r in client.records] == list(range(50))


def test_delivery_comes_by_itself_and_in_order(client: Client, qtbot) -> None:
    heard: list[object] = []
    client.heard.connect(heard.append)
    bodies = [Trouble("a", "one"), values.record(1), Trouble("b", "two")]
    for body in bodies:
        client.receive(0, body)
    assert heard == []
    qtbot.waitUntil(lambda: len(heard) == 3)
    assert heard == bodies


def test_answers_carry_the_ticket_of_their_command(client: Client) -> None:
    answered: list[tuple[int, object]] = []
    client.answered.connect(lambda ticket, body: answered.append((ticket, body)))
    ticket = client.send(Pause())
    client.receive(ticket, Trouble("Pause", "no"))
    client.deliver_now()
    assert answered == [(ticket, Trouble("Pause", "no"))]
    assert client.send(Pause()) == ticket + 1


def test_a_new_session_forgets_the_old_journal_and_time_travel(client: Client) -> None:
    client.receive(0, values.record(1, values.sequence(0, 0, 4)))
    client.deliver_now()
    client.show(client.records[0])
    assert client.sequences == (values.sequence(0, 0, 4),)
    client.receive(1, SessionOpened("m", "cpu", (), (), ()))
    client.deliver_now()
    assert client.records == []
    assert client.shown is None


def test_a_capture_can_be_looked_at_but_is_no_session(client: Client) -> None:
    records = [values.record(n, values.sequence(0, 0, n)) for n in (1, 2)]
    client.adopt(values.snapshot(values.sequence(0, 0, 2)), records, "file")
    assert client.offline
    assert client.session is not None
    assert [r.number for r in client.records] == [1, 2]
    client.close()
    assert not client.offline
    assert client.session is None


class EchoDriver:
    """A driver that notes in which thread it is used."""

    def __init__(self, emit, cancel: CancelToken) -> None:
        self.emit, self.cancel, self.left = emit, cancel, 0
        self.threads = {threading.get_ident()}
        self.closed = False
        EchoDriver.last = self

    @property
    def has_work(self) -> bool:
        return self.left > 0

    def handle(self, command, ticket: int = 0) -> None:
        self.threads.add(threading.get_ident())
        if isinstance(command, SetChunk):
            self.left = command.n_tokens
        elif isinstance(command, Do):
            raise RuntimeError("a bug of the driver")
        else:
            self.emit(ticket, Trouble("echo", type(command).__name__))

    def turn(self) -> None:
        self.threads.add(threading.get_ident())
        self.left -= 1
        self.emit(0, Progress(self.left, 0, "turn"))
        if self.cancel.is_set():
            self.left = 0

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.closed = True


@pytest.fixture
def thread(qapp):
    thread = EngineThread(CancelToken(), EchoDriver)
    thread.heard = []
    thread.told.connect(lambda ticket, body: thread.heard.append((ticket, body)))
    yield thread
    thread.stop()


def test_the_driver_lives_and_dies_in_one_other_thread(thread: EngineThread, qtbot) -> None:
    thread.ask(7, Pause())
    thread.start()
    qtbot.waitUntil(lambda: (7, Trouble("echo", "Pause")) in thread.heard)
    thread.ask(8, SetChunk(30))
    qtbot.waitUntil(lambda: sum(isinstance(b, Progress) for _, b in thread.heard) == 30)
    thread.stop()
    driver = EchoDriver.last
    assert driver.closed
    assert len(driver.threads) == 1
    assert threading.get_ident() not in driver.threads


def test_no_command_is_lost_however_many_come_at_once(thread: EngineThread, qtbot) -> None:
    thread.start()
    for n in range(500):
        thread.ask(n, Pause())
    qtbot.waitUntil(lambda: len(thread.heard) == 500)
    assert [ticket for ticket, _ in thread.heard] == list(range(500))


def test_a_bug_in_the_driver_is_told_and_the_thread_lives(thread, qtbot, caught) -> None:
    thread.start()
    thread.ask(3, Do(op=None))
    qtbot.waitUntil(lambda: bool(thread.heard) and bool(caught))
    assert "a bug of the driver" in thread.heard[0][1].sentence
    assert "RuntimeError: a bug of the driver" in caught[0]
    thread.ask(4, Pause())
    qtbot.waitUntil(lambda: (4, Trouble("echo", "Pause")) in thread.heard)


def test_stopping_cancels_work_in_flight(thread: EngineThread, qtbot) -> None:
    thread.start()
    thread.ask(1, SetChunk(10**9))
    qtbot.waitUntil(lambda: len(thread.heard) > 10)
    thread.stop()
    assert thread.isFinished()


def test_feed_is_kept(client: Client) -> None:
    client.receive(0, FeedChanged(((0, 5),), True, 8))
    client.deliver_now()
    assert client.feed.running
    assert not client.is_quiet
