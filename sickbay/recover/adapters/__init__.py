"""The kinds of jobs the loop knows, by name."""

from __future__ import annotations

from sickbay.recover.adapters.base import Adapter
from sickbay.recover.adapters.indexed_job import IndexedJob
from sickbay.recover.adapters.jobset import JobSet

ADAPTERS: dict[str, Adapter] = {"JobSet": JobSet(), "Job": IndexedJob()}
"""By kind; the first one that knows a pod has it."""
