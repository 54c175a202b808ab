"""Types of text that occur in many kinds, each with its limits for the CRD.

A limit is there so that an object stays below 64 KiB and the API server can bound the cost of its CEL rules; it says
nothing about decoding.
"""

from __future__ import annotations

from typing import Annotated

from sickbay.api.base import says
from sickbay.api.duration import MAX_LENGTH as DURATION_MAX
from sickbay.api.duration import PATTERN as DURATION_PATTERN
from sickbay.api.quantity import PERCENT_PATTERN

Duration = Annotated[str, says(pattern=DURATION_PATTERN, minLength=2, maxLength=DURATION_MAX)]
"""Read by `duration.parse_duration`."""
Time = Annotated[str, says(format="date-time", maxLength=64)]
"""RFC 3339, read by `clock.parse_time`."""
Count = Annotated[int, says(minimum=0, maximum=1_000_000)]
IntOrPercent = Annotated[
    int | str, says(pattern=PERCENT_PATTERN, maxLength=4, minimum=0, maximum=1_000_000, int_or_string=True)
]
"""Read by `quantity.resolve`."""

Name = Annotated[str, says(maxLength=253)]
"""An object's name."""
Uid = Annotated[str, says(maxLength=128)]
Word = Annotated[str, says(maxLength=63)]
"""A word for machines: an id, a source, a reason."""
FaultName = Annotated[str, says(maxLength=128)]
"""Name of a fault type."""
Key = Annotated[str, says(maxLength=317)]
"""A label or annotation key: prefix of 253, slash, name of 63."""
Line = Annotated[str, says(maxLength=512)]
Text = Annotated[str, says(maxLength=2048)]
LabelValue = Annotated[str, says(maxLength=63, pattern=r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")]
Expression = Annotated[str, says(maxLength=4096)]
"""A CEL expression."""
