"""Which table rows the n-grams of a text read. Integers on the host, 64 bits wide.

Owns the constants of a PLE module as functions of the configuration; a checkpoint stores them,
too, and loading compares. No array library.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from engine.config import Config

Ints = npt.NDArray[np.int64]
GOLDEN: Final = 0x9E3779B97F4A7C15
WORD: Final = (1 << 64) - 1
# these bases decide primality of every number below 3.3e24
WITNESSES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)


def _splitmix(value: int) -> int:
    value = (value + GOLDEN) & WORD
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & WORD
    return value ^ (value >> 31)


def multipliers(config: Config, module: int) -> Ints:
    """[N] odd numbers, small enough that no product with a token id overflows 63 bits."""
    half = max(1, (2**63 - 1) // config.vocab_size // 2)
    seeds = (config.seed + 10007 * module + GOLDEN * (i + 1) for i in range(config.ngram_size))
    return np.array([2 * (_splitmix(s & WORD) % half) + 1 for s in seeds], dtype=np.int64)


def is_prime(n: int) -> bool:
    """Exact for every 64-bit number."""
    if n < 2 or any(n % p == 0 for p in WITNESSES):
        return n in WITNESSES
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in WITNESSES:
        x = pow(base, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


@lru_cache(maxsize=64)
def primes_from(base: int, count: int) -> tuple[int, ...]:
    """The first `count` primes that are at least `base`."""
    found: list[int] = []
    n = base
    while len(found) < count:
        if is_prime(n):
            found.append(n)
        n += 1
    return tuple(found)


def table_sizes(config: Config, module: int) -> tuple[Ints, Ints, int]:
    """(sizes, offsets) of the heads' parts of the table, and its rows in all."""
    heads = config.ngram_heads
    primes = primes_from(config.ngram_vocab_size_base, heads * len(config.ple_layers))
    sizes = primes[module * heads : (module + 1) * heads]
    offsets = [sum(sizes[:k]) for k in range(heads)]
    divisor = config.make_ngram_vocab_size_divisible_by
    rows = -(-sum(sizes) // divisor) * divisor
    return np.array(sizes, dtype=np.int64), np.array(offsets, dtype=np.int64), rows


def contexts(tokens: Ints, history: Ints, eos: int) -> Ints:
    """[T, N]: c_0 is the token, c_s the one s before; EOS from the first EOS on.

    Args:
        tokens: [T]. history: [N-1] ids before them, oldest first, EOS before the start.
    """
    n = len(history) + 1
    line = np.concatenate([history, tokens])
    out = np.lib.stride_tricks.sliding_window_view(line, n)[:, ::-1].copy()
    for s in range(2, n):
        out[out[:, s - 1] == eos, s] = eos
    return out


def rows_of(context: Ints, multiplier: Ints, sizes: Ints, offsets: Ints) -> Ints:
    """[T, heads] rows of the joined table, orders 2 to N one after the other."""
    orders = context.shape[1] - 1
    per_order = len(sizes) // orders
    mixed = context[:, 0] * multiplier[0]
    out = np.empty((len(context), len(sizes)), dtype=np.int64)
    for g in range(1, orders + 1):
        mixed = mixed ^ (context[:, g] * multiplier[g])
        part = slice((g - 1) * per_order, g * per_order)
        out[:, part] = mixed[:, None] % sizes[part] + offsets[part]
    return out
