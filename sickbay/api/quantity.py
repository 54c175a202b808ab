"""Amounts: Kubernetes resource quantities, and limits that are a count or a percentage."""

from __future__ import annotations

import re
from decimal import Decimal

IntOrPercent = int | str
"""A count, or a percentage as text matching PERCENT_PATTERN."""

PERCENT_PATTERN = r"^(100|[1-9]?[0-9])%$"
"""Whole percentages from 0 to 100 without leading zeros: so two of them order by size, then text."""

_PERCENT = re.compile(PERCENT_PATTERN)
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]+)?")
_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}


def resolve(limit: IntOrPercent, total: int, *, at_least: int = 0) -> int:
    """A limit in whole things out of `total`; a percentage is rounded down, but not below `at_least`.

    5 % of 30 is 1; 5 % of 10 is 0, and 1 with `at_least=1`. A count stands as it is. Raises ValueError with the value
    when it is neither.
    """
    if isinstance(limit, int):
        if limit < 0:
            raise ValueError(f"negative count: {limit}")
        return limit
    return max(total * percent(limit) // 100, at_least)


def percent(text: str) -> int:
    """The number in a percentage such as "20%". Raises ValueError with the text when it is none."""
    if not _PERCENT.fullmatch(text):
        raise ValueError(f"not a percentage: {text!r} (write a whole number from 0 to 100 and %, such as 20%)")
    return int(text[:-1])


def parse(amount: str | int | float) -> Decimal:
    """A resource quantity as a number: "500m" is 0.5, "8" is 8, "1Gi" is 1073741824. Raises ValueError otherwise."""
    if isinstance(amount, int | float):
        return Decimal(str(amount))
    match = _QUANTITY.fullmatch(amount)
    if match is None:
        raise ValueError(f"not a quantity: {amount!r} (write it like 8, 500m or 1Gi)")
    number, suffix = match[1], match[2] or ""
    if suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix not in _SUFFIXES:
        return Decimal(number + suffix)
    return Decimal(number) * _SUFFIXES.get(suffix, Decimal(1))
