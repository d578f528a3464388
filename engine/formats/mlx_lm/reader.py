"""The reader of mlx-lm prompt caches: container, layout, layers, report."""

from __future__ import annotations

from typing import Any

from engine.formats.layer_checks import Asked, Judged, judge
from engine.formats.layers import Layer
from engine.formats.mlx_lm.classes import read_layer
from engine.formats.mlx_lm.layout import Cache, layout_of, read_cache
from engine.formats.opened import Opened
from engine.formats.options import Options
from engine.formats.report import Code, Finding, Report, ordered, sentence, span_text
from engine.formats.safetensors import Archive
from engine.formats.source import Source


def is_prompt_cache(archive: Archive) -> bool:
    return layout_of(archive.metadata) is not None


def read_prompt_cache(source: Source, archive: Archive, options: Options) -> Opened:
    """Report of a prompt cache whose header is whole."""
    layout = layout_of(archive.metadata)
    assert layout is not None
    cache = read_cache(source, archive, layout)
    if archive.cut:
        return Opened(cut_report(source, archive, cache), source)
    layers = [read_layer(source, entry, layout) for entry in cache.entries]
    mark_index_children(layers)
    judged = judge(source, layers, options)
    findings = list(judged.findings)
    if cache.strays:
        words = f"{len(cache.strays)} tensors belong to no class: {', '.join(cache.strays[:4])}"
        findings.append(Finding(Code.INCONSISTENT, words[:200]))
    last = max(archive.stop, archive.payload)
    if source.size > last:
        words = f"at byte {last} expected the end of the file, found {source.size - last} bytes"
        findings.append(Finding(Code.UNREADABLE, words, offset=last))
    mark_unused_values(layers)
    found = ordered(findings)
    report = Report(
        file=str(source.path),
        format="mlx-lm",
        findings=found,
        reason=sentence(found) or sound_reason(layers, judged),
        detail="trailing" if source.size > last else None,
        unproved=tuple(judged.unproved),
        sequences=tuple(judged.sequences),
        facts=facts(cache, layers, judged),
    )
    asked = Asked(source, layers, judged)
    return Opened(report, source, asked.cells, asked.norms)


def mark_index_children(layers: list[Layer]) -> None:
    """A later attention child of a CacheList is the index of the first one."""
    seen: set[str] = set()
    for layer in layers:
        head, _, child = layer.name.partition(".")
        if not child or layer.role == "recurrent":
            continue
        if head in seen and layer.role == "attention":
            layer.role = "index"
        seen.add(head)


def mark_unused_values(layers: list[Layer]) -> None:
    """Layers without a values width keep keys only, whatever the scan looked at."""
    for layer in layers:
        if layer.signature and not layer.signature[2]:
            layer.keys_only = True


def cut_report(source: Source, archive: Archive, cache: Cache) -> Report:
    """A file that ends before its tensors: what survives depends on the order of the payload."""
    lost = set(archive.cut)
    heads = {name.partition(".")[0] for name in lost}
    whole = [entry.name for entry in cache.entries if entry.name.partition(".")[0] not in heads]
    words = (
        f"the file ends at byte {source.size}, its tensors at byte {archive.stop}: "
        f"{len(lost)} of {len(archive.tensors)} tensors are cut"
    )
    words += f"; layers {', '.join(whole[:12])} are still whole" if whole else "; no layer is whole"
    found = (Finding(Code.TRUNCATED, words, offset=source.size),)
    known = (("layout", cache.layout), ("layers", len(cache.entries)))
    return Report(str(source.path), "mlx-lm", found, reason=words, detail="truncated", facts=known)


def sound_reason(layers: list[Layer], judged: Judged) -> str:
    if not judged.sequences:
        return "no layer holds a position"
    runs = [
        f"sequence {sequence.id} holds {span_text(sequence.run)}"
        for sequence in judged.sequences[:4]
        if sequence.run is not None
    ]
    text = "; ".join(runs)
    if judged.draft_from is not None:
        text += (
            f"; layers from {judged.draft_from} on have other sizes and end earlier, as those of a "
            "draft model do"
        )
    if judged.unproved:
        text += f"; the progress of {len(judged.unproved)} layers can't be proved from the file"
    return text


def facts(cache: Cache, layers: list[Layer], judged: Judged) -> tuple[tuple[str, Any], ...]:
    names = [layer.name for layer in layers]
    known: list[tuple[str, Any]] = [("layout", cache.layout), ("layers", len(layers))]
    if "model" in cache.user:
        known.append(("model", cache.user["model"][:200]))
    if judged.draft_from is not None:
        border = next(
            i
            for i, layer in enumerate(layers)
            if layer.name.split(".")[0] == str(judged.draft_from)
        )
        known.append(("groups", [names[:border], names[border:]]))
    unused = [layer.name for layer in layers if layer.keys_only]
    if unused:
        known.append(("unused_values", unused))
    if judged.torn:
        known.append(("torn_positions", [[start, stop - 1] for start, stop in judged.torn]))
    remarks = list(judged.remarks)
    for layer in layers:
        if layer.at_most is not None:
            remarks.append(
                f"layer {layer.name} ends before {layer.at_most}: this layout lost its offset"
            )
    if remarks:
        known.append(("remarks", remarks[:64]))
    return tuple(known)
