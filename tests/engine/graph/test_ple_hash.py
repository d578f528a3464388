"""Constants and rows of the n-gram tables against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest

from engine.graph import ple_hash
from tests.helpers import golden

SEED = 5


def test_primes_are_those_of_a_sieve() -> None:
    sieve = np.ones(10_000, bool)
    sieve[:2] = False
    for p in range(2, 100):
        if sieve[p]:
            sieve[p * p :: p] = False
    assert [n for n in range(10_000) if ple_hash.is_prime(n)] == np.flatnonzero(sieve).tolist()


@pytest.mark.parametrize(
    ("n", "prime"),
    [
        (2**61 - 1, True),
        (2**31 - 1, True),
        (3215031751, False),  # passes the test with bases 2, 3, 5 and 7
        (3825123056546413051, False),  # passes with the first nine primes
        (2**62 - 1, False),
    ],
)
def test_large_numbers_are_judged_exactly(n: int, prime: bool) -> None:
    assert ple_hash.is_prime(n) == prime


def test_first_prime_may_be_the_base_itself() -> None:
    assert ple_hash.primes_from(97, 3) == (97, 101, 103)
    assert ple_hash.primes_from(1, 3) == (2, 3, 5)


@pytest.mark.parametrize("name", golden.MODELS)
def test_constants_are_those_of_the_checkpoint(name: str) -> None:
    import mlx.core as mx

    tensors = mx.load(str(golden.MODELS[name] / "model.safetensors"))
    config = golden.model(name).config
    for module, layer in enumerate(config.ple_layers):
        p = f"model.layers.{layer}.ple.ple_embedding."
        sizes, offsets, rows = ple_hash.table_sizes(config, module)
        stored = {
            "layer_multipliers": ple_hash.multipliers(config, module),
            "ngram_heads_vocab_sizes": sizes,
            "ngram_heads_offsets": offsets,
        }
        for key, value in stored.items():
            assert np.array_equal(np.array(tensors[p + key]), value), key
        shards = [v for k, v in tensors.items() if k.startswith(p + "ngram_embedding")]
        assert rows == sum(v.shape[0] for v in shards)


def context_by_definition(line: list[int], p: int, n: int, eos: int) -> list[int]:
    """The ids that count for token p, walking backwards until an EOS or the start."""
    out = [line[p]]
    for s in range(1, n):
        if p - s < 0 or (s > 1 and out[-1] == eos) or line[p - s] == eos:
            out += [eos] * (n - len(out))
            break
        out.append(line[p - s])
    return out


@pytest.mark.parametrize("n", [2, 3, 5])
def test_contexts_stop_at_eos_for_any_cut(n: int) -> None:
    rng = np.random.default_rng(SEED)
    eos = 2
    line = rng.integers(0, 5, 60)
    expected = [context_by_definition(line.tolist(), p, n, eos) for p in range(len(line))]
    for sizes in ([60], [1] * 60, golden.random_sizes(rng, 60)):
        history, found = np.full(n - 1, eos, np.int64), []
        for chunk in golden.cut(line, sizes):
            ids = np.array(chunk, np.int64)
            found += ple_hash.contexts(ids, history, eos).tolist()
            history = np.concatenate([history, ids])[-(n - 1) :]
        assert found == expected, (SEED, sizes)


@pytest.mark.parametrize("name", golden.MODELS)
def test_products_do_not_overflow_and_rows_stay_in_the_table(name: str) -> None:
    config = golden.model(name).config
    top = config.vocab_size - 1
    for module in range(len(config.ple_layers)):
        factors = ple_hash.multipliers(config, module)
        assert all(0 < int(f) * top < 2**63 and int(f) % 2 for f in factors)
        sizes, offsets, rows = ple_hash.table_sizes(config, module)
        context = np.random.default_rng(SEED).integers(0, top + 1, (200, config.ngram_size))
        found = ple_hash.rows_of(context, factors, sizes, offsets)
        for t, c in enumerate(context):
            mixed, expected = int(c[0]) * int(factors[0]), []
            for g in range(1, config.ngram_size):
                mixed ^= int(c[g]) * int(factors[g])
                for k in range((g - 1) * config.heads_per_ngram, g * config.heads_per_ngram):
                    expected.append(mixed % int(sizes[k]) + int(offsets[k]))
            assert found[t].tolist() == expected
        assert found.max() < rows
