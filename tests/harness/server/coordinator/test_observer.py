"""What a measuring program sees of a coordinator, and the rule that it may bring."""

import time

import pytest

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.server.coordinator.serving import make_rule
from tests.certificates import client_context, client_pem
from tests.harness.server.coordinator.helpers import CHECK_IN, upload_request
from tests.harness.server.coordinator.live import COORDINATOR, TIMEOUT_SECONDS, Live, call, exchange, place


class Seen:
    """An observer that keeps what it is told."""

    def __init__(self):
        self.calls, self.downloads = [], []

    def called(self, device, method, request_bytes, answer_bytes):
        self.calls.append((device, method, request_bytes, answer_bytes))

    def downloaded(self, device, artifact, sent_bytes):
        self.downloads.append((device, artifact, sent_bytes))


@pytest.fixture
def device(tmp_path, authority):
    return client_context(authority, client_pem(authority, tmp_path))


def get(live, device, digest, method="GET", **headers):
    return exchange(live.connection(device), method, f"/artifacts/{digest}", headers=headers)


def test_the_observer_sees_each_answered_call_with_the_bytes_of_its_messages(tmp_path, authority, device):
    seen = Seen()
    with Live(tmp_path / "folder", authority, observer=seen) as live:
        answer = call(live, device, "CheckIn", CHECK_IN, pb.CheckInResponse)
        status, _, _ = exchange(live.connection(device), "POST", COORDINATOR + "Upload", b"\xff")
        assert status == 400
    ((who, *rest),) = seen.calls
    assert rest == ["CheckIn", len(CHECK_IN), answer.ByteSize()]
    assert len(who) > 8


def test_the_observer_is_told_what_each_download_is_and_how_much_was_sent(tmp_path, authority, device):
    seen = Seen()
    with Live(tmp_path / "folder", authority, goal=1, over_selection=1, rounds=1, observer=seen) as live:
        first = live.coordinator.version.manifest
        call(live, device, "Upload", upload_request(place(live, device, CHECK_IN), 1), pb.UploadResponse)
        ends = time.monotonic() + TIMEOUT_SECONDS
        while live.coordinator.version.manifest.model_version == 1:
            assert time.monotonic() < ends, "the round did not end"
            call(live, device, "GetManifest", CHECK_IN, pb.GetManifestResponse)
        newest = live.coordinator.version.manifest
        wanted = {
            "codes": newest.codes,
            "catalogue": newest.catalogue_parts[0],
            "open_rows": newest.open_rows,
        }
        for artifact in wanted.values():
            assert get(live, device, artifact.sha256.hex())[0] == 200
        assert get(live, device, first.codes.sha256.hex(), Range="bytes=3-9")[0] == 206
        assert get(live, device, "0" * 64)[0] == 404
        assert get(live, device, newest.codes.sha256.hex(), **{"If-None-Match": "*"})[0] == 304
        expected = [(kind, artifact.size_bytes) for kind, artifact in wanted.items()]
    assert [(kind, size) for _, kind, size in seen.downloads] == [*expected, ("codes", 7)]


def test_a_delta_is_called_one(tmp_path, authority, device):
    """Random codes of 30 items leave no delta that is smaller than they are, so one is put beside them."""
    with Live(tmp_path / "folder", authority) as live:
        coordinator = live.coordinator
        manifest = type(coordinator.version.manifest).FromString(coordinator.version.serialised)
        manifest.codes_deltas.add(from_sha256=bytes(32)).artifact.sha256 = b"\x01" * 32
        coordinator._manifests.append(manifest.SerializeToString())
        assert coordinator.artifact_kind("01" * 32) == "delta"
        assert coordinator.artifact_kind(manifest.open_rows.sha256.hex()) == "open_rows"
        assert coordinator.artifact_kind("02" * 32) == "unknown"


def test_the_rule_that_is_passed_is_the_one_that_aggregates(tmp_path, authority, device):
    def zeroes(settings, items):
        rule = make_rule(settings, items)
        rule.own_codes[:] = 0
        return rule

    with Live(tmp_path / "folder", authority, make_rule=zeroes) as live:
        codes = live.coordinator.version.manifest.codes
        assert get(live, device, codes.sha256.hex())[2] == bytes(codes.size_bytes)
