"""Functions of the API server's CEL that the library lacks: lists and quantities.

A quantity is represented as a map with one private key, since the library takes no types of ours; it can be compared
and added, and is made by `quantity(text)` only. Left out, as nothing in a fault match has needed them: ip, cidr, url,
semver, authorizer, regular expression `find` (Python's engine has no bound on its time; use `matches`).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any

from cel_expr_python import cel

from sickbay.api import quantity

_KEY = "__quantity__"

_BOOL, _INT, _DOUBLE, _STRING, _DYN = (
    cel.Type.BOOL,
    cel.Type.INT,
    cel.Type.DOUBLE,
    cel.Type.STRING,
    cel.Type.DYN,
)
_LIST = cel.Type.List(_DYN)
_QUANTITY = cel.Type.Map(_STRING, _STRING)


@lru_cache(maxsize=1)
def kubernetes_functions() -> Any:
    """The extension to give to an environment."""
    return cel.CelExtension("kubernetes", [*_lists(), *_quantities()])


def _member(name: str, result: Any, parameters: list[Any], function: Callable[..., Any]) -> Any:
    overload = cel.Overload(f"k8s_{name}", return_type=result, parameters=parameters, is_member=True, impl=function)
    return cel.FunctionDecl(name, [overload])


def _global(name: str, result: Any, parameters: list[Any], function: Callable[..., Any]) -> Any:
    overload = cel.Overload(f"k8s_{name}", return_type=result, parameters=parameters, is_member=False, impl=function)
    return cel.FunctionDecl(name, [overload])


def _lists() -> list[Any]:
    return [
        _member("sum", _DYN, [_LIST], lambda items: sum(items)),
        _member("min", _DYN, [_LIST], lambda items: min(items)),
        _member("max", _DYN, [_LIST], lambda items: max(items)),
        _member("isSorted", _BOOL, [_LIST], lambda items: all(a <= b for a, b in pairwise(items))),
    ]


def _quantities() -> list[Any]:
    two = [_QUANTITY, _QUANTITY]
    return [
        _global("quantity", _QUANTITY, [_STRING], _make),
        _global("isQuantity", _BOOL, [_STRING], _is_quantity),
        _member("isGreaterThan", _BOOL, two, lambda a, b: _value(a) > _value(b)),
        _member("isLessThan", _BOOL, two, lambda a, b: _value(a) < _value(b)),
        _member("compareTo", _INT, two, lambda a, b: (_value(a) > _value(b)) - (_value(a) < _value(b))),
        _member("add", _QUANTITY, two, lambda a, b: {_KEY: str(_value(a) + _value(b))}),
        _member("sub", _QUANTITY, two, lambda a, b: {_KEY: str(_value(a) - _value(b))}),
        _member("isInteger", _BOOL, [_QUANTITY], lambda a: _value(a) == _value(a).to_integral_value()),
        _member("asInteger", _INT, [_QUANTITY], _as_integer),
        _member("asApproximateFloat", _DOUBLE, [_QUANTITY], lambda a: float(_value(a))),
        _member("sign", _INT, [_QUANTITY], lambda a: (_value(a) > 0) - (_value(a) < 0)),
    ]


def _make(text: str) -> dict[str, str]:
    return {_KEY: str(quantity.parse(text))}


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except ValueError:
        return False
    return True


def _value(made: dict[str, str]) -> Decimal:
    if _KEY not in made:
        raise ValueError("not a quantity: make one with quantity('8')")
    return Decimal(made[_KEY])


def _as_integer(made: dict[str, str]) -> int:
    value = _value(made)
    if value != value.to_integral_value():
        raise ValueError(f"quantity {value} is not an integer")
    return int(value)
