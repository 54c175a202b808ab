"""One log line, freed from its transport.

A kernel message reaches us in many wrappings: as a `/dev/kmsg` record, from `dmesg` in all its forms and in colour,
through syslog (RFC 3164 and 5424), the journal (text and JSON), Talos, with or without the printk caller, folded by
rsyslog. A message
is judged by its own words only, so everything in front of it is taken off here, and what the wrapping says about time
and origin is kept.

Origin decides trust. The kernel marks its own records with facility 0 and forces another facility on whatever user
space writes into `/dev/kmsg`; a text line carries a tag instead (`kernel:`). Where neither is there the origin stays
unknown, which offline decoding accepts and the live agent does not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

import msgspec

MAX_LINE = 8192
"""Characters looked at; `/dev/kmsg` never hands out more than 8 KiB, and no rule needs more."""

KERNEL_FACILITY = 0
_YEAR = 2000
"""Stands for the year that RFC 3164 does not print. Only differences are ever taken; a leap year, for 29 February."""


class Origin(Enum):
    """Who wrote a line, as far as the wrapping tells."""

    KERNEL = "kernel"
    INIT = "init"
    """PID 1, systemd."""
    USER = "user"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Record:
    """One message. `text` may hold several lines. Not frozen for speed only: nobody changes one."""

    text: str
    uptime: float | None = None
    """Seconds since boot, where printed."""
    wall: float | None = None
    """Seconds since the epoch, where printed; of the year 2000 where the line names no year."""
    facility: int | None = None
    """Syslog facility, where the wrapping carries one."""
    tag: str = ""
    """Program name of a syslog or journal line; "" when there is none."""
    pid: int | None = None
    repeats: int = 0
    """N of "message repeated N times", 0 for a line of its own."""
    sequence: int | None = None
    """Number of a `/dev/kmsg` record."""
    malformed: bool = False
    """True when the wrapping was begun in a known form and is broken."""

    @property
    def origin(self) -> Origin:
        if self.facility == KERNEL_FACILITY:
            return Origin.KERNEL
        if self.tag == "kernel" and self.facility is None:
            return Origin.KERNEL
        if self.tag == "systemd" and self.pid == 1:
            return Origin.INIT
        if self.facility is None and not self.tag:
            return Origin.UNKNOWN
        return Origin.USER


_KMSG = re.compile(r"(\d{1,7}),(\d{1,20}),(\d{1,20}),([^;\n]{0,80});", re.ASCII)
_KMSG_BEGUN = re.compile(r"\d{1,7},\d{1,20},", re.ASCII)
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
_REPEATED = re.compile(
    r"message repeated (\d{1,9}) times: \[ ?(?:\[?\s*\d{1,10}\.\d{1,9}\]\s*)?(.*?)\]?\s*\Z", re.DOTALL
)
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,16}[mK]")

_MONTHS = {
    "jan": 1,
    "feb": 2,
    "mar": 3,
    "apr": 4,
    "may": 5,
    "jun": 6,
    "jul": 7,
    "aug": 8,
    "sep": 9,
    "oct": 10,
    "nov": 11,
    "dec": 12,
}
_LEVELS = "emerg|alert|crit|err|error|warn|warning|notice|info|debug"
_FACILITIES = "kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local[0-7]"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)?"
_DELTA = r"(?:\ <\s*\d{1,10}\.\d{1,9}>)?"
"""What `dmesg -d` adds to the time: seconds since the message before."""
_PREFIX = re.compile(
    rf"""(?:
      <(?P<pri>\d{{1,3}})>(?:1\ (?P<v1>))?
    | \[\s*(?P<uptime>\d{{1,10}}\.\d{{1,9}}){_DELTA}\]
    | \[\s*\+\d{{1,10}}\.\d{{1,9}}\]
    | \[\s*[TC]\d{{1,10}}\]
    | \[(?P<ctime>[A-Z][a-z]{{2}}\ [A-Z][a-z]{{2}}\ {{1,2}}\d{{1,2}}\ \d\d:\d\d:\d\d\ \d{{4}}){_DELTA}\]
    | \[[A-Z][a-z]{{2}}\ ?\d{{1,2}}\ \d\d:\d\d\]
    | \[(?P<talos>\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?{_ZONE})\]:?
    | [A-Z][a-z]{{2}}\ (?P<full>\d{{4}}-\d\d-\d\d\ \d\d:\d\d:\d\d(?:\.\d{{1,9}})?)\ (?:[A-Z]{{2,5}}|[+-]\d{{2,4}})(?=\s)
    | (?P<unix>\d{{9,11}}\.\d{{1,9}})(?=\s)
    | (?P<iso>\d{{4}}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?{_ZONE})(?=\s)
    | (?P<syslog>[^\s\[\]:]{{1,8}}\ {{1,2}}\d{{1,2}}\ \d\d:\d\d:\d\d(?:\.\d{{1,9}})?)(?=\s)
    | (?P<clock>\d\d:\d\d:\d\d(?:\.\d{{1,9}})?)(?=\s)
    | (?P<facility>{_FACILITIES})\s*:\s*(?:{_LEVELS})\s*:
    | (?P<dotted>{_FACILITIES})\.(?:{_LEVELS})(?=\s)
    | (?:[\w.-]{{1,64}}\ )?(?P<kernel>kernel)(?:\[\d{{1,10}}\])?:
    | (?:[\w.-]{{1,64}}\ )?(?P<systemd>systemd)\[1\]:
    | [\w.-]{{1,64}}:\s(?=\[\s*\d{{1,10}}\.\d|\[\d{{4}}-|kern\s*:)
    )\s*""",
    re.VERBOSE | re.ASCII,
)
_RFC5424 = re.compile(
    r"(?P<iso>\S{1,40}) (?P<host>\S{1,255}) (?P<app>\S{1,48}) (?P<proc>\S{1,128}) \S{1,32} (?:-|(?:\[[^\]]*\])+) ?"
)
_TAGGED = re.compile(r"(?:(?P<host>[^\s:\[\]]{1,255})\s+)?(?P<tag>[^\s:\[\]]{1,64})(?:\[(?P<pid>\d{1,10})\])?:\s+")
_TAG_ALONE = re.compile(r"(?P<tag>[^\s:\[\]]{1,64})\[(?P<pid>\d{1,10})\]:\s+")
_MAX_PREFIXES = 9


def parse(line: str) -> Record:
    """Take the transport off one line. Never raises; what cannot be read stays in the text."""
    line = clean(line[:MAX_LINE]).rstrip("\r\n")
    if line.startswith('{"'):
        return _journal_json(line)
    if match := _KMSG.match(line):
        return _kmsg(line, match)
    if _KMSG_BEGUN.match(line):
        return Record(text=line, malformed=True)
    return _text(line)


def clean(line: str) -> str:
    """The line without the bytes that only dress it: NULs (UTF-16 read as bytes has them too) and terminal colours."""
    if "\x00" in line:
        line = line.replace("\x00", "")
    if "\x1b" in line:
        line = _COLOUR.sub("", line)
    return line


def _kmsg(line: str, match: re.Match[str]) -> Record:
    """`prio,seq,usec,flags;text`, then ` KEY=value` lines that belong to it."""
    text, _, _ = line[match.end() :].partition("\n ")
    if "\\x" in text:
        text = _ESCAPE.sub(lambda m: chr(int(m[1], 16)), text)
    tag, pid, body = "", None, text
    facility = int(match[1]) >> 3
    if facility and (named := _TAG_ALONE.match(text)):
        tag, pid, body = named["tag"], int(named["pid"]), text[named.end() :]
    return Record(
        text=_unfold(body),
        uptime=int(match[3]) / 1e6,
        facility=facility,
        tag=tag,
        pid=pid,
        sequence=int(match[2]),
    )


def _journal_json(line: str) -> Record:
    """One entry of `journalctl -o json`. MESSAGE is an array of bytes when it is not UTF-8."""
    try:
        entry = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return Record(text=line, malformed=True)
    if not isinstance(entry, dict):
        return Record(text=line, malformed=True)
    text = _journal_text(entry.get("MESSAGE"))
    if text is None:
        return Record(text="", malformed=True)
    transport = entry.get("_TRANSPORT")
    facility = _number(entry.get("SYSLOG_FACILITY"))
    if transport is not None:
        facility = KERNEL_FACILITY if transport == "kernel" else max(facility or 0, 1)
    real = _number(entry.get("__REALTIME_TIMESTAMP"))
    boot = _number(entry.get("_SOURCE_MONOTONIC_TIMESTAMP"))
    tag = entry.get("SYSLOG_IDENTIFIER")
    repeats, text = _repeated(text)
    return Record(
        text=_unfold(text),
        uptime=boot / 1e6 if boot is not None else None,
        wall=real / 1e6 if real is not None else None,
        facility=facility,
        tag=tag if isinstance(tag, str) else "",
        pid=_number(entry.get("_PID")),
        repeats=repeats,
    )


def _journal_text(message: object) -> str | None:
    if isinstance(message, str):
        return message[:MAX_LINE]
    if isinstance(message, list):
        values = [byte for byte in message[:MAX_LINE] if isinstance(byte, int) and 0 <= byte < 256]
        return bytes(values).decode("utf-8", "replace")
    return None


def _number(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return None


@dataclass(slots=True)
class _Prefix:
    """What the prefixes of a text line said."""

    at: int = 0
    uptime: float | None = None
    wall: float | None = None
    facility: int | None = None
    tag: str = ""
    pid: int | None = None


def _text(line: str) -> Record:
    prefix = _Prefix(at=len(line) - len(line.lstrip(" \t\ufffd\ufeff")))
    for _ in range(_MAX_PREFIXES):
        match = _PREFIX.match(line, prefix.at)
        if match is None:
            break
        stamped = _take(prefix, match)
        prefix.at = match.end()
        if match["v1"] is not None:
            _take_rfc5424(prefix, line)
        elif stamped and not prefix.tag:
            _take_tag(prefix, line)
    repeats, text = _repeated(line[prefix.at :])
    return Record(
        text=_unfold(text),
        uptime=prefix.uptime,
        wall=prefix.wall,
        facility=prefix.facility,
        tag=prefix.tag,
        pid=prefix.pid,
        repeats=repeats,
    )


_SYSLOG_TIMES = ("iso", "full", "unix", "syslog", "clock")
"""Times in front of host and program; one with a comma is `dmesg --time-format iso`, after which the message begins."""
_TIMES = (*_SYSLOG_TIMES, "talos", "ctime")


def _take(prefix: _Prefix, match: re.Match[str]) -> bool:
    """Note what one prefix says. True when it is a time after which syslog prints host and program."""
    kind = match.lastgroup
    if kind is None:
        return False
    value = match[kind]
    if match["pri"] is not None:
        prefix.facility = int(match["pri"]) >> 3
    elif kind == "uptime":
        prefix.uptime = float(value)
    elif kind in ("facility", "dotted"):
        prefix.facility = KERNEL_FACILITY if value == "kern" else 1
    elif kind in ("kernel", "systemd"):
        prefix.tag = value
        prefix.pid = 1 if kind == "systemd" else None
    elif kind in _TIMES:
        prefix.wall = _seconds(kind, value)
        return kind in _SYSLOG_TIMES and "," not in value
    return False


def _take_rfc5424(prefix: _Prefix, line: str) -> None:
    if match := _RFC5424.match(line, prefix.at):
        prefix.wall = _seconds("iso", match["iso"])
        prefix.tag = match["app"] if match["app"] != "-" else ""
        prefix.pid = _number(match["proc"])
        prefix.at = match.end()


def _take_tag(prefix: _Prefix, line: str) -> None:
    """Host and program after a syslog time. `kernel:` alone is left to the prefixes: some write it without a host.

    A word and a colon without a host and a process number are the beginning of the message (`NVRM: ..`).
    """
    at = prefix.at
    if line.startswith(("kernel:", "kern:", "[", "<"), at):
        return
    match = _TAGGED.match(line, at) or _TAG_ALONE.match(line, at)
    if match and (match.groupdict().get("host") or match["pid"]):
        prefix.tag = match["tag"]
        prefix.pid = _number(match["pid"])
        prefix.at = match.end()


def _seconds(kind: str, text: str) -> float | None:
    """Seconds since the epoch; None when it only looks like a time. A year-less time gets the year 2000."""
    try:
        if kind == "unix":
            return float(text)
        if kind in ("iso", "full", "talos"):
            moment = datetime.fromisoformat(text.replace(",", ".").replace("/", "-"))
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        if kind == "ctime":
            return datetime.strptime(f"{text}+0000", "%a %b %d %H:%M:%S %Y%z").timestamp()
        day = text.split() if kind == "syslog" else ["jan", "1", text]
        hours, minutes, seconds = day[2].split(":")
        month = _MONTHS.get(day[0][:3].lower(), 1)
        start = datetime(_YEAR, month, int(day[1]), int(hours), int(minutes), tzinfo=UTC).timestamp()
        return start + float(seconds)
    except (ValueError, OverflowError):
        return None


def _repeated(text: str) -> tuple[int, str]:
    """rsyslog folds a run of equal lines into one that quotes the line."""
    if text.startswith("message repeated") and (match := _REPEATED.match(text)):
        return int(match[1]), match[2]
    return 0, text


_FOLDED = re.compile(r"#012|\\n|\n")


def _unfold(text: str) -> str:
    """Line breaks as such: rsyslog writes them as `#012`, people and case files as the two characters `\\n`."""
    if "#012" in text or "\\n" in text:
        return _FOLDED.sub("\n", text).replace("#011", "\t")
    return text
