"""`make bench-web`: times in a headless Chromium on this machine, in one run. It asserts no time.

Left out: drawing a page, slower machines than this one, and networks: all servers are on this machine.
"""

import base64
import tempfile
from pathlib import Path
from urllib.parse import quote

from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.child import CoordinatorProcess
from tests.browser import browser
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
                f"{shown['items']:,} items, {visit} visit: first list after {shown['firstListMs']:.0f} ms, of which the"
                f" model took {shown['loadMs']:.0f} ms; the list after a rating {shown['nextListMs']:.0f} ms;"
                f" memory {shown['memoryBytes'] / 2**20:.1f} MiB as the browser counts a page, and"
                f" {shown['kernelBytes'] / 2**20:.1f} MiB of the kernel; {shown['downloads']} requests to the server"
            )
            open_page(page, "about:blank")


if __name__ == "__main__":
    with browser(*FLAGS) as one, serving_pages() as address, tempfile.TemporaryDirectory() as made:
        bench_topk(one, address)
        bench_first_list(one, address, Path(made))
