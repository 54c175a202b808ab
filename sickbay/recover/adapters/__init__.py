"""The kinds of jobs the loop knows, by name."""

from __future__ import annotations

from sickbay.recover.adapters.base import Adapter
from sickbay.recover.adapters.indexed_job import IndexedJob
from sickbay.recover.adapters.jobset import JobSet

ADAPTERS: dict[str, Adapter] = {"Job": IndexedJob(), "JobSet": JobSet()}
