"""Writes a whole round of secure aggregation, and one device's part in a cohort with a sparse graph.

From docs/secagg.md alone. The cohort of generate_secagg_bad.py is the same.
"""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.vectors.generate_agreement import (
    MEMBERSHIP_KEYS,
    NOW,
    SERVER,
    WITNESSES,
    bitmap,
    drawn,
    entry_message,
    graph,
    included_message,
    membership,
    quorum,
    roster_digest,
    roster_message,
    survivors_message,
    usual_numbers,
)
from tests.vectors.generate_agreement import public as member_public
from tests.vectors.generate_secagg import (
    Tape,
    agreed,
    mask_numbers,
    packed,
    pair_key,
    public,
    sealing_key,
    self_key,
    share_bytes,
    split,
)
from tests.vectors.generate_sums import training_blocks
from tests.vectors.plain import little, noise

KIND = 1
# What becomes of some of the fourteen devices.
N = 14
NOT_ACKNOWLEDGING, NOT_SIGNING, DROPPED, SILENT, LIAR = 8, 10, 1, 4, 7
COMPLAINER, COMPLAINED_ABOUT = 3, 6
LIES_NOT_ABOUT, ANY_NUMBER_OF = [5, 6, 9], 2
BLOCKS = training_blocks(2, 8, N)


class RoundDevice:
    """One device, step by step as docs/secagg.md says."""

    def __init__(self, label, round_id):
        self.tape, self.round_id = Tape(f"device {label}"), round_id
        self.peer_id = noise(f"peer {label}", 16)
        self.member_private = noise(f"member {label}", 32)
        self.member = Ed25519PrivateKey.from_private_bytes(self.member_private)
        self.membership = membership(member_public(self.member))
        self.mask_private, self.share_private, self.seed = self.tape(32), self.tape(32), self.tape(32)
        keys = public(self.mask_private), public(self.share_private)
        self.entry = b"".join((self.peer_id, *keys, member_public(self.member)))
        self.entry_signature = self.member.sign(entry_message(round_id, self.peer_id, *keys))
        self.voucher = self.membership[32:] + self.entry_signature

    def share(self, cohort):
        own, n = cohort.devices.index(self), len(cohort.devices)
        _, h, t = cohort.numbers
        self.holders, self.witnesses = drawn(own, n, h, self.tape), drawn(own, n, WITNESSES, self.tape)
        seeds = split(self.seed, [i + 1 for i in [own, *self.holders]], t, self.tape)
        keys = split(self.mask_private, [i + 1 for i in self.holders], t, self.tape)
        self.seed_shares = dict(zip([own, *self.holders], map(share_bytes, seeds), strict=True))
        self.key_shares = dict(zip(self.holders, map(share_bytes, keys), strict=True))
        self.sealed = {}
        for i in self.holders:
            nonce, plain = self.tape(12), self.seed_shares[i] + self.key_shares[i]
            self.sealed[i] = sealed(self, cohort.devices[i], cohort.digest, nonce, plain)

    def upload(self, neighbours):
        total = [list(values) for values in self.vector]
        masks = [(1, self_key(self.seed, self.round_id, self.peer_id))]
        for peer in neighbours:
            shared = agreed(self.mask_private, public(peer.mask_private))
            sign = 1 if self.peer_id < peer.peer_id else -1
            masks.append((sign, pair_key(shared, self.round_id, self.peer_id, peer.peer_id)))
        for sign, key in masks:
            for values, mask in zip(total, mask_numbers(key, BLOCKS), strict=True):
                values[:] = [v + sign * m for v, m in zip(values, mask, strict=True)]
        return packed(total, BLOCKS)


def sealed(sender, receiver, digest, nonce, plain):
    shared = agreed(sender.share_private, public(receiver.share_private))
    key = sealing_key(shared, sender.round_id, digest, sender.peer_id, receiver.peer_id)
    return nonce + AESGCM(key).encrypt(nonce, plain, None)


class Cohort:
    """Devices by ascending id, their roster and its digest."""

    def __init__(self, label, n):
        self.round_id, self.manifest = noise(f"{label} round", 16), noise(f"{label} manifest", 32)
        made = [RoundDevice(f"{label} {i}", self.round_id) for i in range(n)]
        self.devices, self.numbers = sorted(made, key=lambda device: device.peer_id), usual_numbers(n)
        self.entries = [device.entry for device in self.devices]
        self.digest = roster_digest(self.round_id, self.manifest, KIND, self.numbers, self.entries)

    def told(self):
        """What a device trusts and is told of the roster."""
        return {
            "round_id": self.round_id,
            "manifest_sha256": self.manifest,
            "kind": KIND,
            "now_unix_seconds": NOW,
            "membership_keys": MEMBERSHIP_KEYS,
            "server_private_key": SERVER.private_bytes_raw(),
            "server_key": member_public(SERVER),
            **dict(zip(("degree", "holders", "threshold"), self.numbers, strict=True)),
            "entries": b"".join(self.entries),
            "vouchers": b"".join(device.voucher for device in self.devices),
            "roster_digest": self.digest,
            "roster_signature": SERVER.sign(roster_message(self.digest)),
        }


def records(by_index):
    """Roster index and content, one behind the other."""
    return b"".join(little([i], 4) + content for i, content in sorted(by_index.items()))


class WholeRound(Cohort):
    """The fourteen devices after everything."""

    def __init__(self):
        super().__init__("whole", N)
        for i, device in enumerate(self.devices):
            device.share(self)
            bits = [1 if byte & 1 else -1 for byte in noise(f"code {i}", 8)]
            rows = [byte % 3 - 1 for byte in noise(f"rows {i}", 16)]
            device.vector = [rows, [32 * bit for bit in bits], [32]]
        included = [i for i in range(N) if i != NOT_ACKNOWLEDGING]
        self.alive = [i for i in included if i not in (NOT_SIGNING, DROPPED)]
        self.gone = [NOT_SIGNING, DROPPED]
        self.included_indices, self.included, self.survivors = included, bitmap(included, N), bitmap(self.alive, N)
        self.included_message = included_message(self.digest, self.included)
        self.survivors_message = survivors_message(self.digest, self.included, self.survivors)
        self.signed_included = [i for i in included if i != NOT_SIGNING]
        self.revealing = [i for i in self.alive if i != SILENT]
        spoilt = bytearray(self.devices[COMPLAINED_ABOUT].sealed[COMPLAINER])
        spoilt[-1] ^= 1
        self.spoilt = bytes(spoilt)

    def quorum(self, signed, message):
        """Signers, and their signatures one behind the other."""
        signers = signed[: quorum(N)]
        return bitmap(signers, N), b"".join(self.devices[i].member.sign(message) for i in signers)

    def inbox(self, receiver):
        inbox = {i: d.sealed[receiver] for i, d in enumerate(self.devices) if i != receiver}
        return inbox | {COMPLAINED_ABOUT: self.spoilt} if receiver == COMPLAINER else inbox

    def held(self, holder, owners):
        """Those of the owners whose shares a holder has."""
        return [i for i in owners if (holder, i) != (COMPLAINER, COMPLAINED_ABOUT)]

    def seeds(self, holder):
        return {i: self.devices[i].seed_shares[holder] for i in self.held(holder, self.alive)}

    def mask_keys(self, holder):
        return {i: self.devices[i].key_shares[holder] for i in self.held(holder, self.gone)}

    def false_seeds(self):
        """What the liar reveals: most shares are too large by one, another is any number, and some are true."""
        true, true_of, any_of = self.seeds(LIAR), LIES_NOT_ABOUT, ANY_NUMBER_OF
        larger = {i: share_bytes(int.from_bytes(share, "little") + 1) for i, share in true.items() if i not in true_of}
        return true | larger | {any_of: share_bytes(7)}

    def upload(self, index):
        peers = [self.devices[i] for i in self.included_indices if i != index]
        return self.devices[index].upload(peers)

    def device(self, i):
        device = self.devices[i]
        return {
            "peer_id": device.peer_id,
            "member_private_key": device.member_private,
            "membership": device.membership,
            "random": device.tape.given,
            "entry_signature": device.entry_signature,
            "sealed": {str(holder): content for holder, content in device.sealed.items()},
            "unopened": bitmap([COMPLAINED_ABOUT] if i == COMPLAINER else [], N) if i != NOT_ACKNOWLEDGING else b"",
            "included_signature": device.member.sign(self.included_message) if i in self.signed_included else b"",
            "vector": device.vector,
            "upload": self.upload(i) if i in self.alive else b"",
            "survivors_signature": device.member.sign(self.survivors_message) if i in self.revealing else b"",
            "seeds": records(self.seeds(i)) if i in self.revealing else b"",
            "mask_keys": records(self.mask_keys(i)) if i in self.revealing else b"",
        }


def round_file():
    it = WholeRound()
    included_signers, included_signatures = it.quorum(it.signed_included, it.included_message)
    survivors_signers, survivors_signatures = it.quorum(it.revealing, it.survivors_message)
    vectors = [it.devices[i].vector for i in it.alive]
    return {
        "blocks": BLOCKS,
        **it.told(),
        "spoilt": {"sender": COMPLAINED_ABOUT, "receiver": COMPLAINER, "sealed": it.spoilt},
        "included": it.included,
        "included_signature": SERVER.sign(it.included_message),
        "included_signers": included_signers,
        "included_signatures": included_signatures,
        "survivors": it.survivors,
        "survivors_signature": SERVER.sign(it.survivors_message),
        "survivors_signers": survivors_signers,
        "survivors_signatures": survivors_signatures,
        "false_seeds": {str(LIAR): records(it.false_seeds())},
        "faulty": [LIAR],
        "devices": [it.device(i) for i in range(N)],
        "sum": [[sum(v) for v in zip(*blocks, strict=True)] for blocks in zip(*vectors, strict=True)],
    }


def sparse_file():
    """130 devices, and the first steps of device 0 among them."""
    n = 130
    cohort = Cohort("sparse", n)
    cycles, near = graph(cohort.digest, n, cohort.numbers[0])
    device = cohort.devices[0]
    device.share(cohort)
    needed = -(-5 * len(near[0]) // 8)
    # As few neighbours of device 0 as may be, and everybody else; then one neighbour less.
    enough, too_few = (bitmap([i for i in range(n) if i not in near[0][: -needed + less]], n) for less in (0, 1))
    included = bitmap(range(n), n)
    signers = range(quorum(n))
    stranger = next(i for i in signers if i and i not in device.witnesses)
    return {
        **cohort.told(),
        "first_and_last_cycle": [cycles[0], cycles[-1]],
        "device": {
            "peer_id": device.peer_id,
            "member_private_key": device.member_private,
            "membership": device.membership,
            "random": device.tape.given,
            "neighbours": near[0],
            "holders": device.holders,
            "witnesses": device.witnesses,
            "sealed_shares": records(device.sealed),
        },
        "enough_neighbours": signed_set(cohort, enough),
        "too_few_neighbours": signed_set(cohort, too_few),
        "everybody": signed_set(cohort, included),
        "signers": bitmap(signers, n),
        "signatures": b"".join(
            cohort.devices[i].member.sign(included_message(cohort.digest, included)) for i in signers
        ),
        "a_witness_who_signs": next(i for i in signers if i in device.witnesses),
        "a_signer_who_is_no_witness": stranger,
    }


def signed_set(cohort, included):
    return {"included": included, "included_signature": SERVER.sign(included_message(cohort.digest, included))}


def vectors():
    return {"secagg_round.json": round_file(), "secagg_sparse.json": sparse_file()}
