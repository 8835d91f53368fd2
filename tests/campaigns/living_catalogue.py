"""Changes the catalogue of a real coordinator while devices train, kills both again and again, and compares.

    python -m tests.campaigns.living_catalogue --updates 10 --kills 6 --seed 0 [--privacy secagg]

Devices that make up their uploads train. Another one is a real client in a process of its own, which rates, syncs and
recommends without end. The coordinator is killed before, while and after it takes up a list of items; the client is
killed too. After each list the codes are compared with an oracle that knows items by their ids only, and has learnt
from exactly the uploads that were acknowledged; and what the client recommends with what the oracle's full matrix says.
"""

import argparse
import hashlib
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from lightfr import Device, FileKey, ItemCodes, ItemSet, UserCode
from lightfr.errors import NotSyncedError, ServerUnavailableError
from lightfr.interactions import Interactions
from lightfr.rankings import RankBy, Rankings
from lightfr.training import PublishedModel, fit_for_use, may_refine
from lightfr.user import USER_CODE
from lightfr.v1 import coordinator_pb2 as pb
from lightfr.v1 import manifest_pb2
from lightfr_harness.server.coordinator.catalogue_update import offer
from lightfr_harness.server.coordinator.rounds import FINISHED
from lightfr_harness.server.coordinator.stored import reading
from tests.campaigns import kill_coordinator
from tests.campaigns.kill_coordinator import START_SECONDS, post
from tests.campaigns.masking_device import MaskingDevice
from tests.harness.server.coordinator.by_item import ByItem, bits_of, ids_of, made_up, require_published, tsv
from tests.harness.server.coordinator.helpers import BITS, CAPABILITIES, CHECK_IN, upload_request

ROOT = Path(__file__).parents[2]
GATE, N_FIRST, N_POOL, SHOWN = 10, 120, 200, 20
CODE = bytes([0x5A] * (BITS // 8))


# The coordinator's files, which tell what is open.
ARTIFACTS = Path()


def open_at(connection, place):
    """The open items of the version that a place is for, in order; None once that is not the newest any more."""
    request = pb.GetManifestRequest(capabilities=CAPABILITIES).SerializeToString()
    signed = pb.GetManifestResponse.FromString(post(connection, "GetManifest", request)[1]).signed_manifest
    if hashlib.sha256(signed.manifest).digest() != place.manifest_sha256:
        return None
    return np.flatnonzero(bits_of(manifest_pb2.Manifest.FromString(signed.manifest), ARTIFACTS, "open_rows", True))


class Uploader(kill_coordinator.Device):
    """Uploads made-up rows of items that are open at the round's version."""

    def _take_part(self, connection):
        status, body = post(connection, "CheckIn", CHECK_IN)
        answer = pb.CheckInResponse.FromString(body) if status == 200 else pb.CheckInResponse()
        opened = open_at(connection, answer.assignment)
        if opened is None:
            time.sleep(0.02)  # There is no place, or the round has just ended.
            return
        self.seed += 1
        rows = made_up(np.random.default_rng(self.seed), opened)
        self.pending = upload_request(answer.assignment, self.seed, row_update=rows)
        self._upload(connection)


class MaskedUploader(MaskingDevice):
    """The same in a masked round. A place for a version that is not the newest any more is left."""

    def begin(self, place):
        self.open_indices = open_at(self.connection, place)
        if self.open_indices is not None:
            super().begin(place)

    def in_the_clear(self, place):
        return upload_request(place, self.seed, row_update=made_up(np.random.default_rng(self.seed), self.open_indices))


class Campaign(kill_coordinator.Campaign):
    def __init__(self, base, seed, privacy="clear"):
        global ARTIFACTS
        super().__init__(base, seed, privacy)
        self.folder, ARTIFACTS = base / "folder", base / "folder" / "artifacts"
        self.counts = {f"item-{i}": 50 - i // 3 for i in range(N_FIRST)}
        (base / "items.tsv").write_bytes(tsv(self.counts))
        self.oracle = ByItem(self.counts, GATE, BITS, 0)
        self.order, self.lists, self.compared = list(self.counts), {}, 1
        self.rounds = self.kills = self.renumbered = self.settlements = 0
        self.client, self.rated = base / "device", 0
        # Between two kills: seven steps take longer than one.
        self.longest_seconds = 1.5 if privacy == "clear" else 6.0
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = taken.getsockname()[1]

    def _kind_of_device(self):
        return Uploader if self.privacy == "clear" else self.trusting(MaskedUploader)

    def options(self):
        """The client knows one port, and enrols at the authority beside. Later starts name no list."""
        options = {**super().options(), "port": self.port, "authority": self.authority.folder}
        del options["credentials"]
        if self.folder.exists():
            del options["catalogue"]
        return options

    def next_list(self, number):
        """Some leave, some come back, some are new; every third time, the first included, popularity is another."""
        draw = self.random
        stay = {item: count for item, count in self.counts.items() if draw.random() < 0.95}
        pool = [f"item-{i}" for i in range(N_POOL) if f"item-{i}" not in stay]
        come = {item: draw.randrange(60) for item in draw.sample(pool, min(len(pool), draw.randrange(1, 12)))}
        counts = {**stay, **come}
        if number % 3 == 0:
            values = list(counts.values())
            draw.shuffle(values)
            counts = dict(zip(counts, values, strict=True))
        return counts

    def run_update(self, number, kills):
        """Give the coordinator another list at some moment, kill it and the client, and compare in the end."""
        self.counts = self.next_list(number)
        content, when = tsv(self.counts), self.random.uniform(0, self.longest_seconds * kills)
        self.lists[hashlib.sha256(content).hexdigest()] = self.counts
        offering = threading.Timer(when, offer, (self.folder, content))
        offering.start()
        for _ in range(kills):
            with self.living_client():
                self.run_once(self.random.uniform(0, self.longest_seconds))
            self.kills += 1
        offering.join()
        self.run_settled()

    def run_settled(self):
        """Run until the newest list is taken up and a few rounds are over, and compare."""
        before = self.settlements
        self.run_once(1.0, graceful=True)
        assert not self.summary.torn, "the coordinator did not start, or did not stop"
        assert self.settlements == before + 1

    def settled(self):
        self.compare_codes()
        self.compare_ranking()
        self.settlements += 1

    def _work(self, address, process, seconds, graceful):
        if not self.client.exists():
            self.enroll(process)
        if graceful:
            self.await_list()
        super()._work(address, process, seconds, graceful)

    def enroll(self, process):
        """Make the real client, with a code of its own to fit from."""
        addresses = json.loads((self.folder / "addresses.json").read_text())
        invited = self.authority.invite(addresses["server"], addresses["enrollment"], 600)
        (self.base / "invitation.json").write_text(json.dumps(invited))
        Device.enroll(self.base / "invitation.json", self.client)
        with open_client(self.client) as client:
            client._user.store.update({USER_CODE: CODE})

    def await_list(self):
        """Wait until the newest list is taken up."""
        ends = time.monotonic() + START_SECONDS
        wanted = hashlib.sha256(tsv(self.counts)).hexdigest()
        while self.stored()[2][-1].sha256 != wanted:
            assert time.monotonic() < ends, "the list was not taken up"
            time.sleep(0.05)

    def stored(self):
        """The newest manifest, rounds that made a version, and changes."""
        with reading(self.folder / "coordinator.sqlite") as stored:
            newest = manifest_pb2.Manifest.FromString(stored.manifests()[0])
            return newest, self._rounds(), stored.catalogue_changes()

    @contextmanager
    def living_client(self):
        """The real client at work; it is killed in the end."""
        if not self.client.exists():
            yield
            return
        command = [sys.executable, "-m", "tests.campaigns.living_catalogue", "--work", str(self.client)]
        with subprocess.Popen([*command, "--seed", str(self.rated)], cwd=ROOT) as process:
            try:
                yield
            finally:
                is_dead = process.poll() is not None
                process.kill()
        self.rated += 1_000
        assert not is_dead, "the client ended by itself"

    def compare_codes(self):
        """Let the oracle learn what was acknowledged since the last time, and compare the newest version."""
        manifest, rounds, changes = self.stored()
        uploads = defaultdict(list)
        for device in self.devices:
            assert not device.contradictions
            for round_id, body in device.uploads.items():
                uploads[round_id].append(body)
        made = {version: round_id for round_id, state, _, version in rounds if state == FINISHED}
        assert all(len(uploads[round_id]) == count for round_id, _, count, _ in rounds)
        changed = {change.model_version: change for change in changes}
        for version in range(self.compared + 1, manifest.model_version + 1):
            if version in changed:
                change = changed[version]
                self.order = ids_of(manifest, self.folder / "artifacts")
                self.oracle.change(self.lists[change.sha256], self.order, int(change.sha256, 16) + version)
                self.renumbered += change.is_renumbered
            elif version in made:
                self.oracle.round(uploads[made[version]], self.order)
                self.rounds += 1
            else:  # Devices had revealed, and too few: the same codes have a new number.
                assert self.privacy != "clear"
        self.compared = manifest.model_version
        require_published(manifest, self.folder / "artifacts", self.oracle)

    def compare_ranking(self):
        """What the client recommends is what the oracle's full matrix says."""
        with open_client(self.client) as client:
            client.sync()
            manifest = client._user.model.manifest.message
            assert manifest.model_version == self.compared
            found = [(one.item_id, one.score) for one in client.recommend(SHOWN)]
            assert found == full_ranking(self.oracle, manifest, self.folder / "artifacts", client._user.store)


def full_ranking(oracle, manifest, artifacts, store):
    """The first items by a matrix with a row for each, sorted whole: (item id, score)."""
    ids, removed = ids_of(manifest, artifacts), bits_of(manifest, artifacts, "removed_items", False)
    codes = ItemCodes(b"".join(map(oracle.code_of, ids)), BITS)
    gone = np.flatnonzero(removed).tolist()
    model = PublishedModel(codes, manifest.model, ItemSet(len(ids), gone) if gone else None)
    index_of = {item: index for index, item in enumerate(ids) if index not in set(gone)}
    rated = Interactions((index_of[item], level) for item, level in store.ratings.items() if item in index_of)
    rankings = Rankings.of(manifest)
    ranking = rankings.for_user(len(rated))
    refine = ranking.refine and may_refine(model, rated)
    code = fit_for_use(model, rated, UserCode(store.get(USER_CODE)), recency=ranking.recency, refine=refine)
    signs = [
        np.unpackbits(np.frombuffer(row, np.uint8), bitorder="little").astype(int) * 2 - 1
        for row in (code.reveal(), *map(oracle.code_of, ids))
    ]
    scores = [int(signs[0] @ row) for row in signs[1:]]
    assert ranking.by == RankBy.CODES
    assert rankings.prior(ranking, BITS) is None
    left = sorted(set(index_of.values()) - set(rated.arrays()[0]), key=lambda index: (-scores[index], index))
    return [(ids[index], scores[index]) for index in left[:SHOWN]]


def open_client(folder):
    return Device.load(folder).client(folder / "data", key=FileKey(folder / "key"), allow_clear_uploads=True)


def work(folder, number):
    """Live for ever, as a device does whose coordinator is not always there."""
    client = open_client(folder)
    while True:
        client.rate(f"item-{7 * number % N_POOL}", 1 + number % 5)
        number += 1
        try:
            client.sync()
            client.recommend(5)
        except (ServerUnavailableError, NotSyncedError):
            time.sleep(0.05)


def run(updates, kills, seed, base, progress=print, privacy="clear"):
    """Change the catalogue so often, with so many kills each; the campaign when all was equal."""
    campaign = Campaign(base, seed, privacy)
    campaign.run_once(0.5)
    for number in range(updates):
        campaign.run_update(number, kills)
        progress(f"list {number + 1} of {updates}: {campaign.rounds} rounds, {campaign.kills} kills, all equal")
    return campaign


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--privacy", choices=["clear", "secagg"], default="clear")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(asked.work, asked.seed)
    with tempfile.TemporaryDirectory() as folder:
        done = run(asked.updates, asked.kills, asked.seed, Path(folder), privacy=asked.privacy)
    print(
        f"{asked.updates} lists of items, {done.renumbered} of them numbered anew, {done.rounds} rounds, coordinator"
        f" and client killed {done.kills} times (seed {asked.seed}): codes and rankings equal the oracle's"
    )


if __name__ == "__main__":
    main()
