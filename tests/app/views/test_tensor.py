"""Tensors and logits by hand."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt

from app.views.logits import LogitsPanel
from app.views.tensor import TensorPanel
from engine.commands import Feed, ReadArray, Run, StepStage

LEFT = Qt.MouseButton.LeftButton


def test_the_heat_map_shows_rows_of_the_public_bank(tiny):
    panel = tiny.open(TensorPanel, (420, 420))
    tiny.settle()
    panel.flush()
    assert any(isinstance(command, ReadArray) for command in tiny.sent)
    assert panel.shown_matrix.values.shape[0] == 22
    assert panel.shown_matrix.first == 0
    assert panel.facts.text().endswith("all finite")
    owners = {panel.array.itemData(n)[0] for n in range(panel.array.count())}
    assert {"qsa.kv", "gdn.recurrent", "logits"} <= owners


def test_every_array_of_the_model_can_be_shown_in_every_view(tiny):
    panel = tiny.open(TensorPanel, (420, 420))
    for number in range(panel.array.count()):
        for view in range(panel.bank.count()):
            panel.array.setCurrentIndex(number)
            panel.bank.setCurrentIndex(view)
            panel.ask()
            tiny.settle()
            panel.flush()
            assert panel.shown_matrix is not None, panel.array.currentText()


def test_the_difference_of_a_chunk_in_flight_is_seen(tiny):
    panel = tiny.open(TensorPanel, (420, 420))
    names = [panel.array.itemData(n)[0] for n in range(panel.array.count())]
    panel.array.setCurrentIndex(names.index("gdn.recurrent"))
    panel.bank.setCurrentIndex(2)
    tiny.client.send(Feed(0, (9, 8, 7)))
    for _ in range(12):
        tiny.client.send(StepStage())
    panel.ask()
    tiny.settle()
    panel.flush()
    assert panel.shown_matrix.high > panel.shown_matrix.low
    assert panel.limits.low == -panel.limits.high


def test_a_fixed_range_is_kept(tiny):
    panel = tiny.open(TensorPanel, (420, 420))
    tiny.settle()
    panel.flush()
    panel.fixed.setChecked(True)
    panel.low.setValue(-0.25)
    panel.high.setValue(0.25)
    panel.refresh()
    panel.flush()
    assert (panel.limits.low, panel.limits.high) == (-0.25, 0.25)
    panel.fixed.setChecked(False)
    assert panel.limits.high > 0.25


def test_pointer_and_click_on_the_heat_map(tiny):
    panel = tiny.open(TensorPanel, (420, 420))
    tiny.settle()
    panel.flush()
    point = panel.map.scene_point(7.5, 3.5)
    panel.map.plot.scene().sigMouseMoved.emit(point)
    value = panel.shown_matrix.values[7, 3]
    assert panel.under.text() == f"position 7, column 3: {float(value):.6g}"

    class Click:
        def scenePos(self):
            return point

    panel.map.plot.scene().sigMouseClicked.emit(Click())
    assert (tiny.hub.selection.start, tiny.hub.selection.stop) == (7, 8)
    panel.flush()
    assert panel.map.marker.isVisible()


def test_numbers_of_the_heat_map_are_copied(tiny, qapp):
    panel = tiny.open(TensorPanel, (420, 420))
    tiny.settle()
    panel.flush()
    panel.copy()
    rows = qapp.clipboard().text().splitlines()
    read = np.array([[float(x) for x in row.split("\t")] for row in rows], np.float32)
    assert np.array_equal(read, panel.shown_matrix.values)


def test_the_past_has_no_tensors_and_says_so(tiny):
    tensor, logits = tiny.open(TensorPanel), tiny.open(LogitsPanel)
    tiny.client.show(tiny.client.records[0])
    for panel, line in ((tensor, tensor.empty), (logits, logits.line)):
        panel.flush()
        assert "past are not kept" in line.text()


def test_logits_follow_the_newest_chunk(tiny):
    panel = tiny.open(LogitsPanel, (380, 400))
    tiny.settle()
    panel.flush()
    first = [panel.view.table.source.cell(row, 1).text for row in range(5)]
    assert panel.line.text().startswith("sequence 0 after position 21: 256 ids")
    tiny.client.send(Feed(0, (5, 6, 7)))
    tiny.client.send(Run())
    tiny.settle()
    panel.flush()
    tiny.settle()
    panel.flush()
    assert panel.line.text().startswith("sequence 0 after position 24")
    assert [panel.view.table.source.cell(row, 1).text for row in range(5)] != first
    panel.count.setValue(3)
    panel.flush()
    assert panel.view.table.rowCount() == 3
