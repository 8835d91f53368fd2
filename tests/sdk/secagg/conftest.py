"""A cohort whose graph is not complete."""

import os

import pytest

from lightfr.secagg import DeviceSession
from tests.sdk.secagg.cohorts import Cohort

SPARSE_SIZE = 140


class Replay:
    """Random bytes that can be drawn once more."""

    def __init__(self):
        self.drawn, self.again = [], []

    def __call__(self, n):
        self.drawn.append(self.again.pop(0) if self.again else os.urandom(n))
        return self.drawn[-1]


class Sparse:
    """Device 0 has shared. It can do so again, with the same holders and witnesses or with others."""

    def __init__(self):
        self.cohort, self._source = Cohort(SPARSE_SIZE), Replay()
        self._before = self.cohort.sessions[0].to_bytes()
        self.sealed = self.share_again()
        self._after = self.cohort.sessions[0].to_bytes()

    def share_again(self, vouchers=None):
        """With the same choices."""
        self._source.again = list(self._source.drawn)
        return self._share(vouchers or self.cohort.vouchers, self._source)

    def share_anew(self):
        """With other choices; returns these."""
        self._share(self.cohort.vouchers, os.urandom)
        return self._chosen()

    def _share(self, vouchers, random):
        session = self.cohort.sessions[0] = DeviceSession.from_bytes(self._before, random=random)
        return session.share(self.cohort.roster, vouchers, self.cohort.roster_signature)

    def chosen(self):
        """Roster indices of the holders and the witnesses that device 0 chose, and of its neighbours."""
        self.cohort.sessions[0] = DeviceSession.from_bytes(self._after)
        return self._chosen()

    def _chosen(self):
        state, sizes = self.cohort.sessions[0].state, {"holders": 4, "witnesses": 36, "neighbours": 52}

        def indices(stored, size):
            return {int.from_bytes(stored[at : at + 4], "little") for at in range(0, len(stored), size)}

        return [indices(getattr(state, name), size) for name, size in sizes.items()]

    def ready_to_sign(self):
        """Take device 0 past its inbox, which is of no interest here; returns what it chose."""
        chosen = self.chosen()
        self.cohort.sessions[0].acknowledge([])
        self.cohort.included = self.cohort.everybody
        return chosen


@pytest.fixture(scope="module")
def sparse():
    return Sparse()
