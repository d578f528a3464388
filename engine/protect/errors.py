"""What the wrapper raises on purpose. All but `StateLost` promise that every cache is as it was."""

from __future__ import annotations


class ProtectError(Exception):
    """Base of everything that this package raises on purpose."""


class NotFinite(ProtectError):
    """The logits of a step hold a NaN or an infinity; the step was taken back."""

    def __init__(self, row: int, n_bad: int) -> None:
        super().__init__(
            f"the logits of row {row} are not finite ({n_bad} bad values in all);"
            " every cache is as it was before the step"
        )
        self.row = row
        self.n_bad = n_bad


class Refused(ProtectError):
    """A request that has no exact meaning for this cache; nothing changed."""

    def __init__(
        self,
        op: str,
        reason: str,
        *,
        given: int | None = None,
        expected: int | None = None,
        nearest: int | None = None,
        detail: str = "",
    ) -> None:
        text = f"{op}: {reason}"
        if expected is not None:
            text += f", expected {expected}"
        if given is not None:
            text += f", given {given}"
        if nearest is not None:
            text += f", nearest legal target {nearest}"
        super().__init__(f"{text} ({detail})" if detail else text)
        self.op = op
        self.reason = reason
        self.given = given
        self.expected = expected
        self.nearest = nearest


class StateLost(ProtectError):
    """Arrays that were handed in unevaluated could not be computed.

    The array library counts such arrays as evaluated afterwards although their content is
    undefined, so they are refused from then on instead of giving wrong numbers.
    """


class InjectedFault(ProtectError):
    """Raised by a fault plan, never by real work."""
