"""Lots, in the words that drawing a world needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from sickbay.clock import Randomness

T = TypeVar("T")


class Dice:
    """Draws from one seeded source."""

    def __init__(self, randomness: Randomness) -> None:
        self.randomness = randomness

    def chance(self, probability: float) -> bool:
        return self.randomness.chance(probability)

    def between(self, low: int, high: int) -> int:
        """A whole number in [low, high]."""
        return low + self.randomness.below(high - low + 1)

    def moment(self, low: float, high: float) -> float:
        """Seconds, to a tenth: few things of one world happen at the very same moment, some do."""
        return round(self.randomness.uniform(low, high), 1)

    def one(self, choices: Sequence[T]) -> T:
        return choices[self.randomness.below(len(choices))]

    def weighted(self, choices: Iterable[tuple[int, T]]) -> T:
        """One of the choices, each as often as its weight says."""
        choices = list(choices)
        at = self.randomness.below(sum(weight for weight, _ in choices))
        for weight, choice in choices:
            at -= weight
            if at < 0:
                return choice
        raise AssertionError("weights are positive")

    def some(self, choices: Sequence[T], least: int = 0) -> list[T]:
        """A subset in the given order."""
        kept = [choice for choice in choices if self.chance(0.5)]
        return kept if len(kept) >= least else list(choices[:least])

    def fork(self) -> Dice:
        """Lots of its own, however many are drawn here afterwards."""
        return Dice(self.randomness.fork())

    def maybe(self, probability: float, draw: Callable[[], T]) -> T | None:
        return draw() if self.chance(probability) else None


def seconds(value: float) -> str:
    """A duration as scenario files write it."""
    return f"{value:g}s" if value == int(value) else f"{round(value * 1000)}ms"
