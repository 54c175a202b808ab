"""What makes a `metav1.LabelSelector` invalid (apimachinery/pkg/apis/meta/v1/validation)."""

from __future__ import annotations

from sickbay.apiserver.errors import Cause, Obj
from sickbay.apiserver.metadata import invalid_value, label_value_problems, qualified_name_problems, required

_WITH_VALUES, _WITHOUT = ("In", "NotIn"), ("Exists", "DoesNotExist")


def check_selector(selector: Obj | None, field: str) -> list[Cause]:
    if not selector:
        return []
    causes: list[Cause] = []
    for key, value in (selector.get("matchLabels") or {}).items():
        causes += [invalid_value(f"{field}.matchLabels", key, problem) for problem in qualified_name_problems(key)]
        causes += [invalid_value(f"{field}.matchLabels", value, problem) for problem in label_value_problems(value)]
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        causes += _check_expression(expression, f"{field}.matchExpressions[{index}]")
    return causes


def _check_expression(expression: Obj, field: str) -> list[Cause]:
    key, operator, values = expression.get("key", ""), expression.get("operator", ""), expression.get("values") or []
    causes: list[Cause] = []
    if operator in _WITH_VALUES and not values:
        causes.append(required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in _WITHOUT and values:
        why = "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        causes.append(Cause("FieldValueForbidden", why, f"{field}.values"))
    elif operator not in (*_WITH_VALUES, *_WITHOUT):
        causes.append(invalid_value(f"{field}.operator", operator, "not a valid selector operator"))
    causes += [invalid_value(f"{field}.key", key, problem) for problem in qualified_name_problems(key)]
    for index, value in enumerate(values):
        causes += [invalid_value(f"{field}.values[{index}]", value, problem) for problem in label_value_problems(value)]
    return causes
