"""What the coordinator counts, for Prometheus and for the status page. Totals only, nothing by device."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Metrics:
    """All counters of one coordinator, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        make = {"namespace": "lightfr", "registry": self.registry}
        self.rounds = Counter("rounds", "Rounds that ended.", ["state"], **make)
        self.uploads = Counter("uploads", "Uploads that became durable.", **make)
        self.upload_bytes = Counter("upload_bytes", "Bytes of durable uploads.", **make)
        self.check_ins = Counter("check_ins", "Check-ins by answer.", ["answer"], **make)
        self.refusals = Counter("refusals", "Requests refused, by reason.", ["reason"], **make)
        self.received = Counter("received_bytes", "Bytes of request bodies.", **make)
        self.sent = Counter("sent_bytes", "Bytes of response bodies.", **make)
        self.connections = Gauge("connections", "Connections open now.", **make)
        self.seconds = Histogram("request_seconds", "Time to answer a request.", ["method"], **make)
        self.aggregation_seconds = Histogram("aggregation_seconds", "Time to make a version of a round.", **make)
        self.model_version = Gauge("model_version", "The newest version.", **make)
        self.round_phase = Gauge("round_phase", "Phase of the current round, 1 to 4; 0 without phases.", **make)
        self.phase_devices = Gauge("phase_devices", "Devices that delivered, in the current round.", ["phase"], **make)
        self.privacy = Gauge("privacy_mode", "1 for the mode in use.", ["mode"], **make)
        self.round_uploads = Gauge("round_uploads", "Uploads in the current round.", **make)

    def received_total(self) -> float:
        """Bytes of request bodies since the start."""
        return _value(self.received)

    def sent_total(self) -> float:
        """Bytes of response bodies since the start."""
        return _value(self.sent)


def _value(counter: Counter) -> float:
    return next(
        sample.value for metric in counter.collect() for sample in metric.samples if sample.name.endswith("_total")
    )
