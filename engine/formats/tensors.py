"""The reader of safetensors files: an mlx-lm prompt cache, or a transformers cache as tensors."""

from __future__ import annotations

from engine.formats.mlx_lm.reader import is_prompt_cache, read_prompt_cache
from engine.formats.opened import Opened
from engine.formats.options import Options
from engine.formats.own import is_saved_session, read_saved_session
from engine.formats.report import Code, Finding, Report
from engine.formats.safetensors import is_safetensors, read_archive
from engine.formats.source import Damaged, Source
from engine.formats.transformers import is_transformers_cache, read_transformers_cache

__all__ = ["is_safetensors", "read_tensors"]


HEAD_BYTES = 1 << 20


def read_tensors(source: Source, options: Options) -> Opened:
    """Report of a safetensors file, by what its metadata and names say it holds."""
    try:
        archive = read_archive(source)
    except Damaged as failure:
        code = Code.TRUNCATED if failure.word == "truncated" else Code.UNREADABLE
        words = failure.sentence()
        found = (Finding(code, words, offset=failure.offset),)
        name = "mlx-lm" if b'Cache"' in source.bytes(0, HEAD_BYTES) else None
        report = Report(str(source.path), name, found, reason=words, detail=failure.word)
        return Opened(report, source)
    if is_saved_session(archive):
        return read_saved_session(source, archive, options)
    if is_prompt_cache(archive):
        return read_prompt_cache(source, archive, options)
    if is_transformers_cache(archive):
        return read_transformers_cache(source, archive, options)
    names = ", ".join(sorted(archive.tensors)[:3])
    words = f"a safetensors file that holds no cache that is known (tensors {names[:120]} …)"
    found = (Finding(Code.UNREADABLE, words, offset=8),)
    report = Report(str(source.path), None, found, reason=words, detail="structure")
    return Opened(report, source)
