"""Any sequence of calls leaves what a plain dict would hold, with reopening, rewriting and rotation in between."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from lightfr.keys import FileKey
from lightfr.store import Store
from tests.sdk.store.sessions import Model, content, require_settled, rewrite_often

# Few ids, so that items are rated again, and a number beside its digits.
item_ids = st.sampled_from(["a", "b", "1", "\x00", "é" * 127, 1, 0, -1, 2**63 - 1]) | st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60
)
ratings = st.tuples(item_ids, st.integers(0, 2520))
names = st.sampled_from(["user", "pending", "☃"])
values = st.binary(max_size=200)


class StoreMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.base = tempfile.TemporaryDirectory()
        self.model = Model()
        self.open()

    def open(self):
        self.store = Store.open(Path(self.base.name) / "store", FileKey(Path(self.base.name) / "key"))

    @rule(rated=st.lists(ratings, max_size=5))
    def rate(self, rated):
        self.store.rate(rated)
        self.model = self.model.rate(rated)

    @rule(item_id=item_ids)
    def unrate(self, item_id):
        assert self.store.unrate(item_id) == (item_id in dict(self.model.ratings))
        self.model = self.model.unrate(item_id)

    @rule(values=st.dictionaries(names, st.none() | values))
    def update(self, values):
        self.store.update(values)
        self.model = self.model.update(values)

    @rule(name=names, value=values)
    def put(self, name, value):
        self.store.put(name, value)
        self.model = self.model.update({name: value})

    @rule(name=names)
    def delete(self, name):
        self.store.delete(name)
        self.model = self.model.update({name: None})

    @rule()
    def reopen(self):
        self.store.close()
        self.open()

    @rule()
    def rotate(self):
        self.store.rotate_key()

    @invariant()
    def holds_what_the_model_holds(self):
        assert content(self.store) == self.model
        require_settled(self.store)

    def teardown(self):
        self.store.close()
        self.open()
        self.holds_what_the_model_holds()
        self.store.close()
        self.base.cleanup()


@pytest.mark.parametrize("rewrite_bytes", [200, 64 * 1024])
def test_a_store_is_a_dict_that_lasts(monkeypatch, rewrite_bytes):
    rewrite_often(monkeypatch, rewrite_bytes)
    run_state_machine_as_test(StoreMachine, settings=settings(max_examples=30, stateful_step_count=25))
