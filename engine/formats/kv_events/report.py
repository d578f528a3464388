"""From publishers to a report: chains as sequences, gaps as findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.formats.kv_events.chains import Chain, chains_of
from engine.formats.kv_events.inventory import Key
from engine.formats.kv_events.publisher import Publisher
from engine.formats.positions import between, survey_ranges
from engine.formats.report import (
    Code,
    Finding,
    Part,
    Report,
    Sequence,
    Span,
    ordered,
    pair,
    pairs,
    sentence,
    span_text,
    spans_text,
)

CHAINS_LISTED = 4096
CHAINS_NAMED = 4
FAULTS_LISTED = 256


def report_of(
    file: str,
    publishers: Iterable[Publisher],
    group_size: int,
    extra_findings: Iterable[Finding] = (),
) -> tuple[Report, list[tuple[Publisher, Chain]]]:
    """The report of all publishers, and for each sequence its publisher and chain."""
    findings = list(extra_findings)
    sequences: list[Sequence] = []
    shown: list[tuple[Publisher, Chain]] = []
    listed: list[dict[str, Any]] = []
    remarks: list[str] = []
    unproved: list[str] = []
    for publisher in publishers:
        chains = chains_of(publisher)
        findings += stream_findings(publisher)
        findings += chain_findings(publisher, chains)
        remarks += remarks_of(publisher, chains)
        room = CHAINS_LISTED - len(sequences)
        kept = chains if len(chains) <= room else faulty_first(chains)[:room]
        sequences += [sequence_of(publisher, chain, group_size) for chain in kept]
        unproved += [str(chain.leaf[1]) for chain in kept if not chain.judged]
        shown += [(publisher, chain) for chain in kept]
        listed.append(publisher_json(publisher, kept))
    found = ordered(findings)
    report = Report(
        file=file,
        format="kv-events",
        findings=found,
        reason=sentence(found) or sound_reason(sequences),
        unproved=tuple(unproved),
        sequences=tuple(sequences),
        facts=(("remarks", remarks),) if remarks else (),
        extra=(("publishers", listed),),
    )
    return report, shown


def faulty_first(chains: list[Chain]) -> list[Chain]:
    return sorted(chains, key=lambda chain: chain.placed and not (chain.holes or chain.unknown))


def sound_reason(sequences: list[Sequence]) -> str:
    if not sequences:
        return "no block is resident"
    return f"{len(sequences)} chain{'s' if len(sequences) > 1 else ''}, each without a hole"


def sequence_of(publisher: Publisher, chain: Chain, group_size: int) -> Sequence:
    away = sorted((*chain.holes, *chain.unknown, *chain.evicted))
    live = between(away, 0, chain.length)
    found = survey_ranges(live, group_size)
    run = (0, chain.length) if chain.placed else None
    kinds = publisher.inventory
    windowed = chain.leaf[0] in kinds.windows
    part = Part(
        name="blocks",
        role="attention-swa" if windowed else "attention",
        kind=kinds.kinds.get(chain.leaf[0]),
        run=run,
        live=found.live,
        holes=chain.holes if chain.placed else (),
        evicted=chain.evicted,
    )
    return Sequence(
        id=str(chain.leaf[1]),
        run=run,
        usable=usable(chain, windowed),
        live=found.live,
        holes=chain.holes if chain.placed else (),
        complete_groups=found.complete_groups if chain.placed else 0,
        broken=found.broken if chain.placed else (),
        tail=found.tail if chain.placed else 0,
        forgotten=found.forgotten if chain.placed else (),
        parts=(part,),
        extra=(("publisher", publisher.name), ("group", chain.leaf[0])),
    )


def usable(chain: Chain, windowed: bool) -> Span | None:
    """Up to the first missing block; a window is usable at its end or not at all."""
    gone = [*chain.holes, *chain.unknown]
    if not chain.placed or not chain.judged:
        return None
    if windowed and gone:
        return None
    stop = min([start for start, _ in gone], default=chain.length)
    return (0, stop) if stop else None


def publisher_json(publisher: Publisher, chains: list[Chain]) -> dict[str, Any]:
    return {
        "port": publisher.name,
        "missing_seq": pairs(tuple(publisher.missing)),
        "duplicates": publisher.duplicates,
        "restarts": publisher.restarts,
        "undecodable": publisher.undecodable,
        "chains": [chain_json(chain) for chain in chains],
    }


def chain_json(chain: Chain) -> dict[str, Any]:
    entry: dict[str, Any] = {"leaf": str(chain.leaf[1]), "group": chain.leaf[0]}
    if not chain.placed:
        parent = chain.place.root_parent
        unknown = None if parent is None else str(parent)
        return {**entry, "run": None, "length": chain.length, "unknown_parent": unknown}
    entry |= {
        "run": pair((0, chain.length)),
        "holes": pairs(chain.holes),
        "evicted": pairs(chain.evicted),
    }
    return entry | ({"unknown": pairs(chain.unknown)} if chain.unknown else {})


def stream_findings(publisher: Publisher) -> list[Finding]:
    """What is wrong with the numbers and payloads of one publisher."""
    where, findings = f"publisher {publisher.name}", []
    if publisher.missing:
        count = sum(stop - start for start, stop in publisher.missing)
        words = (
            f"{where}: message{'s' if count > 1 else ''} {spans_text(tuple(publisher.missing))} "
        )
        findings.append(Finding(Code.LOST_EVENTS, words + "never arrived"))
    if publisher.undecodable:
        numbers = ", ".join(map(str, publisher.undecodable[:8]))
        more = len(publisher.undecodable) - 8
        words = f"{where}: the payload of message {numbers} does not decode"
        words += f", nor of {more} more" if more > 0 else ""
        findings.append(Finding(Code.UNDECODABLE, words))
    for key, first, second in publisher.inventory.contradictions[:FAULTS_LISTED]:
        words = f"{where}: block {key[1]} has two parents, {first} and {second}"
        findings.append(Finding(Code.INCONSISTENT, words, str(key[1])))
    for key, old, new in publisher.inventory.resizes[:FAULTS_LISTED]:
        words = f"{where}: block {key[1]} has {old} tokens and {new} tokens"
        findings.append(Finding(Code.INCONSISTENT, words, str(key[1])))
    return findings


def chain_findings(publisher: Publisher, chains: list[Chain]) -> list[Finding]:
    """Holes once for each run of missing blocks; parents that were never reported."""
    where, findings = f"publisher {publisher.name}", []
    broken: dict[Key, tuple[Span, list[Chain]]] = {}
    roots: dict[Key, list[Chain]] = {}
    for chain in chains:
        for gap in chain.gaps:
            broken.setdefault(gap.deepest, ((gap.start, gap.stop), []))[1].append(chain)
        if not chain.placed or not chain.place.uniform:
            roots.setdefault(chain.place.root, []).append(chain)
    for key, (span, own) in list(broken.items())[:FAULTS_LISTED]:
        place = f"positions {span_text(span)}" if own[0].placed else f"{span[1] - span[0]} tokens"
        words = f"{where}: {place} (block {key[1]}) are missing under {chains_text(own)}"
        position = span[0] if own[0].placed else None
        findings.append(Finding(Code.HOLE, words, str(own[0].leaf[1]), "blocks", position))
    for root, own in list(roots.items())[:FAULTS_LISTED]:
        findings += root_findings(publisher, where, root, own)
    return findings


def root_findings(
    publisher: Publisher, where: str, root: Key, chains: list[Chain]
) -> list[Finding]:
    """What is wrong with where the chains of one root stand."""
    leaf, place = str(chains[0].leaf[1]), chains[0].place
    if place.looped:
        words = f"{where}: block {root[1]} is its own ancestor, under {chains_text(chains)}"
        return [Finding(Code.INCONSISTENT, words, leaf)]
    findings = []
    if any(not chain.place.uniform for chain in chains):
        words = f"{where}: the block size changes inside {chains_text(chains)}, so positions "
        findings.append(Finding(Code.INCONSISTENT, words + "are not reliable", leaf))
    if place.root_parent is None:
        return findings
    if not publisher.lost_before(publisher.inventory.blocks[root].first_stored):
        words = f"{where}: parent {place.root_parent} of block {root[1]} was never reported, "
        words += f"so the place of {chains_text(chains)} is not known"
        findings.append(Finding(Code.UNKNOWN_PARENT, words, leaf))
    return findings


def chains_text(chains: list[Chain]) -> str:
    names = ", ".join(str(chain.leaf[1]) for chain in chains[:CHAINS_NAMED])
    more = len(chains) - CHAINS_NAMED
    text = f"chain{'s' if len(chains) > 1 else ''} {names}"
    return f"{text} and {more} more" if more > 0 else text


def remarks_of(publisher: Publisher, chains: list[Chain]) -> list[str]:
    """What a person should know that is no fault."""
    where, remarks = f"publisher {publisher.name}", []
    inventory = publisher.inventory
    if publisher.restarts:
        numbers = ", ".join(map(str, publisher.restart_at[:8]))
        remarks.append(f"{where} restarted {publisher.restarts} times, at message {numbers}")
    if publisher.duplicates:
        remarks.append(f"{where}: {publisher.duplicates} messages came twice")
    if inventory.unknown_removals:
        remarks.append(f"{where}: {inventory.unknown_removals} removals of unknown blocks")
    if publisher.ignored:
        remarks.append(f"{where}: {publisher.ignored} events of types that are not known")
    parents = {chain.leaf for chain in chains}
    kept = sum(1 for key in parents if inventory.blocks[key].kept_copy)
    if kept:
        remarks.append(
            f"{where}: {kept} chains end in a block that lost one of several copies; if the "
            "engine reports a removal only for the last copy, read it with --last-copy"
        )
    tiers: dict[str, int] = {}
    for block in inventory.blocks.values():
        for tier in block.copies:
            tiers[tier] = tiers.get(tier, 0) + 1
    if len(tiers) > 1:
        text = ", ".join(f"{count} in {tier}" for tier, count in sorted(tiers.items()))
        remarks.append(f"{where}: blocks by tier: {text}")
    if not all(chain.counted for chain in chains):
        remarks.append(f"{where}: more missing ranges than are listed")
    lost = sum(len(chain.unknown) for chain in chains)
    if lost:
        remarks.append(f"{where}: {lost} missing ranges may be explained by lost messages")
    return remarks
