"""The port for web pages: manifests and artifacts for one origin, over TLS without client certificates."""

import asyncio
import hashlib
import os
import ssl
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest
from aiohttp.test_utils import TestClient, TestServer

from lightfr.device import Trust
from lightfr.model.manifest import Manifest
from lightfr_harness.server.coordinator import browsers
from lightfr_harness.server.coordinator.browsers import FOR_BROWSERS, BrowserPort, Certificate
from lightfr_harness.server.coordinator.limits import Connections
from lightfr_harness.server.coordinator.options import SettingsError
from tests.certificates import server_pem
from tests.harness.server.coordinator.live import COORDINATOR, Live, exchange

ORIGIN = "https://app.example"


@pytest.fixture(scope="module")
def running(tmp_path_factory, authority):
    with Live(tmp_path_factory.mktemp("browsers") / "folder", authority, browsers=BrowserPort(origin=ORIGIN)) as live:
        yield live


@pytest.fixture
def ask(running, authority):
    def ask(path, method="GET", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return exchange(running.connection(stranger(authority), "web"), method, path, headers=named)

    return ask


def stranger(authority):
    """TLS as a browser speaks it, which has no client certificate."""
    return ssl.create_default_context(cafile=authority.coordinator / "authority.pem")


def test_without_being_asked_for_it_the_port_is_closed(live):
    assert "web" not in live.addresses


def test_a_page_gets_the_signed_manifest_and_what_it_names(authority, ask):
    status, headers, signed = ask("/manifest", Origin=ORIGIN)
    assert (status, headers["Content-Type"]) == (200, "application/proto")
    manifest = Manifest(signed, Trust(authority.coordinator / "trust.pem"))
    for file in manifest.files:
        status, headers, content = ask(f"/artifacts/{file.sha256.hex()}", Origin=ORIGIN)
        assert (status, hashlib.sha256(content).digest()) == (200, file.sha256)
        assert headers["Access-Control-Allow-Origin"] == ORIGIN
        assert "immutable" in headers["Cache-Control"]


def test_only_the_one_origin_may_read_answers(ask):
    for origin in (ORIGIN, "https://other.example"):
        _, headers, _ = ask("/manifest", Origin=origin)
        assert headers["Access-Control-Allow-Origin"] == ORIGIN
        assert "Access-Control-Allow-Credentials" not in headers
        assert "Server" not in headers


def test_a_manifest_that_the_page_has_is_not_sent_again(ask):
    _, headers, _ = ask("/manifest")
    assert headers["Cache-Control"] == "no-cache"
    status, _, body = ask("/manifest", If_None_Match=headers["ETag"])
    assert (status, body) == (304, b"")
    assert ask("/manifest", If_None_Match='"another"')[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/manifest", 200),
        ("POST", "/manifest", 405),
        ("OPTIONS", "/manifest", 405),
        ("PUT", "/artifacts/" + "0" * 64, 405),
        ("GET", "/artifacts/" + "0" * 64, 404),
        ("GET", "/artifacts/..%2fsettings.json", 404),
        ("GET", "/", 404),
        ("GET", "/metrics", 404),
        ("POST", COORDINATOR + "GetManifest", 404),
        ("POST", COORDINATOR + "CheckIn", 404),
    ],
)
def test_there_is_nothing_else_and_nothing_to_write(ask, method, path, status):
    assert ask(path, method)[0] == status


def test_older_tls_is_refused(running, authority):
    context = stranger(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        exchange(running.connection(context, "web"), "GET", "/manifest", headers={})


def test_devices_still_need_their_certificate_on_their_port(running, authority):
    with pytest.raises((ssl.SSLError, ConnectionError)):
        exchange(running.connection(stranger(authority)), "GET", "/artifacts/" + "0" * 64, headers={})


def test_without_an_origin_no_page_of_another_one_may_read(tmp_path, authority):
    with Live(tmp_path / "folder", authority, browsers=BrowserPort()) as live:
        status, headers, _ = exchange(live.connection(stranger(authority), "web"), "GET", "/manifest", headers={})
    assert (status, "Access-Control-Allow-Origin" in headers) == (200, False)


def test_one_address_has_its_share_of_requests(tmp_path):
    metrics = SimpleNamespace(sent=SimpleNamespace(inc=lambda _: None))
    coordinator = SimpleNamespace(artifacts=tmp_path, metrics=metrics, have_artifact=AsyncMock())
    limits = replace(FOR_BROWSERS, request_burst=2, requests_per_second=0.001)

    async def statuses():
        made = browsers.application(coordinator, ORIGIN, Connections(limits), limits)
        async with TestClient(TestServer(made)) as client:
            answers = [await client.get("/artifacts/" + "0" * 64) for _ in range(3)]
            return [(answer.status, answer.headers["Access-Control-Allow-Origin"]) for answer in answers]

    assert asyncio.run(statuses()) == [(404, ORIGIN), (404, ORIGIN), (503, ORIGIN)]


@pytest.mark.parametrize(
    "origin",
    [
        "https://app.example:443",
        "http://localhost:80",
        "https://münchen.example",
        "*",
        "null",
        "app.example",
        "https://app.example/",
        "https://app.example/path",
        "http://app.example",
        "https://",
        "https://app.example:port",
        "https://APP.example",
        "https://u@app.example",
        "https://a.b\r\nX: y",
    ],
)
def test_an_origin_is_what_a_browser_says_and_nothing_else(origin):
    with pytest.raises(SettingsError, match="--web-origin"):
        BrowserPort(origin=origin)


@pytest.mark.parametrize("origin", ["https://app.example", "https://app.example:8443", "http://localhost:3000"])
def test_good_origins(origin):
    assert BrowserPort(origin=origin).origin == origin


def test_a_certificate_of_the_operator_is_shown_and_renewed_ones_are_taken_up(tmp_path, authority):
    first, second = (server_pem(authority, tmp_path / name, "localhost") for name in made_folders(tmp_path))
    file = tmp_path / "web.pem"
    file.write_bytes(first.read_bytes())
    certificate = Certificate(BrowserPort(certificate=file, key=file), authority.coordinator)
    serving = certificate.context()
    assert shown(serving, authority) == der_of(first)
    file.write_bytes(b"half written")
    os.utime(file, ns=(1, 1))
    with pytest.raises(SettingsError, match=r"'web.pem'"):
        certificate.refresh()
    assert shown(serving, authority) == der_of(first)
    file.write_bytes(second.read_bytes())
    os.utime(file, ns=(2, 2))
    certificate.refresh()
    assert shown(serving, authority) == der_of(second)


def made_folders(folder):
    for name in ("first", "second"):
        (folder / name).mkdir()
        yield name


def der_of(pem):
    text = pem.read_text()
    start, end = text.index("-----BEGIN CERTIFICATE"), text.index("-----END CERTIFICATE-----")
    return ssl.PEM_cert_to_DER_cert(text[start : end + len("-----END CERTIFICATE-----")] + "\n")


def shown(serving, authority):
    """The certificate that a handshake shows, in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = stranger(authority).wrap_bio(to_client, to_server, server_hostname="localhost")
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return client.getpeercert(binary_form=True)


@pytest.mark.parametrize("lacking", ["certificate", "key"])
def test_a_certificate_without_its_key_is_refused(tmp_path, lacking):
    files = {"certificate": tmp_path / "a.pem", "key": tmp_path / "b.pem"}
    with pytest.raises(SettingsError, match="belong together"):
        BrowserPort(**{**files, lacking: None})
    with pytest.raises(SettingsError, match=r"'a.pem' and 'b.pem'"):
        Certificate(BrowserPort(**files), tmp_path)
