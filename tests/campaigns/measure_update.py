"""What a device fetches when a hundredth of 100,000 items is new, counted by a coordinator that really listens.

    python -m tests.campaigns.measure_update

Ids are integers, dense or drawn below 2^32; a tenth of the items is open, or all. The new items are closed, or open by
their counts. Bytes are those of the answers' bodies, without TLS and HTTP.
"""

import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from lightfr import Device, FileKey
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.coordinator.catalogue_update import offer
from lightfr_harness.server.coordinator.options import ItemList
from tests.harness.server.coordinator.by_item import tsv
from tests.harness.server.coordinator.helpers import SETTINGS
from tests.harness.server.coordinator.live import Live

N_ITEMS, GATE = 100_000, 10


class Fetched(Counter):
    """An observer that adds up what was sent, by what it is."""

    def called(self, _device, method, _request_bytes, answer_bytes):
        self[method] += answer_bytes

    def downloaded(self, _device, artifact, sent_bytes):
        self[artifact] += sent_bytes


def fetched(base, ids, n_open, new_counts):
    """Bytes of the first sync and of the one after the update."""
    counts = [GATE] * n_open + [0] * (N_ITEMS - n_open)
    counts = dict(zip(ids[:N_ITEMS], counts, strict=True))
    items = ItemList.parse(tsv(counts), integer_ids=True)
    settings = replace(SETTINGS, bits=64, gate=GATE, integer_ids=True)
    authority, seen = Authority.init(base / "ca", ["127.0.0.1"]), Fetched()
    with Live(base / "folder", authority, items, settings, observer=seen) as live:
        invited = authority.invite(live.addresses["server"], live.addresses["enrollment"], 600)
        (base / "invitation.json").write_text(json.dumps(invited))
        device = Device.enroll(base / "invitation.json", base / "device")
        with device.client(base / "device" / "data", key=FileKey(base / "device" / "key")) as client:
            client.sync()
            first = Counter(seen)
            started = time.process_time()
            offer(base / "folder", tsv({**counts, **dict.fromkeys(ids[N_ITEMS:], new_counts)}))
            seconds = time.process_time() - started
            while live.coordinator.version.manifest.model_version == 1:
                time.sleep(0.1)
            client.sync()
    authority.close()
    return first, seen - first, seconds


def main():
    drawn = np.unique(np.random.default_rng(0).integers(0, 2**32, 110_000))
    drawn = np.random.default_rng(1).permutation(drawn)[: N_ITEMS + 1_000].tolist()
    kinds = {"dense": list(range(N_ITEMS + 1_000)), "below 2^32": drawn}
    for (name, ids), n_open, count in product(kinds.items(), (N_ITEMS // 10, N_ITEMS), (0, GATE)):
        with tempfile.TemporaryDirectory() as folder:
            first, later, seconds = fetched(Path(folder), ids, n_open, count)
        says = ", ".join(f"{what} {size:,}" for what, size in sorted(later.items()))
        how = f"ids {name}, {n_open:,} open, new ones {'open' if count else 'closed'}"
        print(f"{how}: {sum(later.values()):,} ({says});")
        print(f"  first sync {sum(first.values()):,}; checking the list took {seconds:.1f} s of CPU time", flush=True)


if __name__ == "__main__":
    sys.exit(main())
