"""One of 24 clients lies, or one of 12, over TLS: training goes on, and the log and the status page name the liar.

The liar is the SDK's own client but for one step.
"""

import json
import random
import threading
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from lightfr import Budget
from lightfr.device import Identity
from lightfr.errors import LightFRError
from lightfr.secagg import DeviceSession, RevealedShares
from lightfr.secagg.views import bitmap_of
from lightfr_harness.server.coordinator.options import ItemList
from tests.adversary.live import clients_of
from tests.certificates import common_name_of
from tests.harness.server.coordinator.helpers import N_ITEMS
from tests.harness.server.coordinator.live import Live
from tests.harness.server.coordinator.secure import SECURE, UNCOUNTED

N, LIAR = 24, 5
# Most items are rated by nobody.
CATALOGUE = 200
# Rounds go on with the devices that come first, so that there are others to fill the places of suspects.
PLAN = {"goal": 12, "over_selection": 1.0, "minimum": 6, "deadline_seconds": 30}
BUDGET = Budget(rounds_per_month=1000, gate_refreshes_per_month=1000)
# Bounds a test that hangs, on however busy a machine; one takes a few seconds.
LONGEST_SECONDS = 400
# Between two offers of a client. Those for whom a round has no place would otherwise keep the processor busy.
PAUSE_SECONDS = 0.3


class Liar:
    """Replaces steps of one device by its lies."""

    def __init__(self, monkeypatch, folder):
        self._monkeypatch = monkeypatch
        self.name = common_name_of(folder / "client-None.pem")
        self._membership = Identity(folder / "client-None.pem", None).member().membership

    def lie(self, step, lying):
        """`lying` gets what others would do, the session, and what the session is told."""
        honest = getattr(DeviceSession, step)

        def done(device, *said):
            return (
                lying(honest, device, *said) if device.state.membership == self._membership else honest(device, *said)
            )

        self._monkeypatch.setattr(DeviceSession, step, done)


def seals_garbage(liar):
    def share(honest, device, *said):
        return [(holder, random.randbytes(len(sealed))) for holder, sealed in honest(device, *said)]

    liar.lie("share", share)


def complains_about_everybody(liar):
    def complaint(honest, device, inbox):
        honest(device, inbox)
        return bitmap_of((sender for sender, _ in inbox), device.cohort)

    liar.lie("acknowledge", complaint)


def signs_nonsense(liar):
    liar.lie("sign_included", lambda honest, *said: honest(*said) and bytes(64))


def reveals_false_shares(liar):
    def false(shares):
        records = [shares[at : at + 37] for at in range(0, len(shares), 37)]
        return b"".join(record[:4] + random.randbytes(32) + b"\0" for record in records)

    def reveal(honest, *said):
        true = honest(*said)
        return RevealedShares(false(true.seeds), false(true.mask_keys))

    liar.lie("reveal", reveal)


def uploads_garbage(liar):
    def mask(honest, device, vector, *claimed):
        for block in vector.blocks:
            numbers = vector[block.name]
            for place in range(len(numbers)):
                numbers[place] = random.randrange(2 ** (block.bits - 1))
        return honest(device, vector, *claimed)

    liar.lie("mask", mask)


class Push:
    """One row with one pattern in all of its values, as much as the block has room for, in one round."""

    def __init__(self, liar, row, pattern, finished):
        # Rounds that were finished before the lie; None: it has not lied yet.
        self.after = None
        self._row, self._pattern, self._finished = row, pattern, finished
        liar.lie("mask", self._mask)

    def _mask(self, honest, device, vector, *claimed):
        if self.after is None:
            self.after, block = self._finished(), vector.blocks[0]
            for place, sign in enumerate(self._pattern, self._row * len(self._pattern)):
                vector["rows"][place] = sign * (2 ** (block.bits - 1) - 1)
        return honest(device, vector, *claimed)


def counts_ten(liar):
    """Ten of everything, which alone is what the gate asks for."""

    def mask(honest, device, vector, *claimed):
        if vector.blocks[0].name == "counts":
            for place in range(N_ITEMS):
                vector["counts"][place] = 10
        return honest(device, vector, *claimed)

    liar.lie("mask", mask)


def train(clients, is_over):
    """All clients offer to take part again and again, until it is over."""
    ends, over = time.monotonic() + LONGEST_SECONDS, threading.Event()

    def offer(client):
        while not over.is_set():
            with suppress(LightFRError):  # The liar is refused.
                client.participate(cancel=over)
            over.wait(PAUSE_SECONDS)

    threads = [threading.Thread(target=offer, args=[client]) for client in clients]
    for thread in threads:
        thread.start()
    while not is_over() and time.monotonic() < ends:
        time.sleep(0.05)
    over.set()
    for thread in threads:
        thread.join(LONGEST_SECONDS)
    assert is_over()


def events(live, name):
    return [event for line in live.log.getvalue().splitlines() if (event := json.loads(line))["event"] == name]


def n_finished(live):
    return len(events(live, "round_finished"))


def lists_of(clients, length):
    """What each client but the liar recommends by the newest version."""
    honest = clients[:LIAR] + clients[LIAR + 1 :]
    for client in honest:
        client.sync()
    return [{item.item_id for item in client.recommend(length)} for client in honest]


def trained_with(monkeypatch, authority, folder, kind, n_finished, n=N, **plan):
    """Train until somebody is at fault and so many rounds are finished; the liar must be the only one named."""
    plan = {**PLAN, **plan}
    with (
        Live(folder / "coordinator", authority, settings=SECURE, **plan) as live,
        clients_of(live, authority, folder, n, minimum_cohort=plan["minimum"], budget=BUDGET) as clients,
    ):
        liar = Liar(monkeypatch, folder / f"device-{LIAR}")
        kind(liar)
        train(clients, lambda: events(live, "fault") and len(events(live, "round_finished")) >= n_finished)
        assert {event["device"] for event in events(live, "fault")} == {liar.name}
        assert liar.name in live.operations("GET", "/")[2].decode()
        return live


@pytest.mark.parametrize("kind", [seals_garbage, complains_about_everybody, reveals_false_shares])
def test_no_round_is_lost_and_the_liar_is_named(monkeypatch, authority, tmp_path, kind):
    live = trained_with(monkeypatch, authority, tmp_path, kind, n_finished=2)
    assert events(live, "round_abandoned") == []


def test_a_device_that_signs_nonsense_is_named_and_costs_its_phase_one_deadline(monkeypatch, authority, tmp_path):
    """As one that says nothing does."""
    live = trained_with(monkeypatch, authority, tmp_path, signs_nonsense, n_finished=1, deadline_seconds=4)
    assert "refused" in events(live, "fault")[0]["reason"]


def test_spoilt_sums_are_dropped_until_halving_finds_the_liar(monkeypatch, authority, tmp_path):
    few = {"n": 12, "goal": 6, "minimum": 3}
    live = trained_with(monkeypatch, authority, tmp_path, uploads_garbage, n_finished=2, **few)
    (fault,) = events(live, "fault")
    assert "spoilt" in fault["reason"]
    # Every round that did not finish is one whose sum was dropped; nothing was learnt from it.
    dropped, abandoned = (
        [event["round"] for event in events(live, name)] for name in ("sum_dropped", "round_abandoned")
    )
    assert fault["round"] in dropped
    assert dropped == abandoned


def test_one_loud_push_does_not_bring_an_item_into_the_lists(monkeypatch, authority, tmp_path):
    """The liar wants the code of the mean user for an item that nobody rates. When believed, it gets 10 to 23 of 23."""
    counts = [50 - i for i in range(N_ITEMS)] + [10] * (CATALOGUE - N_ITEMS)
    items, settings = (
        ItemList([f"item-{i}" for i in range(CATALOGUE)], counts, "0" * 64),
        replace(SECURE, bits=64, gate=10),
    )
    with (
        Live(
            tmp_path / "coordinator",
            authority,
            items=items,
            settings=settings,
            **{**PLAN, "goal": N, "deadline_seconds": 5},
        ) as live,
        clients_of(live, authority, tmp_path, N, minimum_cohort=6, budget=BUDGET) as clients,
    ):
        train(clients, lambda: n_finished(live) >= 2)
        # It is far from every list.
        lists = lists_of(clients, 60)
        target = next(i for i in range(N_ITEMS, CATALOGUE) if not any(f"item-{i}" in one for one in lists))
        pattern = [1 if value >= 0 else -1 for value in live.coordinator._rule.mean_user.tolist()]
        liar = Liar(monkeypatch, tmp_path / f"device-{LIAR}")
        push = Push(liar, target, pattern, lambda: n_finished(live))
        train(clients, lambda: push.after is not None and n_finished(live) > push.after)
        # All other rows and the users move in a round, so an item may come into a list or two by itself.
        assert sum(f"item-{target}" in one for one in lists_of(clients, 10)) <= 2
        assert [event["rows"] for event in events(live, "rows_implausible")] == [1]


def test_one_device_does_not_open_the_gate(monkeypatch, authority, tmp_path):
    settings = replace(SECURE, gate=10)
    with (
        Live(tmp_path / "coordinator", authority, items=UNCOUNTED, settings=settings, **PLAN) as live,
        clients_of(live, authority, tmp_path, N, minimum_cohort=6, budget=BUDGET) as clients,
    ):
        counts_ten(Liar(monkeypatch, tmp_path / f"device-{LIAR}"))
        train(clients, lambda: len(events(live, "round_finished")) >= 2)
        # Each item is rated by six or seven of the 24. With the lie believed, all 30 would be open.
        assert live.coordinator._rule.open_rows.sum() < N_ITEMS // 3
