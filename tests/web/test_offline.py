"""A page of an app with a real coordinator, and then without: what it asks for, and that it works offline."""

import base64
from urllib.parse import quote

import pytest

from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import CoordinatorProcess
from tests.browser import browser
from tests.web.pages import open_page, serving_pages, wait_for

ITEMS = 300


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    made = Authority.init(tmp_path_factory.mktemp("authority") / "ca", ["localhost", "127.0.0.1"])
    made.close()
    return made


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    path = tmp_path_factory.mktemp("catalogue") / "items.tsv"
    path.write_text("".join(f"film {i}\t{2 * (ITEMS - i)}\n" for i in range(ITEMS)))
    return path


def page_address(pages, server, authority):
    trust = base64.b64encode((authority.coordinator / "trust.pem").read_bytes()).decode()
    return f"{pages}/tests/app.html?server={quote(server)}&trust={quote(trust)}"


def asked(page):
    """Whom the page and its worker asked for anything, and what."""
    return [url for url in page.requests() if url.startswith("http")]


def test_a_page_recommends_sends_nothing_and_works_when_both_servers_are_gone(tmp_path, authority, catalogue):
    # The coordinator shows its own certificate, of an authority that no browser knows.
    with browser("--ignore-certificate-errors") as page:
        with serving_pages() as pages:
            folder = authority.coordinator.parent
            options = {"web_port": 0, "web_origin": pages}
            with CoordinatorProcess(tmp_path / "folder", folder, catalogue, **options) as coordinator:
                server = coordinator.addresses["web"].replace("127.0.0.1", "localhost")
                address = page_address(pages, server, authority)
                open_page(page, address)
                first = wait_for(page, "globalThis.shown")
                assert (first["version"], first["updateError"], len(first["list"])) == (1, "", 10)
                known = {item["itemId"] for item in first["list"]}
                assert not known & set(first["before"][:3]), "rated, disliked and hidden items stay away"
                sent = [event["params"]["request"] for event in requests_of(page)]
                assert {request["method"] for request in sent} == {"GET"}
                theirs = {request["url"].removeprefix(server) for request in sent if request["url"].startswith(server)}
                assert all(path == "/manifest" or path.startswith("/artifacts/") for path in theirs)
                assert len(theirs) >= 3
                assert all(url.startswith((pages, server)) for url in asked(page))
                # The second visit goes through the worker, which keeps the page.
                open_page(page, address)
                again = wait_for(page, "globalThis.isControlled && globalThis.shown")
                assert again["list"] == first["list"]
        open_page(page, address)
        offline = wait_for(page, "globalThis.shown")
        assert (offline["list"], offline["updateError"]) == (first["list"], "ServerUnavailableError")


def requests_of(page):
    return [event for event in page.events if event["method"] == "Network.requestWillBeSent"]


def test_a_page_of_another_origin_gets_nothing(tmp_path, authority, catalogue):
    with browser("--ignore-certificate-errors") as page, serving_pages() as pages:
        folder, options = authority.coordinator.parent, {"web_port": 0, "web_origin": "https://app.example"}
        with CoordinatorProcess(tmp_path / "folder", folder, catalogue, **options) as coordinator:
            server = coordinator.addresses["web"].replace("127.0.0.1", "localhost")
            open_page(page, page_address(pages, server, authority))
            assert wait_for(page, "globalThis.shown")["error"] == "ServerUnavailableError"
