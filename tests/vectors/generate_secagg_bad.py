"""Writes v1/secagg_bad.json: what devices and servers refuse, in the round of secagg_round.json, from docs/secagg.md.

Each case has one fault; all signatures are right unless that is the fault.
"""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.vectors.generate_secagg import (
    ROUND_BLOCKS,
    ROUND_ID,
    THRESHOLD,
    N,
    P,
    agreed,
    bitmap,
    cohort,
    public,
    roster_digest,
    sealing_key,
    self_masks,
    share_bytes,
)
from tests.vectors.plain import little, noise

SERVER = Ed25519PrivateKey.from_private_bytes(noise("server", 32))
LOW_ORDER = [
    bytes(32),
    b"\1" + bytes(31),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
]
# As in secagg_round.json: device 1 drops before its upload, device 3 after it.
DROPPED, SILENT = 1, 3
ALIVE = [i for i in range(N) if i != DROPPED]


def roster(name, entries, *, round_id=ROUND_ID, degree=N - 1, threshold=THRESHOLD, least=2, context=None, by=SERVER):
    """A signed roster for device 0, whose minimum cohort is `least`."""
    digest = roster_digest(round_id, degree, threshold, entries)
    signature = by.sign((b"lightfr roster v1\n" if context is None else context) + digest)
    shape = {"degree": degree, "threshold": threshold, "minimum_cohort": least}
    return {"name": name, "round_id": round_id, **shape, "entries": b"".join(entries), "signature": signature}


def changed(entries, index, entry):
    return [entry if i == index else old for i, old in enumerate(entries)]


def bad_rosters(devices):
    entries = [d.entry for d in devices]
    own, last = entries[0], entries[4]
    stranger = Ed25519PrivateKey.from_private_bytes(noise("another server", 32))
    low = [
        roster(f"a neighbour's share key of low order, {i}", changed(entries, 4, last[:48] + point))
        for i, point in enumerate(LOW_ORDER)
    ]
    return [
        roster("of another round", entries, round_id=noise("another round", 16)),
        roster("fewer devices than the minimum", entries, least=6),
        roster("signed by another key", entries, by=stranger),
        roster("signed as a survivor set", entries, context=b"lightfr survivors v1\n"),
        roster("signed without its context", entries, context=b""),
        roster("ids out of order", [*entries[:3], entries[4], entries[3]]),
        roster("an id twice", changed(entries, 4, entries[3][:16] + last[16:])),
        roster("a mask key twice", changed(entries, 4, last[:16] + entries[3][16:48] + last[48:])),
        roster("a share key that is another's mask key", changed(entries, 4, last[:48] + entries[3][16:48])),
        roster("without this device", entries[1:], degree=3),
        roster("another mask key for this device", changed(entries, 0, own[:16] + public(noise("x", 32)) + own[48:])),
        roster("another share key for this device", changed(entries, 0, own[:48] + public(noise("x", 32)))),
        roster("3 neighbours of 4", entries, degree=3),
        roster("5 neighbours of 4", entries, degree=5),
        roster("a threshold that is no majority", entries, threshold=2),
        roster("a threshold above the holders", entries, threshold=6),
        roster("half an entry", [*entries, last[:40]]),
        *low,
    ]


def sealed_for(sender, receiver, digest, plain):
    """What a sender would seal, of other content."""
    shared = agreed(sender.share_private, public(receiver.share_private))
    key, nonce = sealing_key(shared, ROUND_ID, digest, sender.peer_id, receiver.peer_id), noise("bad nonce", 12)
    return nonce + AESGCM(key).encrypt(nonce, plain, None)


def inclusion(name, included, inbox, least=2):
    numbered = {str(i): sealed for i, sealed in inbox.items()}
    return {"name": name, "included": included, "inbox": numbered, "minimum_cohort": least}


def bad_inclusions(devices, digest):
    """For device 0."""
    inbox = {i: devices[i].sealed[0] for i in range(1, N)}
    everybody, beyond = bitmap(range(N), N), bytes([0x3F])
    flipped = inbox[2][:-1] + bytes([inbox[2][-1] ^ 1])
    for_another = devices[2].sealed[3]
    beyond_p = sealed_for(devices[2], devices[0], digest, share_bytes(P) + share_bytes(1))
    return [
        inclusion("without this device", bitmap(range(1, N), N), inbox),
        inclusion("fewer devices than the minimum", bitmap([0, 1, 2], N), {1: inbox[1], 2: inbox[2]}, least=4),
        inclusion("fewer holders of its seed than the threshold", bitmap([0, 1], N), {1: inbox[1]}),
        inclusion("a bit behind the last device", beyond, inbox),
        inclusion("a byte too many", everybody + b"\0", inbox),
        inclusion("a neighbour's message is missing", everybody, {i: inbox[i] for i in (1, 2, 3)}),
        inclusion("a message of a device that is not included", bitmap([0, 1, 2, 3], N), inbox),
        inclusion("a message that was changed", everybody, {**inbox, 2: flipped}),
        inclusion("a message for another device", everybody, {**inbox, 2: for_another}),
        inclusion("a message that is cut short", everybody, {**inbox, 2: inbox[2][:-1]}),
        inclusion("a share that is not below p", everybody, {**inbox, 2: beyond_p}),
    ]


def survival(name, digest, survivors, *, included=None, context=b"lightfr survivors v1\n", by=SERVER, least=2):
    told = context + digest + (included or bitmap(range(N), N)) + survivors
    return {"name": name, "survivors": survivors, "signature": by.sign(told), "minimum_cohort": least}


def bad_survivals(digest):
    """For device 0, to which everybody was included but device 4."""
    included = bitmap(range(4), N)
    good = bitmap([0, 2, 3], N)
    stranger = Ed25519PrivateKey.from_private_bytes(noise("another server", 32))
    return [
        survival("signed by another key", digest, good, included=included, by=stranger),
        survival("signed as a roster", digest, good, included=included, context=b"lightfr roster v1\n"),
        survival("signed for another included set", digest, good),
        survival("signed for another roster", noise("another digest", 32), good, included=included),
        survival("without this device", digest, bitmap([1, 2, 3], N), included=included),
        survival("a survivor who was not included", digest, bitmap([0, 2, 3, 4], N), included=included),
        survival("fewer devices than the minimum", digest, good, included=included, least=4),
        survival("fewer holders of its seed than the threshold", digest, bitmap([0, 2], N), included=included),
        survival("a bit behind the last device", digest, bytes([good[0] | 0x20]), included=included),
    ]


# ---- what the server refuses, always with UPLOAD_INVALID ----


def bad_keys(devices):
    """AdvertiseKeys of a sixth device, after the five."""
    mask, share = public(noise("sixth mask", 32)), public(noise("sixth share", 32))
    first = devices[0].entry
    low = [{"name": f"a mask key of low order, {i}", "keys": point + share} for i, point in enumerate(LOW_ORDER)]
    return [
        {"name": "the same key twice", "keys": mask + mask},
        {"name": "another device's mask key", "keys": first[16:48] + share},
        {"name": "another device's share key, as a mask key", "keys": first[48:80] + share},
        {"name": "a share key of low order", "keys": mask + LOW_ORDER[0]},
        *low,
    ]


def records(device, order):
    return b"".join(little([i], 4) + device.sealed[i] for i in order)


def bad_shares(devices):
    """ShareKeys of device 0."""
    first = devices[0]
    return [
        {"name": "a neighbour is missing", "sealed_shares": records(first, [1, 2, 3])},
        {"name": "none at all", "sealed_shares": b""},
        {"name": "a neighbour twice", "sealed_shares": records(first, [1, 2, 3, 3])},
        {"name": "not by ascending index", "sealed_shares": records(first, [2, 1, 3, 4])},
        {"name": "one for itself", "sealed_shares": little([0], 4) + first.sealed[1] + records(first, [2, 3, 4])},
        {"name": "a byte too many", "sealed_shares": records(first, [1, 2, 3, 4]) + b"\0"},
        {"name": "a byte missing", "sealed_shares": records(first, [1, 2, 3, 4])[:-1]},
    ]


def bad_vectors(devices):
    """Upload of device 0: the block `weight` has ten bits, so six of its last byte must be clear."""
    upload = devices[0].upload(devices, ROUND_BLOCKS)
    return [
        {"name": "a byte missing", "masked_vector": upload[:-1]},
        {"name": "a byte too many", "masked_vector": upload + b"\0"},
        {"name": "empty", "masked_vector": b""},
        {"name": "a bit behind the last value", "masked_vector": upload[:-1] + bytes([upload[-1] | 0x80])},
        {"name": "the lowest bit behind the last value", "masked_vector": upload[:-1] + bytes([upload[-1] | 0x04])},
    ]


def bad_reveals(devices):
    """RevealShares of device 0."""
    seeds = self_masks(devices, ALIVE, 0)
    key = devices[DROPPED].peer_id + devices[DROPPED].key_shares[0]
    survivor_key = devices[2].peer_id + devices[2].key_shares[0]
    dropped_seed = devices[DROPPED].peer_id + devices[DROPPED].seed_shares[0]
    by_id = sorted([seeds[at : at + 49] for at in range(0, len(seeds), 49)] + [dropped_seed])
    return [
        {"name": "its own seed is missing", "self_masks": seeds[49:], "mask_keys": key},
        {"name": "no seeds", "self_masks": b"", "mask_keys": key},
        {"name": "no mask key of the dropped device", "self_masks": seeds, "mask_keys": b""},
        {"name": "both secrets of a survivor", "self_masks": seeds, "mask_keys": key + survivor_key},
        {"name": "both secrets of the dropped device", "self_masks": b"".join(by_id), "mask_keys": key},
        {"name": "a device twice", "self_masks": seeds + seeds[-49:], "mask_keys": key},
        {"name": "a device that is not in the roster", "self_masks": seeds, "mask_keys": bytes(16) + key[16:]},
        {"name": "a share that is not below p", "self_masks": seeds, "mask_keys": key[:16] + share_bytes(P)},
        {"name": "half a record", "self_masks": seeds, "mask_keys": key[:-1]},
    ]


def failures(devices):
    """Answers that are taken, but after which no mask may come off. Of devices 0, 2 and 4."""
    answers = {
        i: {
            "self_masks": self_masks(devices, ALIVE, i),
            "mask_keys": devices[DROPPED].peer_id + devices[DROPPED].key_shares[i],
        }
        for i in ALIVE
        if i != SILENT
    }
    false = dict(answers[4])
    false["mask_keys"] = false["mask_keys"][:16] + share_bytes(1)
    return [
        {"name": "fewer answers than the threshold", "answers": {str(i): answers[i] for i in (0, 2)}},
        {"name": "a false share of a mask key", "answers": {**{str(i): answers[i] for i in (0, 2)}, "4": false}},
    ]


def vectors():
    devices, digest = cohort()
    return {
        "secagg_bad.json": {
            "device_refuses": {
                "rosters": bad_rosters(devices),
                "inclusions": bad_inclusions(devices, digest),
                "included_before_survivors": bitmap(range(4), N),
                "survivors": bad_survivals(digest),
            },
            "server_refuses": {
                "reason": "ERROR_REASON_UPLOAD_INVALID",
                "keys": bad_keys(devices),
                "shares": bad_shares(devices),
                "vectors": bad_vectors(devices),
                "reveals": bad_reveals(devices),
            },
            "round_ends_without_a_sum": failures(devices),
        }
    }
