"""The ten lines of docs/web.md run as they stand."""

import re

from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import CoordinatorProcess
from tests.browser import browser
from tests.web.pages import BUILT, ROOT, open_page, serving_pages, wait_for

PAGE = """<!doctype html><script type="importmap">{"imports": {"lightfr-web": "/web/src/index.js"}}</script>
<script type="module">LINES
globalThis.shown = "done"</script>"""


def test_the_ten_lines_run_as_they_stand(tmp_path):
    lines = re.search(r"^```js\n(.*?)^```", (ROOT / "docs/web.md").read_text(), re.MULTILINE | re.DOTALL)[1]
    assert len([line for line in lines.splitlines() if line]) <= 10
    authority = Authority.init(tmp_path / "ca", ["localhost", "127.0.0.1"])
    authority.close()
    items = tmp_path / "items.tsv"
    items.write_text("".join(f"film {i}\n" for i in range(50)))
    files = {
        "/trust.pem": (authority.coordinator / "trust.pem").read_bytes(),
        "/worker.js": (BUILT / "src/worker.js").read_bytes(),
    }
    with serving_pages(files) as pages, browser("--ignore-certificate-errors") as page:
        options = {"web_port": 0, "web_origin": pages}
        with CoordinatorProcess(tmp_path / "state", tmp_path / "ca", items, **options) as coordinator:
            server = coordinator.addresses["web"].replace("127.0.0.1", "localhost")
            made = PAGE.replace("LINES", lines.replace("https://coordinator.example:8446", server))
            files["/document.html"] = made.encode()
            open_page(page, f"{pages}/document.html")
            assert wait_for(page, "globalThis.shown") == "done"
    printed = [event for event in page.complaints() if event["params"].get("type") == "log"]
    shown = [event["params"]["args"][0]["value"] for event in printed]
    assert len(set(shown)) == 10
    assert not {"film 17", "film 3"} & set(shown)
