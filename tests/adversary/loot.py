"""What a server has in its hands during a round, with all that colluding devices give it, and what it can read."""

from lightfr.errors import InvalidInputError
from lightfr.secagg import Vector, shamir
from lightfr.secagg.agreement import Agreement, pair_mask_key, public_key, self_mask_key

_INDEX_BYTES = 4
_BOTH_BYTES = _INDEX_BYTES + 2 * shamir.SHARE_BYTES
_ONE_BYTES = _INDEX_BYTES + shamir.SHARE_BYTES


class Loot:
    """Uploads, revealed shares, and the states of colluders by their roster indices.

    `uploads` are index to the included set that the device was told, and its packed vector.
    """

    def __init__(self, roster, blocks, colluders):
        self._roster, self._blocks = roster, blocks
        self.uploads = {}
        # Owner to holder's x to share.
        self._seeds, self._mask_keys = {}, {}
        self._known_keys = {index: state.mask_private for index, state in colluders.items()}
        for index, state in colluders.items():
            for owner, shares in _records(state.held, _BOTH_BYTES):
                self._keep(self._seeds, owner, index, shares[: shamir.SHARE_BYTES])
                self._keep(self._mask_keys, owner, index, shares[shamir.SHARE_BYTES :])

    def take(self, holder, revealed):
        """Keep what a device reveals."""
        for kept, field in ((self._seeds, revealed.seeds), (self._mask_keys, revealed.mask_keys)):
            for owner, share in _records(field, _ONE_BYTES):
                self._keep(kept, owner, holder, share)

    @staticmethod
    def _keep(kept, owner, holder, share):
        kept.setdefault(owner, {})[holder + 1] = share

    def vectors(self):
        """The uploads from which every mask comes off, by index."""
        unmasked = {index: self._unmasked(index) for index in self.uploads}
        return {index: vector for index, vector in unmasked.items() if vector is not None}

    def _unmasked(self, index):
        included, packed = self.uploads[index]
        roster, own = self._roster, self._roster.entry(index)
        seed = self._secret(self._seeds, index)
        if seed is None:
            return None
        vector = Vector(self._blocks)
        vector.add_packed(packed)
        vector.mask(self_mask_key(seed, roster.round_id, own.peer_id), subtract=True)
        for other in included.intersection(roster.neighbours(index)):
            shared = self._shared(index, other)
            if shared is None:
                return None
            key = pair_mask_key(shared, roster.round_id, own.peer_id, roster.entry(other).peer_id)
            vector.mask(key, subtract=index < other)
        return vector

    def _shared(self, one, other):
        """What two devices have in common, if the mask key of either is known."""
        for owner, peer in ((one, other), (other, one)):
            private_key = self._mask_key(owner)
            if private_key is not None:
                return Agreement(private_key).with_peer(self._roster.entry(peer).mask_key)
        return None

    def _mask_key(self, owner):
        if owner not in self._known_keys:
            found = self._secret(self._mask_keys, owner)
            fits = found is not None and public_key(found) == self._roster.entry(owner).mask_key
            self._known_keys[owner] = found if fits else None
        return self._known_keys[owner]

    def _secret(self, kept, owner):
        shares = list(kept.get(owner, {}).items())[: self._roster.threshold]
        if len(shares) < self._roster.threshold:
            return None
        try:
            return shamir.join(dict(shares))
        except InvalidInputError:
            return None


def _records(stored, record_bytes):
    """(roster index, content) of records that lie one behind the other."""
    for at in range(0, len(stored), record_bytes):
        record = stored[at : at + record_bytes]
        yield int.from_bytes(record[:_INDEX_BYTES], "little"), record[_INDEX_BYTES:]
