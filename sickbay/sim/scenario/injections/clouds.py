"""Injections into what clouds and other outside systems say."""

from __future__ import annotations

from sickbay.sim.scenario.document import Reader
from sickbay.sim.scenario.injections.registry import Act, injection


@injection("cloudEvent")
def cloud_event(args: Reader) -> Act:
    raise args.error("do", "cloudEvent needs the component convert, which this version of Sickbay does not have")
