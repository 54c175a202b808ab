"""Counters of the Kubernetes layer, on the registry that the process hands in.

Labels are kinds, verbs and queue names: few and fixed. Never a node or a pod name.
"""

from __future__ import annotations

from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Gauge

from sickbay.kube.tallies import Counts, Spreads

_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class KubeMetrics:
    """One set per registry; a component that is given none counts into a registry of its own that nobody reads."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = registry or CollectorRegistry()
        self.requests = Counts(
            "sickbay_api_requests", "Answers of the API server (code 0: none came)", ["verb", "code"], registry=registry
        )
        self.request_seconds = Spreads(
            "sickbay_api_request_seconds", "Until the answer", ["verb"], registry=registry, buckets=_SECONDS
        )
        self.throttled = Counter(
            "sickbay_api_throttled", "Requests repeated because the server asked to wait (429)", registry=registry
        )
        self.malformed = Counter(
            "sickbay_malformed_objects", "Objects set aside because they do not decode", ["kind"], registry=registry
        )
        self.watch_events = Counts("sickbay_watch_events", "Watch events", ["kind", "type"], registry=registry)
        self.watch_gaps = Counter(
            "sickbay_watch_gaps",
            "Watches that lost their position (expired, garbled, rewound), objects they failed to tell of (missed), "
            "times when nobody led for over a minute (absence)",
            ["kind", "cause"],
            registry=registry,
        )
        self.watch_failures = Counter(
            "sickbay_watch_failures", "Lists and watches that ended with an error", ["kind", "error"], registry=registry
        )
        self.informer_objects = Gauge(
            "sickbay_informer_objects", "Objects known", ["component", "kind"], registry=registry
        )
        self.informer_age = Gauge(
            "sickbay_informer_age_seconds",
            "Since the API server was last heard of",
            ["component", "kind"],
            registry=registry,
        )
        self.handler_errors = Counter(
            "sickbay_handler_errors", "Exceptions in change handlers", ["kind"], registry=registry
        )
        self.queue_depth = Gauge("sickbay_queue_depth", "Keys waiting", ["queue"], registry=registry)
        self.queue_adds = Counts("sickbay_queue_adds", "Keys added", ["queue"], registry=registry)
        self.queue_retries = Counter(
            "sickbay_queue_retries", "Keys put back after a failure", ["queue"], registry=registry
        )
        self.queue_wait_seconds = Spreads(
            "sickbay_queue_wait_seconds", "In the queue", ["queue"], registry=registry, buckets=_SECONDS
        )
        self.queue_work_seconds = Spreads(
            "sickbay_queue_work_seconds", "In a worker", ["queue"], registry=registry, buckets=_SECONDS
        )
        self.leader = Gauge("sickbay_leader", "1 while this process holds the lease", ["lease"], registry=registry)
        self.lease_lost = Counter("sickbay_lease_lost", "Leases lost against our will", ["lease"], registry=registry)
        self.events_sent = Counter("sickbay_events_sent", "Events written, repetitions too", registry=registry)
        self.events_dropped = Counter("sickbay_events_dropped", "Events not written", ["cause"], registry=registry)


class QueueMetrics:
    """The series of one queue. To look a series up by its labels costs more than to count in it."""

    def __init__(self, metrics: KubeMetrics, queue: str) -> None:
        self.depth = metrics.queue_depth.labels(queue)
        self.adds = metrics.queue_adds.labels(queue)
        self.retries = metrics.queue_retries.labels(queue)
        self.wait_seconds = metrics.queue_wait_seconds.labels(queue)
        self.work_seconds = metrics.queue_work_seconds.labels(queue)


class RequestMetrics:
    """The series of a client's requests, for the same reason."""

    def __init__(self, metrics: KubeMetrics) -> None:
        self._count = lru_cache(maxsize=256)(metrics.requests.labels)
        self._seconds = lru_cache(maxsize=16)(metrics.request_seconds.labels)

    def lost(self, verb: str) -> None:
        self._count(verb, "0").inc()

    def answered(self, verb: str, code: int, seconds: float) -> None:
        self._count(verb, str(code)).inc()
        self._seconds(verb).observe(seconds)
