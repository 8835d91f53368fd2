"""`make bench-web`: times in a headless Chromium on this machine, in one run. It asserts no time.

Left out: slower machines than this one, and networks: all servers are on this machine.
"""

import base64
import shutil
import ssl
import tempfile
from http.client import HTTPSConnection
from pathlib import Path
from urllib.parse import quote

from lightfr_harness.data.titles import made_up_titles
from lightfr_harness.demo.page import write_page
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import CoordinatorProcess
from tests.browser import browser
from tests.harness.server.coordinator.live import exchange
from tests.web.pages import open_page, serving_pages, wait_for

# Memory is then measured at once instead of with the next collection of garbage.
FLAGS = ("--ignore-certificate-errors", "--enable-blink-features=ForceEagerMeasureMemory")
ITEMS = 100_000


def bench_topk(page, pages):
    """Print the time of each contender, and how many times that of the kernel it is."""
    open_page(page, f"{pages}/bench/topk.html")
    shown = wait_for(page, "globalThis.shown")
    assert shown["agree"], "the kernels and plain JavaScript find different items"
    fastest = shown["summary"][0]
    print("Ten best of 1,000,000 items of 64 bits, milliseconds: least, median, times the first")
    for one in shown["summary"]:
        ratio = one["least"] / fastest["least"], one["median"] / fastest["median"]
        print(f"  {one['name']:28} {one['least']:8.2f} {one['median']:8.2f} {ratio[0]:7.1f} {ratio[1]:7.1f}")


def bench_first_list(page, pages, folder):
    """Print the time to the first list and the memory of the page, at the first visit and at the second."""
    items = folder / "items.tsv"
    items.write_text("".join(f"item-{i:06}\n" for i in range(ITEMS)))
    authority = Authority.init(folder / "ca", ["localhost", "127.0.0.1"])
    authority.close()
    trust = base64.b64encode((authority.coordinator / "trust.pem").read_bytes()).decode()
    options = {"web_port": 0, "web_origin": pages, "privacy": "clear", "gate": 0}
    with CoordinatorProcess(folder / "state", folder / "ca", items, **options) as coordinator:
        server = coordinator.addresses["web"].replace("127.0.0.1", "localhost")
        for visit in ("first", "second"):
            open_page(page, f"{pages}/bench/first_list.html?server={quote(server)}&trust={quote(trust)}")
            shown = wait_for(page, "globalThis.shown")
            print(
                f"{shown['items']:,} items, {visit} visit: first paint after {shown['firstPaintMs']:.0f} ms, first list"
                f" after {shown['firstListMs']:.0f} ms, of which the model took {shown['loadMs']:.0f} ms, on the screen"
                f" after {shown['listPaintedMs']:.0f} ms; the list after a rating {shown['nextListMs']:.0f} ms;"
                f" memory {shown['memoryBytes'] / 2**20:.1f} MiB as the browser counts a page, and"
                f" {shown['kernelBytes'] / 2**20:.1f} MiB of the kernel; {shown['downloads']} requests to the server"
            )
            open_page(page, "about:blank")
        return _models(folder, authority, server), authority.coordinator / "trust.pem"


def _models(folder, authority, server):
    """The model that the coordinator serves, in a folder as a device has it."""
    models = shutil.copytree(folder / "state/artifacts", folder / "models")
    context = ssl.create_default_context(cafile=authority.coordinator / "authority.pem")
    connection = HTTPSConnection(server.removeprefix("https://"), context=context)
    (models / "current").write_bytes(exchange(connection, "GET", "/manifest", headers={})[2])
    connection.close()
    return models


def bench_demo_page(page, pages, files, models, trust):
    """Print the same of the demo's page, which holds the model and the titles."""
    made_up = made_up_titles(f"100x{ITEMS}x1000", 0).values()
    titles = {f"item-{i:06}": title for i, title in enumerate(made_up)}
    write_page(models.parent / "play.html", models, trust, titles, "", "")
    files["/play.html"] = (models.parent / "play.html").read_bytes()
    open_page(page, f"{pages}/play.html")
    wait_for(page, "document.body?.classList.contains('ready') || undefined")
    page.value("performance.measureUserAgentSpecificMemory().then(({ bytes }) => (globalThis.measured = bytes))")
    memory = wait_for(page, "globalThis.measured")
    paint = wait_for(page, "performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    ready = wait_for(page, "performance.getEntriesByName('ready')[0].startTime")
    print(
        f"{ITEMS:,} items in the demo's page of {len(files['/play.html']) / 2**20:.1f} MiB: first paint after"
        f" {paint:.0f} ms, first list after {ready:.0f} ms, memory {memory / 2**20:.1f} MiB as the browser counts it"
    )


if __name__ == "__main__":
    served = {}
    with browser(*FLAGS) as one, serving_pages(served) as address, tempfile.TemporaryDirectory() as made:
        bench_topk(one, address)
        bench_demo_page(one, address, served, *bench_first_list(one, address, Path(made)))
