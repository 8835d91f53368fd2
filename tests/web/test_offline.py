"""A page of an app with a real coordinator, and then without: what it asks for, and that it works offline."""

import base64
import re
import ssl
from contextlib import contextmanager
from http.client import HTTPSConnection
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from lightfr import UserCode
from lightfr.device import Trust
from lightfr.interactions import Interactions
from lightfr.model.folder import LoadedModel
from lightfr.model.manifest import Manifest
from lightfr.recommending import recommend
from lightfr.training import fit_for_use
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import CoordinatorProcess
from tests.browser import browser
from tests.harness.server.coordinator.live import exchange
from tests.web.pages import Files, open_page, serving_pages, wait_for

ITEMS = 300


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    made = Authority.init(tmp_path_factory.mktemp("authority") / "ca", ["localhost", "127.0.0.1"])
    made.close()
    return made


# Without counts a server cannot say how to rank: codes do. With them popularity ranks until devices have evaluated,
# and unpopular items are closed.
CATALOGUES = {
    "by codes": ("film {i}\n", {"privacy": "clear", "gate": 0}),
    "by popularity": ("film {i}\t{count}\n", {"gate": 100}),
}


@contextmanager
def coordinator_for(pages, authority, folder, kind="by codes"):
    """The address for browsers, and the folder of artifacts."""
    line, options = CATALOGUES[kind]
    items = folder / "items.tsv"
    items.write_text("".join(line.format(i=i, count=ITEMS - i) for i in range(ITEMS)))
    options = {"web_port": 0, "web_origin": pages, **options}
    with CoordinatorProcess(folder / "state", authority.coordinator.parent, items, **options) as coordinator:
        yield coordinator.addresses["web"].replace("127.0.0.1", "localhost"), folder / "state/artifacts"


def page_address(pages, server, authority):
    trust = base64.b64encode((authority.coordinator / "trust.pem").read_bytes()).decode()
    return f"{pages}/tests/app.html?server={quote(server)}&trust={quote(trust)}"


def of_the_sdk(first, server, authority, artifacts):
    """What the SDK recommends from the same model, opinions and start code."""
    context = ssl.create_default_context(cafile=authority.coordinator / "authority.pem")
    connection = HTTPSConnection(server.removeprefix("https://"), context=context)
    manifest = Manifest(
        exchange(connection, "GET", "/manifest", headers={})[2], Trust(authority.coordinator / "trust.pem")
    )
    model = LoadedModel(manifest, artifacts)
    liked, disliked, hidden = first["before"][:3]
    opinions = Interactions([(model.index_of(liked), 2520), (model.index_of(disliked), 0)])
    ranking = manifest.rankings.for_user(len(opinions))
    start = UserCode(bytes.fromhex(first["startCode"]))
    user = SimpleNamespace(
        require_model=lambda: model,
        ranking=lambda _: ranking,
        rated=lambda _: opinions,
        hidden=lambda: [hidden],
        code_for_use=lambda _: fit_for_use(model.published, opinions, start, recency=ranking.recency),
    )
    found = recommend(user, 10, exclude_rated=True, exclude=(), among=None)
    model.close()
    return [{"itemId": item.item_id, "similarity": item.similarity, "score": item.score} for item in found]


@pytest.mark.parametrize("kind", CATALOGUES)
def test_a_page_recommends_as_the_sdk_does_and_works_when_both_servers_are_gone(tmp_path, authority, kind):
    # The coordinator shows its own certificate, of an authority that no browser knows.
    with browser("--ignore-certificate-errors") as page:
        with serving_pages() as pages, coordinator_for(pages, authority, tmp_path, kind) as (server, artifacts):
            address = page_address(pages, server, authority)
            open_page(page, address)
            first = wait_for(page, "globalThis.shown")
            assert (first["version"], first["updateError"], len(first["list"])) == (1, "", 10)
            assert first["list"] == of_the_sdk(first, server, authority, artifacts)
            # The second visit goes through the worker, which keeps the page.
            open_page(page, address)
            again = wait_for(page, "globalThis.isControlled && globalThis.shown")
            assert again["list"] == first["list"]
        open_page(page, address)
        offline = wait_for(page, "globalThis.shown")
        assert (offline["list"], offline["updateError"]) == (first["list"], "ServerUnavailableError")


def test_a_page_asks_for_the_model_and_sends_nothing(tmp_path, authority):
    with browser("--ignore-certificate-errors") as page, serving_pages() as pages:
        with coordinator_for(pages, authority, tmp_path) as (server, _):
            open_page(page, page_address(pages, server, authority))
            wait_for(page, "globalThis.shown")
        events = [event for event in page.events if event["method"] == "Network.requestWillBeSent"]
        asked = [event["params"]["request"] for event in events]
        assert {request["method"] for request in asked} == {"GET"}
        assert not any(request.get("hasPostData") for request in asked)
        paths = [request["url"].removeprefix(server) for request in asked if request["url"].startswith(server)]
        artifacts = [path for path in paths if re.fullmatch("/artifacts/[0-9a-f]{64}", path)]
        assert (paths.count("/manifest"), len(paths)) == (1, 1 + len(artifacts))
        elsewhere = [request["url"] for request in asked if not request["url"].startswith((pages, server))]
        assert elsewhere == []


@pytest.fixture(scope="module")
def told():
    """The headers that the server of the model got in two visits of one browser. It gives each browser a tag."""
    headers, answer = [], Files.do_GET

    def do_get(self):
        if not self.path.startswith("/model/"):
            return answer(self)
        headers.append(dict(self.headers))
        self.send_response(200)
        self.send_header("ETag", '"browser-4711"')
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"junk")

    trust = base64.b64encode(bytes.fromhex("302a300506032b6570032100") + bytes(32))
    trust = base64.b64encode(b"-----BEGIN PUBLIC KEY-----\n" + trust + b"\n-----END PUBLIC KEY-----\n").decode()
    with pytest.MonkeyPatch.context() as patch, browser() as page, serving_pages() as address:
        patch.setattr(Files, "do_GET", do_get)
        # Of older answers Chromium takes no tag.
        patch.setattr(Files, "protocol_version", "HTTP/1.1")
        query = f"server={quote(address + '/model')}&trust={quote(trust)}&film=a-film-that-nobody-may-know-of"
        for _ in range(2):
            open_page(page, f"{address}/tests/app.html?{query}")
            assert wait_for(page, "globalThis.shown")["error"] == "ManifestError"
            open_page(page, "about:blank")
    return headers


def test_the_server_of_the_model_does_not_hear_which_page_the_user_looks_at(told):
    assert [headers.get("Referer") for headers in told] == [None, None]


def test_the_server_of_the_model_does_not_know_a_browser_again(told):
    assert [headers.get("If-None-Match") for headers in told] == [None, None]


def test_a_page_of_another_origin_gets_nothing(tmp_path, authority):
    with (
        browser("--ignore-certificate-errors") as page,
        serving_pages() as pages,
        coordinator_for("https://app.example", authority, tmp_path) as (server, _),
    ):
        open_page(page, page_address(pages, server, authority))
        assert wait_for(page, "globalThis.shown")["error"] == "ServerUnavailableError"
