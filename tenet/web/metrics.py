"""What `/metrics` tells, in Prometheus' text format. Every app has a registry of its own."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """Counters of one app."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self._registry}
        self.requests = Counter(
            "tenet_requests_total",
            "Requests by route, method and status",
            ("route", "method", "status"),
            **own,
        )
        self.seconds = Histogram(
            "tenet_request_seconds",
            "Seconds from a request to its answer",
            ("route",),
            buckets=SECONDS,
            **own,
        )
        self.waiting = Gauge("tenet_queue_waiting", "Pictures and other work that wait for the model", **own)
        self.refused = Counter("tenet_queue_refused_total", "Work refused because the queue was full", **own)
        self.batch = Histogram(
            "tenet_batch_pictures", "Pictures looked at together", buckets=(1, 2, 4, 8, 16), **own
        )
        self.pictures = Counter("tenet_pictures_total", "Pictures looked at", **own)
        self.open = Gauge("tenet_requests_open", "Requests that are being answered", **own)

    def text(self) -> bytes:
        """The page of `/metrics`."""
        return generate_latest(self._registry)
