"""How long the run map paints with a million positions, and how the window feels meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

N_POSITIONS = 1_000_000
N_HOLES = 2_000
PAINT_SIZE = (1600, 300)
N_FRAMES = 300
LATENCY_S = 8.0
BEAT_MS = 2
FRAME_MS = 16.0
IDLE = "the same loop with an empty window and no engine"


def _application() -> Any:
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtWidgets import QApplication

    from app import theme

    application = QApplication.instance() or QApplication(["bankflip"])
    assert isinstance(application, QApplication)
    theme.apply(application, "dark")
    return application


def _share(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def paint() -> list[Mapping[str, Any]]:
    """CPU time of one frame over a pan and zoom from the whole run down to single positions."""
    application = _application()
    from app.models.foreign import track_of_ranges
    from app.views.run_detail import RunDetail

    gap = N_POSITIONS // N_HOLES
    live = [(n * gap, (n + 1) * gap - 1) for n in range(N_HOLES)]
    widget = RunDetail()
    widget.resize(*PAINT_SIZE)
    widget.set_track(track_of_ranges(0, live))
    widget.show()
    application.processEvents()
    times: list[float] = []
    for n in range(N_FRAMES):
        span = N_POSITIONS * (20 / N_POSITIONS) ** (n / N_FRAMES)
        middle = N_POSITIONS * (0.3 + 0.4 * n / N_FRAMES)
        widget.axis.fit(middle - span / 2, middle + span / 2)
        began = time.process_time()
        widget.repaint()
        times.append((time.process_time() - began) * 1000)
    widget.close()
    fields = {"unit": "ms CPU", "better": "lower"}
    return [
        {"name": "window.paint.p50", "value": _share(times, 0.5), "goal": 4.0, **fields},
        {"name": "window.paint.p99", "value": _share(times, 0.99), "goal": 8.0, **fields},
    ]


def latency() -> list[Mapping[str, Any]]:
    """How late the event loop comes to a beat while the tiny model runs flat out beside it."""
    application = _application()
    from app.models.goto import made_up
    from app.settings import Settings
    from app.views.main_window import MainWindow
    from engine.commands import Feed, OpenModel, Run, SetChunk

    window = MainWindow(Settings(fresh=True))
    window.show()
    window.build_panels()
    window.start_session(OpenModel("qwen4exp-tiny", mode="fast", capacity=1 << 20))
    client = window.client
    _until(application, lambda: client.session is not None)
    client.send(SetChunk(4))
    client.send(Feed(0, made_up(20_000)))
    client.send(Run())
    _until(application, lambda: len(client.records) > 5)
    n_before = len(client.records)
    late, turns = _beats(application)
    n_chunks = len(client.records) - n_before
    window.close()
    client.stop()
    idle, _ = _beats(application)
    cpu = {"unit": "ms CPU of the window's thread", "better": "lower"}
    over = _over(late)
    fields = {"unit": "ms", "better": "lower", "peer_name": IDLE}
    return [
        {
            "name": "window.latency.p99",
            "value": _share(late, 0.99),
            "goal": FRAME_MS,
            "ours": _share(late, 0.99),
            "peer": _share(idle, 0.99),
            **fields,
        },
        {
            "name": "window.latency.max",
            "value": max(late),
            "goal": 100.0,
            "ours": max(late),
            "peer": max(idle),
            **fields,
        },
        {
            "name": "window.latency.over_16ms",
            "value": over,
            "goal": 1.0,
            "ours": over,
            "peer": _over(idle),
            "peer_name": IDLE,
            "unit": "% of turns",
            "better": "lower",
        },
        {"name": "window.turn.p99", "value": _share(turns, 0.99), "goal": FRAME_MS, **cpu},
        {"name": "window.turn.max", "value": max(turns), "goal": 100.0, **cpu},
        {
            "name": "window.latency.chunks",
            "value": n_chunks / LATENCY_S,
            "unit": "chunks/s beside it",
            "better": "higher",
        },
    ]


def _beats(application: Any) -> tuple[list[float], list[float]]:
    """(lateness of each beat of a timer, CPU time of each turn of the loop), both in ms."""
    from PySide6.QtCore import Qt, QTimer

    late: list[float] = []
    last = [time.perf_counter()]

    def beat() -> None:
        now = time.perf_counter()
        late.append(max(0.0, (now - last[0]) * 1000 - BEAT_MS))
        last[0] = now

    timer = QTimer()
    timer.setTimerType(Qt.TimerType.PreciseTimer)
    timer.timeout.connect(beat)
    timer.start(BEAT_MS)
    turns: list[float] = []
    end = time.monotonic() + LATENCY_S
    while time.monotonic() < end:
        began = time.thread_time()
        application.processEvents()
        turns.append((time.thread_time() - began) * 1000)
        time.sleep(0.0002)
    timer.stop()
    return late, turns


def _over(late: list[float]) -> float:
    """Percent of beats later than a frame."""
    return 100 * sum(value > FRAME_MS for value in late) / len(late)


def start_up() -> Mapping[str, Any]:
    """From a new process to the first painted window, warm."""
    import subprocess
    import sys

    code = (
        "import os, time; os.environ['QT_QPA_PLATFORM'] = 'offscreen'\n"
        "began = time.perf_counter()\n"
        "from PySide6.QtWidgets import QApplication\n"
        "from app import theme\n"
        "from app.views.main_window import MainWindow\n"
        "a = QApplication([]); theme.apply(a, 'light'); w = MainWindow(); w.show()\n"
        "w.repaint(); print(time.perf_counter() - began)"
    )
    times = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(3)
    ]
    return {
        "name": "window.start",
        "value": min(times),
        "unit": "s",
        "goal": 0.5,
        "better": "lower",
    }


def _until(application: Any, done: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(f"not ready within {seconds:.0f} s")
        application.processEvents()
        time.sleep(0.001)


BENCHMARKS = (
    ("window.paint", paint),
    ("window.latency", latency),
    ("window.start", start_up),
)
