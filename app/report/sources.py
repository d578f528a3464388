"""What a report can be made of: a scenario, a capture, a saved session, a foreign cache file.

A file is known by its content. Each source becomes a `Subject`: facts without pictures, and the
scenes that the panels are told. Knows no Qt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from app import about
from app.models.opening import FileKind, kind_of
from app.play import Played, engine_for, full_json, play
from app.report.facts import MOST_JOURNAL, MOST_REFUSALS, CheckFacts, Facts
from app.report.foreign_facts import foreign_facts
from app.report.scene import Scene
from app.report.session_facts import Session, gather, session_facts, without_times
from engine import cases, load_session, open_engine, read_about, run_check
from engine.capture import Capture
from engine.capture_rows import textless
from engine.cases import Scenario
from engine.engine import Engine
from engine.errors import Malformed, Unreadable
from engine.events import Body, SessionOpened
from engine.opjson import from_json
from engine.ops import Fail
from engine.reading import arrays_of
from engine.snapshot import CheckResult, Record, Snapshot
from engine.terms import FailKind

MOST_REPRODUCED: Final = 200
"""Ops of a capture that a scenario for reproducing holds at most."""
MOST_SCENE: Final = 2_000
"""Records that the panels of a picture are told of."""
CHECKS_MADE: Final = ("audit", "same-as-fresh")

Lines = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Subject:
    """What a report is about."""

    facts: Facts
    newest: Scene
    """For panels that show the end."""
    focus: Scene
    """For panels that show the refusal; the same as `newest` where there is none."""
    group_size: int
    status: int
    """Exit status that says how the subject is: 0, 1 or 2."""


def open_subject(
    path: Path,
    *,
    with_text: bool = True,
    backend: str = "auto",
    model: str | None = None,
    group_size: int = 4,
    architecture: str | None = None,
) -> Subject:
    """The subject of any known file. Raises: Unreadable, Malformed, OSError."""
    if path.is_dir():
        raise Unreadable(str(path), "can't be reported on", "a file", "a folder")
    verdict = kind_of(path)
    if verdict.kind is None:
        raise Unreadable(str(path), verdict.reason.removeprefix(f"{path}: "))
    if verdict.kind is FileKind.CAPTURE:
        return of_capture(path, with_text)
    if verdict.kind is FileKind.SCENARIO:
        scenario = cases.load(path)
        engine = engine_for(scenario, backend=backend, model=model, self_check=True)
        return of_played(play(scenario, engine), with_text)
    if verdict.kind is FileKind.SESSION:
        return of_session(path, backend, model)
    return of_foreign(path, group_size, architecture)


def sha256(path: Path) -> str:
    """Of the whole file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def source_lines(path: Path) -> Lines:
    """Which file this is; the folder it lies in is nobody's business."""
    size = path.stat().st_size
    return (("File", f"{path.name} ({size:,} bytes)"), ("SHA-256", sha256(path)))


def run_lines(start: Snapshot, command: str, seed: str = "none, nothing is random") -> Lines:
    """What was run, from the session's first snapshot."""
    window = "" if start.window is None else f", window {start.window:,}"
    exact = {"proved": "the same bits for any chunks, proved on this device"}
    lines = {
        **about.versions(),
        "Backend": start.backend,
        "Model": Path(start.model).name if start.model else "none, history alone",
        "Exactness": exact.get(start.exact, start.exact) if start.model else "integers only",
        "Sizes": f"groups of {start.group_size}, capacity {start.capacity:,}{window}",
        "Seed": seed,
        "Command line": command,
    }
    return tuple(lines.items())


def focus_of(records: Sequence[Record]) -> Record | None:
    """The refusal to look at: the first that failed in a stage, else the first refused."""
    failed = [record for record in records if record.outcome in ("failed", "cancelled")]
    refused = [record for record in records if record.outcome != "ok"]
    return next(iter(failed or refused), None)


def scenes(
    end: Snapshot,
    records: Sequence[Record],
    events: Sequence[Body],
    scenario: dict[str, Any] | None = None,
    engine: Engine | None = None,
) -> tuple[Scene, Scene]:
    """The end, and the refusal to look at."""
    shown = focus_of(records)
    told = list(records[-MOST_SCENE:])
    newest = Scene(end, told, None, events, scenario, engine=engine)
    return newest, newest if shown is None else replace(newest, shown=shown)


def session_opened(engine: Engine) -> SessionOpened:
    """What the window hears when a session stands."""
    snapshot = engine.snapshot()
    owners = tuple((owner.name, owner.unit) for owner in snapshot.owners)
    arrays = arrays_of(engine.pair.public_bank)
    return SessionOpened(snapshot.model, snapshot.backend, engine.stage_names, owners, arrays)


def checks_of(engine: Engine) -> tuple[CheckResult, ...]:
    """What the window's one-click checks say of the end."""
    return tuple(run_check(engine, name) for name in CHECKS_MADE)


def opened_from_records(start: Snapshot, records: Sequence[Record]) -> SessionOpened:
    """The same from what was recorded: the longest plan names the stages."""
    longest = max((record.stages for record in records), key=len, default=())
    stages = tuple(dict.fromkeys((str(stage.name), stage.kind) for stage in longest))
    owners = tuple((owner.name, owner.unit) for owner in start.owners)
    return SessionOpened(start.model, start.backend, stages, owners, ())


# a scenario


def of_played(played: Played, with_text: bool = True) -> Subject:
    """A scenario that was executed; what a clock said is left out, so that it is repeatable."""
    records = [without_times(record) for record in played.records]
    scenario = played.scenario
    if not with_text:
        records = [textless(record) for record in records]
        scenario = without_tokens(scenario)
    expected = (scenario.expect or ())[: len(records)]
    session = gather(played.start, records, expected, played.mismatches)
    name = Path(scenario.path).name
    path = Path(scenario.path)
    source = source_lines(path) if path.is_file() else (("Scenario", scenario.case),)
    command = f"bankflip run {name} --backend {played.start.backend}"
    if played.start.backend == "none":
        command = f"bankflip run {name}"
    text = cases.dump(scenario)
    facts = session_facts(
        session,
        kind="scenario",
        title=scenario.title or scenario.case,
        note=scenario.note or scenario.symptom or "",
        source=source,
        run=run_lines(played.start, command),
        reproduce=(f"Save the scenario below as {name}.", command),
        scenario=text,
    )
    checks = checks_of(played.engine)
    facts = with_checks(facts, checks)
    events: tuple[Body, ...] = (session_opened(played.engine), *checks)
    pair = scenes(played.end, records, events, json.loads(text), played.engine)
    return Subject(facts, *pair, played.start.group_size, 0 if facts.ok else 1)


def with_checks(facts: Facts, checks: Sequence[CheckResult]) -> Facts:
    """The facts with what the checks say; one that fails makes the subject unsound."""
    lines = tuple(CheckFacts(check.name, check.ok, check.sentence) for check in checks)
    bad = [f"{check.name}: {check.sentence}" for check in checks if not check.ok]
    if not bad:
        return replace(facts, checks=lines)
    verdict = f"Unsound: {bad[0].rstrip('.')}."
    findings = (*facts.findings, *bad)
    return replace(facts, checks=lines, ok=False, verdict=verdict, findings=findings)


def without_tokens(scenario: Scenario) -> Scenario:
    """The scenario with no token ids in it."""
    ops = []
    for op in scenario.ops:
        value = json.loads(full_json(op))
        ops.append(from_json(_strip(value)))
    return replace(scenario, ops=tuple(ops))


def _strip(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strip(part) for key, part in value.items() if key != "tokens"}
    return [_strip(part) for part in value] if isinstance(value, list) else value


# a capture


def of_capture(path: Path, with_text: bool) -> Subject:
    """A recorded session: refusals in full, the newest ops, and all of them compared."""
    with Capture(path) as capture:
        count = len(capture)
        counts = capture.counts()
        words = [word for word in counts if word != "ok"]
        changed = capture.changed_by_refusals()
        found = (place for word in words for place in capture.indexes(word, MOST_REFUSALS))
        # one that changed something is shown whatever its place
        places = sorted({*changed[:MOST_REFUSALS], *sorted(found)[:MOST_REFUSALS]})
        refused = [capture.record(place) for place in places]
        records = list(capture.records(max(0, count - MOST_JOURNAL), count))
        last = records[-1] if records else None
        end = capture.snapshot_at(count - 1)
        start, facts_about = capture.start, capture.about
        text = _scenario_of(capture, path) if with_text and capture.with_text else ""
    if not with_text:
        refused, records = [textless(r) for r in refused], [textless(r) for r in records]
    session = Session(
        start=start,
        records=records,
        last=last,
        n_records=count,
        n_changed=len(changed),
        refused=refused,
        counts=tuple(sorted(counts.items(), key=lambda pair: (pair[0] != "ok", pair[0]))),
    )
    command = facts_about.get("command_line", "") or "not recorded"
    steps: tuple[str, ...] = (f"bankflip report {path.name} --out DIR",)
    if text:
        steps = (f"Save the scenario below as {path.stem}.json.", f"bankflip run {path.stem}.json")
    recorded = (("Recorded with", facts_about["versions"]),) if "versions" in facts_about else ()
    facts = session_facts(
        session,
        kind="capture",
        title=facts_about.get("title") or path.stem,
        note="",
        source=(*source_lines(path), *recorded),
        run=run_lines(start, command),
        reproduce=steps,
        scenario=text,
    )
    told = records if len(records) == count else [*refused, *records]
    told = sorted({record.number: record for record in told}.values(), key=lambda r: r.number)
    pair = scenes(end, told, (opened_from_records(start, told),))
    return Subject(facts, *pair, start.group_size, 0 if facts.ok else 1)


def _scenario_of(capture: Capture, path: Path) -> str:
    """The recorded ops as a scenario with what they gave, up to a length; empty if they can't be.

    A session that did not start empty, or whose ops are no ops of the language (a loaded file, an
    undo), has none.
    """
    start = capture.start
    if start.sequences or start.slots or not 0 < len(capture) <= MOST_REPRODUCED:
        return ""
    ops, expect = [], []
    try:
        for record in capture.records():
            op = from_json(json.loads(record.op_json), record.number)
            if isinstance(op, Fail) or record.outcome not in ("failed", "cancelled"):
                ops.append(op)
                expect.append(record.result)
                continue
            during: Any = op
            ops.append(Fail(record.stage, FailKind(record.kind), during))
            expect.append(record.result)
    except (Malformed, ValueError, TypeError, KeyError):
        return ""
    scenario = Scenario(
        case=path.stem,
        ops=tuple(ops),
        capacity=start.capacity,
        group_size=start.group_size,
        window=start.window,
        model=Path(start.model).name if start.model else None,
        expect=tuple(expect),
    )
    return cases.dump(scenario)


# a saved session


def of_session(path: Path, backend: str, model: str | None) -> Subject:
    """A saved session, loaded into a new one and checked as a restore is."""
    facts_about = read_about(path)
    name = model or facts_about.get("model") or None
    engine = open_engine(
        name,
        backend=backend,
        self_check=True,
        group_size=facts_about["group_size"],
        capacity=facts_about["capacity"],
        window=facts_about["window"],
    )
    start = engine.snapshot()
    record = replace(without_times(load_session(engine, path)), number=0)
    end = engine.snapshot()
    command = f"bankflip report {path.name} --out DIR"
    facts = session_facts(
        gather(start, [record]),
        kind="session",
        title=path.stem,
        note="Every tensor was read, its shape, type and values were checked, and the digests "
        "recomputed from it are those that the file names.",
        source=source_lines(path),
        run=run_lines(start, command),
        reproduce=(f"bankflip {path.name}",),
        scenario="",
    )
    facts = replace(facts, verdict=f"Sound: {record.sentence}, every digest as saved.")
    checks = checks_of(engine)
    facts = with_checks(facts, checks)
    pair = scenes(end, [record], (session_opened(engine), *checks), engine=engine)
    return Subject(facts, *pair, start.group_size, 0 if facts.ok else 1)


# a foreign cache file


def of_foreign(path: Path, group_size: int, architecture: str | None) -> Subject:
    """Cache state of another engine, as `check` sees it."""
    from engine.formats import Options, open_file

    with open_file(path, Options(group_size=group_size, architecture=architecture)) as opened:
        report = opened.report
    checked = report.to_json()
    checked["file"] = path.name
    command = f"bankflip check {path.name}"
    if group_size != 4:
        command += f" --group-size {group_size}"
    if architecture:
        command += f" --arch {architecture}"
    lines = {
        **about.versions(),
        "Format": str(checked.get("format") or "unknown"),
        "Sizes": f"groups of {group_size}",
        "Seed": "none, nothing is random",
        "Command line": command,
    }
    facts = foreign_facts(
        checked, path.name, source_lines(path), tuple(lines.items()), (command,), group_size
    )
    scene = Scene(foreign=checked, group_size=group_size)
    return Subject(facts, scene, scene, group_size, report.exit_status)
