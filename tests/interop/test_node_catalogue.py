"""The coordinator in TypeScript changes its catalogue between two rounds: rows go where their items go, bit for bit."""

import signal

import numpy as np

from lightfr.v1 import coordinator_pb2 as pb
from lightfr_harness.conformance.kit import Kit, read_items
from lightfr_harness.server.coordinator.options import ItemList, Settings, make_rule
from lightfr_harness.simulation.remote import STAGES
from tests.interop.test_node_crashes import crash
from tests.interop.test_node_training import DEVICES, UNHURRIED, take_codes

BELOW_THE_GATE = 9


class Both:
    """The server in TypeScript with its devices, and our rule beside it, which hears the same sums."""

    def __init__(self, kit, server, devices):
        self.kit, self.server, self.devices = kit, server, devices
        made = Kit(kit)
        items = ItemList.read(kit / "items.tsv", integer_ids=False)
        self.ours = make_rule(Settings(32, made.settings.gate, 0, False, "secagg"), items)
        self.ours.set_codes(np.frombuffer(made.codes, np.uint8).reshape(len(items.ids), -1))
        self.ids = devices.ids

    def require_same(self):
        assert self.devices.open_rows == self.ours.open_rows_bitmap()
        assert self.devices.codes == self.ours.codes.tobytes()

    def train(self, users=None):
        self.devices.train_masked({}, users)
        self.ours.add_cohort(self.devices.sums(), DEVICES)
        self.ours.finish_round()
        self.require_same()

    def ask_for(self, items):
        """Let the server have these items, with counts where there are some."""
        lines = [f"{item}\t{count}\n" if count else f"{item}\n" for item, count in items.items()]
        (self.kit / "items.tsv").write_text("".join(lines))
        self.server.process.send_signal(signal.SIGHUP)

    def follow(self, items):
        """Our rule takes over how the server has numbered these items."""
        index_of = {item: index for index, item in enumerate(self.ids)}
        self.ids = self.devices.ids
        old = np.array([index_of.get(item, -1) for item in self.ids])
        removed = np.array([item not in items for item in self.ids])
        kept = np.where(old >= 0, self.ours.device_counts[old], 0)
        counts = [items.get(item, 0) for item in self.ids] if any(items.values()) else kept
        self.ours.change_items(old, removed, counts, seed=0)
        assert self.devices.removed == set(np.flatnonzero(removed))
        self.require_same()


def test_rows_and_memory_go_with_items_that_stay_in_spite_of_kills(node, cohort):
    kit, server = node("secagg", **UNHURRIED)
    both = Both(kit, server, cohort(DEVICES, kit, server))
    for _ in range(2):
        both.train()
    first = read_items(kit / "items.tsv")
    without = {item: count for item, count in first.items() if item not in ("item-02", "item-33", "item-74")}
    second = without | {f"new-{number}": BELOW_THE_GATE for number in range(6)}
    both.ask_for(second)
    both.devices.next_version()
    both.follow(second)
    assert both.ids[:80] == list(first)
    both.train()
    crash(server)
    # One item comes back, and the order of all others is the opposite one.
    third = dict(reversed(second.items())) | {"item-33": BELOW_THE_GATE}
    both.ask_for(third)
    both.devices.next_version()
    both.follow(third)
    assert both.ids == list(third)
    both.train()
    crash(server)
    both.train()


def test_a_change_waits_for_the_round_that_devices_are_in(node, cohort):
    kit, server = node("secagg", **UNHURRIED)
    both = Both(kit, server, cohort(DEVICES, kit, server))
    walks = [both.devices.walk(user) for user in range(DEVICES)]
    items = dict(list(read_items(kit / "items.tsv").items())[3:]) | {"new": BELOW_THE_GATE}
    both.ask_for(items)
    crash(server)
    for _ in STAGES:
        for walk in walks:
            walk.advance()
    both.devices.next_version(2)
    both.ours.add_cohort(both.devices.sums(), DEVICES)
    both.ours.finish_round()
    both.follow(items)
    both.train()


def test_items_that_join_are_counted_and_open(node, cohort):
    """They come first in the new list, so that the devices, who go by index here, rate them."""
    kit, server = node("gate", **UNHURRIED)
    both = Both(kit, server, cohort(2 * DEVICES, kit, server))
    cohorts = (range(DEVICES), range(DEVICES, 2 * DEVICES))

    def refresh(users):
        both.devices.train_masked({}, users)
        both.ours.set_gate(**both.devices.sums(), seed=0, devices=DEVICES)
        assert both.devices.open_rows == both.ours.open_rows_bitmap()

    for users in cohorts:
        refresh(users)
    take_codes(both.ours, both.devices)
    both.train(cohorts[0])
    before = both.ours.open_rows.sum()
    items = dict.fromkeys([f"new-{number}" for number in range(20)], 0) | read_items(kit / "items.tsv")
    both.ask_for(items)
    both.devices.next_version()
    both.follow(items)
    assert both.ids == list(items), "numbered anew"
    assert (both.ours.open_rows.sum(), both.ours.open_rows[:20].any()) == (before, False)
    for users in cohorts:
        assert both.devices.kind_of_place(users[0]) == pb.ROUND_KIND_GATE_REFRESH
        refresh(users)
    assert both.ours.open_rows[:20].any()
    take_codes(both.ours, both.devices)
    both.train(cohorts[0])
