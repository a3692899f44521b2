"""Scores of predictions, by name and as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from . import _library as c

NAMES = [entry[0] for entry in c.Scores._fields_]


class Scores(Mapping[str, float]):
    """Those that there are, such as ``scores["rmse"]`` or ``scores.rmse``; docs/guide.md says how they read."""

    def __init__(self, scores: c.Scores) -> None:
        numbers = {name: getattr(scores, name) for name in NAMES}
        self._number = {name: number for name, number in numbers.items() if not math.isnan(number)}

    def __getitem__(self, name: str) -> float:
        return self._number[name]

    def __getattr__(self, name: str) -> float:
        try:
            return self.__dict__["_number"][name]
        except KeyError:
            raise AttributeError(f"there is no score '{name}' here") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._number)

    def __len__(self) -> int:
        return len(self._number)

    def __repr__(self) -> str:
        return "Scores(" + ", ".join(f"{name}={number:.5g}" for name, number in self._number.items()) + ")"
