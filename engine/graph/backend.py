"""The products and sums whose bits must not depend on how tokens are cut into chunks.

Owns the constants of a device and every operation that mixes values of several columns or rows:
all calls have shapes that the number of tokens does not change. Library calls on "all rows at
once" choose other kernels for other row counts, and so other last bits (see `selfcheck`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

# Read once, at the first product: float32 must mean float32 on NVIDIA devices, too.
os.environ.setdefault("MLX_ENABLE_TF32", "0")

import mlx.core as mx

from engine.errors import InvariantBroken
from metal import run as kernel
from metal import works
from metal.status import StatusBit

GPUS: Final = ("metal", "cuda")
ROW_KERNELS: Final = ("index_scores", "attention_scores", "indexed_attention", "gdn_step")
"""Kernels that take the place of many library calls, or of a slow one."""
PRODUCT_KERNELS: Final = ("linear", "expert_linear", "sum_parts")
"""Kernels that are slower than library products, for devices where these are not exact."""
GROUP_BLOCK: Final = 64
"""Groups in one product of index scores."""
MAX_SCORE_ELEMENTS: Final = 1 << 24
"""Above this many elements the heads of an index score are multiplied one after the other."""


@dataclass(frozen=True, slots=True)
class Backend:
    """One device. The plain class is the CPU; other devices override what kernels do better."""

    name: str = "cpu"
    tile_rows: int = 4
    """Rows of one product; a token always stands in row consumed % tile_rows."""
    query_rows: int = 4
    """Rows of one attention call; divides `tile_rows`."""

    @property
    def device(self) -> mx.Device:
        """Where the array library computes for this backend, whatever its default is."""
        return mx.Device(mx.gpu if self.name in GPUS else mx.cpu)

    @property
    def frees_late(self) -> bool:
        """Whether the results of operations stay until the device has run all that was asked."""
        return False

    @property
    def reads_in_place(self) -> bool:
        """Whether attention reads keys and values as they are stored (`attend`), without lists."""
        return False

    @property
    def kernels(self) -> str:
        """The target of `metal.run`: this device, or the references where its kernels fail."""
        return self.name if works("group_status", self.name) else "cpu"

    def prepare(self, weight: mx.array) -> mx.array:
        """[..., N, K] as stored to [..., K, N] as `linear` wants it.

        A contiguous copy here: the CPU product is twice as fast as on a transposed view.
        """
        return mx.contiguous(weight.swapaxes(-1, -2))

    def n_tiles(self, x: mx.array) -> int:
        """Whole tiles in the rows of x. Raises: InvariantBroken for a rest."""
        if x.shape[0] % self.tile_rows:
            raise InvariantBroken("rows in whole tiles", f"{self.tile_rows}", f"{x.shape[0]}")
        return x.shape[0] // self.tile_rows

    def linear(self, x: mx.array, weight: mx.array) -> mx.array:
        """[R, K] rows in whole tiles, times [K, N]; one product a tile. Returns [R, N]."""
        n = self.n_tiles(x)
        if n == 1:
            return x @ weight
        inner, outer = weight.shape
        tiles = x.reshape(n, self.tile_rows, inner)
        # three dimensions on both sides, or the library would make one large product of it
        return (tiles @ mx.broadcast_to(weight, (n, inner, outer))).reshape(-1, outer)

    def expert_linear(self, x: mx.array, weight: mx.array, experts: mx.array) -> mx.array:
        """Row-by-row products with chosen matrices.

        Args:
            x: [T, 1 or k, K].
            weight: [E, K, N].
            experts: [T, k] uint32.
        Returns: [T, k, N], one product of one row each.
        """
        n, k = experts.shape
        rows = x.reshape(-1, 1, x.shape[-1])
        if x.dtype != mx.float32:  # the library has no such gathered product on the CPU
            chosen = mx.take(weight, experts, axis=0)
            return (rows.reshape(n, -1, 1, x.shape[-1]) @ chosen)[:, :, 0]
        of_row = mx.arange(n * k, dtype=mx.uint32).reshape(n, k)
        left = of_row if x.shape[1] == k else of_row // k
        return mx.gather_mm(rows, weight, lhs_indices=left, rhs_indices=experts)[:, :, 0]

    def sum_middle(self, x: mx.array) -> mx.array:
        """[R, n, W] to [R, W], added in order of n."""
        return x.sum(axis=1)

    def delta_rule(
        self,
        q: mx.array,
        k: mx.array,
        v: mx.array,
        alpha: mx.array,
        beta: mx.array,
        start: mx.array,
    ) -> tuple[mx.array, mx.array]:
        """The gated delta recurrence over the tokens of a chunk, in order.

        Args:
            q, k: [T, Hk, dk] float32. v: [T, Hv, dv] float32. alpha, beta: [T, Hv] float32.
            start: [Hv, dk, dv] float32.
        Returns: outputs [T, Hv, dv] and the state after the last token.
        """
        n, repeat = q.shape[0], v.shape[1] // k.shape[1]
        if repeat > 1:
            q, k = mx.repeat(q, repeat, axis=1), mx.repeat(k, repeat, axis=1)
        # single tokens as views; twice as fast as the library's own loop, and bit-equal to it
        rows = (x[:, :, None] for x in (q, k, v))
        columns = (k[..., None], alpha[..., None, None], beta[..., None, None])
        state, outputs = start[None], []
        for q_t, k_t, v_t, column, decay, rate in zip(
            *(mx.split(x, n) for x in (*rows, *columns)), strict=True
        ):
            state = state * decay
            state = state + column * (rate * (v_t - k_t @ state))
            outputs.append(q_t @ state)
        return mx.concatenate(outputs)[:, :, 0], state[0]

    def index_scores(self, q: mx.array, pooled: mx.array) -> mx.array:
        """Sum over heads of relu(q . pooled), both float32 and rotated.

        Args:
            q: [R, Hi, d] in whole tiles of `query_rows`. pooled: [G, d], G in whole blocks.
        Returns: [R, G], every product of the shape [query_rows, d] x [d, GROUP_BLOCK].
        """
        rows, heads, width = q.shape
        tiles, blocks = rows // self.query_rows, pooled.shape[0] // GROUP_BLOCK
        by_head = mx.contiguous(q.transpose(1, 0, 2))
        by_head = by_head.reshape(heads, tiles, 1, self.query_rows, width)
        keys = pooled.reshape(1, blocks, GROUP_BLOCK, width).swapaxes(-1, -2)
        if heads * rows * pooled.shape[0] <= MAX_SCORE_ELEMENTS:
            parts = mx.maximum(by_head @ keys, 0.0)
            total = parts[0]
            for head in range(1, heads):
                total = total + parts[head]
        else:
            total = mx.maximum(by_head[0] @ keys, 0.0)
            for head in range(1, heads):
                total = total + mx.maximum(by_head[head] @ keys, 0.0)
        return total.transpose(0, 2, 1, 3).reshape(rows, -1)

    def attention(self, q: mx.array, k: mx.array, v: mx.array, seen: mx.array) -> mx.array:
        """Softmax attention of every query over its own list of keys.

        Args:
            q: [R, Hq, D] float32, rotated and scaled. k, v: [R, S, Hkv, D] float32, k rotated.
            seen: [R, S] bool; at least one a row.
        Returns: [R, Hq, D] float32; each product has the shape of one query and one K/V head.
        """
        rows, heads, width = q.shape
        n_kv = k.shape[2]
        grouped = q.reshape(rows, n_kv, heads // n_kv, width)
        scores = grouped @ k.transpose(0, 2, 3, 1)
        scores = mx.where(seen[:, None, None, :], scores, -mx.inf)
        weights = mx.softmax(scores, axis=-1, precise=True)
        return (weights @ v.transpose(0, 2, 1, 3)).reshape(rows, heads, width)

    def group_status(
        self, cells: mx.array, anchor: int, group_size: int
    ) -> tuple[mx.array, Callable[[], int]]:
        """Status word of positions that should be one run from `anchor` on.

        Args:
            cells: [n] int32 positions as the device's tables have them, from a group's start on.
        Returns: uint32 of shape (), bits as in `metal.status`; and what gives, once the word is
        evaluated, the number of the first part that is wrong (the tail is the last, -1 for none).
        """
        # what the kernel's reference gives for such a plan, in a sixth of its operations
        n = cells.shape[0]
        step = cells[1:].astype(mx.int64) - cells[:-1]
        heads = cells[: n // group_size * group_size : group_size]
        due = mx.arange(anchor, anchor + heads.shape[0] * group_size, group_size, dtype=mx.int32)
        faults = {
            StatusBit.HOLE: mx.any((step != 1) & (step != 0)),
            StatusBit.TWICE: mx.any(step == 0),
            StatusBit.ANCHOR: mx.any(heads != due),
            StatusBit.FRONTIER: cells[-1] != anchor + n - 1,
            StatusBit.OUTSIDE: mx.any(cells < 0),
        }
        word = mx.array(0, mx.uint32)
        for bit, found in faults.items():
            word = word + found.astype(mx.uint32) * int(bit)
        return word, lambda: cast(int, _group_words(cells, anchor, group_size, "cpu")[1].item())

    def attend(
        self,
        q: mx.array,
        k: mx.array,
        v: mx.array,
        angles: tuple[mx.array, mx.array],
        groups: mx.array,
        group_size: int,
    ) -> mx.array:
        """Attention of the last T live tokens over their groups and tails, read in place.

        Args:
            q: [T, Hq, D] float32, rotated, not scaled. k, v: [n_live, Hkv, D], k not rotated.
            angles: of every live position. groups: [T, topk] int32, others than complete ignored.
        Returns: [T, Hq, D] float32.
        """
        keys = (q, k, *angles, groups)
        target = self.kernels
        scores = kernel("attention_scores", *keys, group_size=group_size, backend=target)
        mix = (scores, v, groups)
        out: mx.array = kernel("indexed_attention", *mix, group_size=group_size, backend=target)
        return out


class DeviceBackend(Backend):
    """A GPU: one call a tile, sums written out; library kernels are chosen by total size."""

    __slots__ = ()

    @property
    def frees_late(self) -> bool:
        return True

    def prepare(self, weight: mx.array) -> mx.array:
        return weight.swapaxes(-1, -2)

    def linear(self, x: mx.array, weight: mx.array) -> mx.array:
        rows = self.tile_rows
        tiles = [x[i * rows : (i + 1) * rows] @ weight for i in range(self.n_tiles(x))]
        return tiles[0] if len(tiles) == 1 else mx.concatenate(tiles)

    def sum_middle(self, x: mx.array) -> mx.array:
        total = x[:, 0]
        for i in range(1, x.shape[1]):
            total = total + x[:, i]
        return total

    def delta_rule(
        self,
        q: mx.array,
        k: mx.array,
        v: mx.array,
        alpha: mx.array,
        beta: mx.array,
        start: mx.array,
    ) -> tuple[mx.array, mx.array]:
        out, end = mx.fast.gated_delta_update(
            q[None], k[None], v[None], alpha[None], beta[None], start.swapaxes(-1, -2)[None]
        )
        return out[0], mx.contiguous(end[0].swapaxes(-1, -2))

    def expert_linear(self, x: mx.array, weight: mx.array, experts: mx.array) -> mx.array:
        n, k = experts.shape
        of_row = mx.arange(n * k, dtype=mx.uint32).reshape(n, k)
        left = of_row if x.shape[1] == k else of_row // k
        rows = x.reshape(-1, 1, x.shape[-1])
        return mx.gather_mm(rows, weight, lhs_indices=left, rhs_indices=experts)[:, :, 0]

    def index_scores(self, q: mx.array, pooled: mx.array) -> mx.array:
        tiles = []
        for i in range(0, q.shape[0], self.query_rows):
            by_head = q[i : i + self.query_rows].transpose(1, 0, 2)
            blocks = [
                self.sum_middle(
                    mx.maximum(by_head @ pooled[g : g + GROUP_BLOCK].T[None], 0.0)[None]
                )[0]
                for g in range(0, pooled.shape[0], GROUP_BLOCK)
            ]
            tiles.append(mx.concatenate(blocks, axis=-1))
        return mx.concatenate(tiles)

    def group_status(
        self, cells: mx.array, anchor: int, group_size: int
    ) -> tuple[mx.array, Callable[[], int]]:
        if self.kernels == "cpu":
            return Backend.group_status(self, cells, anchor, group_size)
        word, part = _group_words(cells, anchor, group_size, self.kernels)
        return word.reshape(()), lambda: cast(int, part.item())

    def attention(self, q: mx.array, k: mx.array, v: mx.array, seen: mx.array) -> mx.array:
        rows = self.query_rows
        tiles = [
            Backend.attention(
                self, q[i : i + rows], k[i : i + rows], v[i : i + rows], seen[i : i + rows]
            )
            for i in range(0, q.shape[0], rows)
        ]
        return tiles[0] if len(tiles) == 1 else mx.concatenate(tiles)


class KernelBackend(DeviceBackend):
    """A GPU whose kernels work: products in tiles, but scores, attention and recurrence by kernel.

    Each of these gives a row by itself, in one order of sums, in one call for all rows. The name
    is the kernels' target.
    """

    __slots__ = ()

    @property
    def reads_in_place(self) -> bool:
        return True

    def index_scores(self, q: mx.array, pooled: mx.array) -> mx.array:
        # groups of one row that all lie before the queries, and no rotation: scores of all
        n_keys = q.shape[0] + pooled.shape[0]
        still = mx.zeros((n_keys, 0))
        scores: mx.array = kernel(
            "index_scores", q, pooled, still, still, n_keys=n_keys, group_size=1, backend=self.name
        )
        return scores

    def delta_rule(
        self,
        q: mx.array,
        k: mx.array,
        v: mx.array,
        alpha: mx.array,
        beta: mx.array,
        start: mx.array,
    ) -> tuple[mx.array, mx.array]:
        out, end = kernel("gdn_step", q, k, v, beta, alpha, start, backend=self.name)
        return out, end


class FixedOrderBackend(KernelBackend):
    """Products by kernel, too, so rows need no tiles.

    For a GPU whose library products are not exact in tiles.
    """

    __slots__ = ()

    def prepare(self, weight: mx.array) -> mx.array:
        return mx.contiguous(weight.swapaxes(-1, -2))

    def linear(self, x: mx.array, weight: mx.array) -> mx.array:
        self.n_tiles(x)
        product: mx.array = kernel("linear", x, weight, backend=self.name)
        return product

    def expert_linear(self, x: mx.array, weight: mx.array, experts: mx.array) -> mx.array:
        n, k = experts.shape
        rows = mx.broadcast_to(x, (n, k, x.shape[-1])).reshape(n * k, -1)
        numbers = experts.reshape(-1).astype(mx.int32)
        out = kernel("expert_linear", rows, weight, numbers, backend=self.name)
        return out.reshape(n, k, -1)  # type: ignore[no-any-return]


def _group_words(
    cells: mx.array, anchor: int, group_size: int, target: str
) -> tuple[mx.array, mx.array]:
    """Word and first failing part, [1] each, of the plan that one run from `anchor` on implies."""
    n = cells.shape[0]
    complete = n // group_size * group_size
    starts = mx.arange(0, complete, group_size, dtype=mx.int32)
    found: tuple[mx.array, mx.array] = kernel(
        "group_status",
        cells,
        starts,
        starts + anchor,
        tail_start=complete,
        frontier=anchor + n - 1,
        group_size=group_size,
        backend=target,
    )
    return found


def fixed_order(backend: Backend) -> Backend:
    """The same device with products in one fixed order of sums, where its kernels work."""
    if not _work(backend.name, (*ROW_KERNELS, *PRODUCT_KERNELS)):
        return backend
    return FixedOrderBackend(backend.name, tile_rows=1, query_rows=1)


def _work(target: str, names: tuple[str, ...]) -> bool:
    return all(works(name, target) for name in names)


def backend_for(name: str = "auto") -> Backend:
    """The backend of a device: auto, cpu, metal or cuda.

    Auto is the array library's default device. Raises: ValueError for another name.
    """
    if name == "auto":
        if mx.default_device() == mx.Device(mx.cpu):
            name = "cpu"
        else:
            name = "metal" if mx.metal.is_available() else "cuda"
    if name == "cpu":
        return Backend()
    if name in GPUS:
        kind = KernelBackend if _work(name, ROW_KERNELS) else DeviceBackend
        return kind(name, tile_rows=64, query_rows=8)
    raise ValueError(f"backend: expected auto, cpu, metal or cuda, given {name}")
