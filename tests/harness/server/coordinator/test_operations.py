"""The door for people and Prometheus."""

import json
import re
import time
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest

from lightfr_harness.server.coordinator.operations import PAGE_REFRESH_SECONDS, parse_report
from tests.harness.server.coordinator.helpers import CHECK_IN, upload_request
from tests.harness.server.coordinator.live import COORDINATOR, Live, exchange, place

REPORT = {"model_version": 1, "users": 40, "hit_rate": 0.785, "ndcg": 0.489}
JSON = {"Content-Type": "application/json"}


class WellFormed(HTMLParser):
    """Collects tags, text and addresses, and checks that every element is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text, self.addresses = [], set(), [], []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "action")]
        if tag not in ("meta", "br", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def page(live):
    status, headers, body = live.operations("GET", "/")
    assert (status, headers.get_content_type()) == (200, "text/html")
    parsed = WellFormed()
    parsed.feed(body.decode())
    assert not parsed.open
    assert not parsed.addresses
    assert b"http://" not in body
    assert b"https://" not in body
    return parsed, " ".join(parsed.text)


def metric(live, name):
    _, _, body = live.operations("GET", "/metrics")
    (value,) = re.findall(rf"^{re.escape(name)} (\S+)$", body.decode(), re.MULTILINE)
    return float(value)


def test_the_page_shows_the_round_the_history_and_the_accuracy(live, device):
    _, text = page(live)
    assert "Round 1: open" in text
    assert "None has ended yet." in text
    assignment = place(live, device, CHECK_IN)
    assert exchange(live.connection(device), "POST", COORDINATOR + "Upload", upload_request(assignment, 1))[0] == 200
    _, text = page(live)
    assert "1 of 3 uploads" in text
    assert "1 of 5" in text
    assert live.operations("POST", "/accuracy", json.dumps(REPORT), JSON)[0] == 204
    parsed, text = page(live)
    assert "hit rate 0.785, NDCG 0.489 at version 1, on 40 held-out devices" in text
    assert {"svg", "path"} <= parsed.tags
    assert {"header", "main", "section", "progress", "footer"} <= parsed.tags


def test_the_coordinator_asks_for_a_refresh_and_a_saved_page_does_not(live):
    _, headers, body = live.operations("GET", "/")
    assert headers["Refresh"] == str(PAGE_REFRESH_SECONDS)
    assert b"http-equiv" not in body


def test_metrics_count_what_happened(live, device):
    assignment = place(live, device, CHECK_IN)
    body = upload_request(assignment, 1)
    exchange(live.connection(device), "POST", COORDINATOR + "Upload", body)
    exchange(live.connection(device), "POST", COORDINATOR + "Upload", b"\xff")
    assert metric(live, "lightfr_uploads_total") == 1
    assert metric(live, "lightfr_upload_bytes_total") == len(body)
    assert metric(live, 'lightfr_check_ins_total{answer="assignment"}') == 1
    assert metric(live, 'lightfr_refusals_total{reason="malformed"}') == 1
    assert metric(live, 'lightfr_request_seconds_count{method="Upload"}') == 2
    assert metric(live, "lightfr_model_version") == 1
    assert metric(live, "lightfr_round_uploads") == 1
    assert metric(live, "lightfr_received_bytes_total") == len(CHECK_IN) + len(body) + 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_it_answers_to_the_names_of_loopback_with_its_port(live, host):
    port = urlsplit(live.addresses["operations"]).port
    assert live.operations("GET", "/metrics", headers={"Host": f"{host}:{port}"})[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example:{port}", "127.0.0.1", "localhost:1", "127.0.0.1.evil.example:{port}", ""]
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("GET", "/metrics"), ("POST", "/accuracy"), ("GET", "/no")])
def test_a_page_that_reaches_it_under_another_name_is_told_nothing(live, host, method, path):
    port = urlsplit(live.addresses["operations"]).port
    named = {"Host": host.format(port=port)}
    status, _, body = live.operations(method, path, json.dumps(REPORT), JSON | named)
    assert status == 421
    assert body == f"This port answers to http://127.0.0.1:{port} only: use that address.\n".encode()


def test_health_says_when_nothing_can_be_promised(live):
    assert live.operations("GET", "/healthz")[0] == 200
    assert live.operations("GET", "/readyz")[0] == 200
    live.coordinator.failed.set()
    assert live.operations("GET", "/healthz")[0] == 503
    assert live.operations("GET", "/readyz")[0] == 503


@pytest.mark.parametrize(
    "wrong",
    [
        {"users": 0},
        {"users": True},
        {"model_version": 2},
        {"model_version": 0},
        {"hit_rate": 1.1},
        {"ndcg": "0.5"},
        {"ndcg": float("nan")},
        {"extra": 1},
    ],
)
def test_a_report_outside_its_ranges_is_refused(wrong):
    from lightfr.errors import InvalidInputError

    parse_report(json.dumps(REPORT).encode(), 1)
    with pytest.raises(InvalidInputError):
        parse_report(json.dumps(REPORT | wrong).encode(), 1)


@pytest.mark.parametrize("body", [b"", b"[]", b"nothing", b"\xff", b"{}", b"[" * 1000, b'{"users": 1}'])
def test_a_report_that_is_none_is_refused_and_nothing_is_shown(live, body):
    assert live.operations("POST", "/accuracy", body, JSON)[0] == 400
    assert live.operations("POST", "/accuracy", json.dumps(REPORT), {"Content-Type": "text/plain"})[0] == 415
    assert "Accuracy" not in page(live)[1]


def test_logs_are_json_lines_without_devices(live, device, authority):
    call_in = place(live, device, CHECK_IN)
    assert call_in.model_version == 1
    events = [json.loads(line) for line in live.log.getvalue().splitlines()]
    assert events[0]["event"] == "started"
    for known in live.coordinator.book.current.assigned:
        assert known not in live.log.getvalue()


def test_reports_survive_a_restart(tmp_path, authority):
    from tests.harness.server.coordinator.live import Live

    with Live(tmp_path / "f", authority) as live:
        live.operations("POST", "/accuracy", json.dumps(REPORT), JSON)
    with Live(tmp_path / "f", authority) as live:
        assert "hit rate 0.785" in page(live)[1]


@pytest.mark.parametrize(("tolerance", "warns"), [(0.02, True), (0.05, False), (None, False)])
def test_a_hit_rate_that_falls_by_more_than_allowed_is_a_warning(tmp_path, authority, device, tolerance, warns):
    with Live(tmp_path / "folder", authority, goal=1, tolerance=tolerance) as live:
        report(live, 1, 0.5)
        assert "has fallen" not in page(live)[1]
        body = upload_request(place(live, device, CHECK_IN), 1)
        exchange(live.connection(device), "POST", COORDINATOR + "Upload", body)
        while live.coordinator.version.manifest.model_version == 1:
            time.sleep(0.01)
        report(live, 2, 0.47)
        assert ("has fallen" in page(live)[1]) == warns
        assert ("accuracy_fell" in live.log.getvalue()) == warns
        report(live, 2, 0.5)
        assert "has fallen" not in page(live)[1]


def report(live, version, hit_rate):
    body = json.dumps({**REPORT, "model_version": version, "hit_rate": hit_rate})
    assert live.operations("POST", "/accuracy", body, JSON)[0] == 204
