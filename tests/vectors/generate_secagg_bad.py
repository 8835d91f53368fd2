"""Writes v1/secagg_bad.json: what devices and servers refuse, in the round of secagg_round.json, from docs/secagg.md.

Each case has one fault; all signatures are right unless that is the fault.
"""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.vectors.generate_agreement import (
    NOW,
    SERVER,
    STRANGER,
    bitmap,
    entry_message,
    included_message,
    membership,
    roster_digest,
    roster_message,
    survivors_message,
)
from tests.vectors.generate_agreement import public as member_public
from tests.vectors.generate_round import DROPPED, KIND, NOT_SIGNING, N, WholeRound, records
from tests.vectors.generate_secagg import P, public, share_bytes
from tests.vectors.plain import little, message, noise

LOW_ORDER = [
    bytes(32),
    b"\1" + bytes(31),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
]


# ---- what device 0 refuses: one step, in which some of what it is told is changed ----


def refused(step, name, least=2, **changed):
    return {"name": name, "step": step, "minimum_cohort": least, "changed": changed}


def roster(it, name, least=2, *, entries=None, vouchers=None, numbers=None, by=SERVER, label=None, **about):
    """A signed roster, of which only what differs is written down."""
    entries, (k, h, t) = entries or it.entries, numbers or it.numbers
    facts = {"round_id": it.round_id, "manifest_sha256": it.manifest, "kind": KIND} | about
    digest = roster_digest(*facts.values(), (k, h, t), entries)
    text = roster_message(digest) if label is None else label + digest
    changed = {**about, "roster_signature": by.sign(text)}
    changed |= {"entries": b"".join(entries)} if entries is not it.entries else {}
    changed |= {"vouchers": b"".join(vouchers)} if vouchers else {}
    changed |= {"degree": k, "holders": h, "threshold": t} if numbers else {}
    return refused("share", name, least, **changed)


def replaced(some, index, one):
    return [one if i == index else old for i, old in enumerate(some)]


def vouched(it, index, mask_key, share_key):
    """The entry and the voucher of a device with other keys, signed by itself."""
    device = it.devices[index]
    signature = device.member.sign(entry_message(it.round_id, device.peer_id, mask_key, share_key))
    entry = device.peer_id + mask_key + share_key + device.entry[80:]
    return entry, device.membership[32:] + signature


def with_entry(it, name, index, mask_key=None, share_key=None):
    """The roster in which one device has other keys."""
    own = it.devices[index].entry
    entry, voucher = vouched(it, index, mask_key or own[16:48], share_key or own[48:80])
    vouchers = [device.voucher for device in it.devices]
    changed = replaced(it.entries, index, entry), replaced(vouchers, index, voucher)
    return roster(it, name, entries=changed[0], vouchers=changed[1])


def bad_rosters(it):
    entries, last, new = it.entries, N - 1, public(noise("a new key", 32))
    vouchers = [device.voucher for device in it.devices]
    twice = entries[last - 1][:16] + entries[last][16:]
    member_twice = entries[last][:80] + entries[last - 1][80:]
    return [
        roster(it, "of another round", round_id=noise("another round", 16)),
        roster(it, "of another manifest", manifest_sha256=noise("another manifest", 32)),
        roster(it, "of another kind", kind=2),
        roster(it, "fewer devices than the minimum", N + 1),
        roster(it, "signed by another key", by=STRANGER),
        roster(it, "signed as a survivor set", label=b"lightfr survivors v1\n"),
        roster(it, "signed without its context", label=b""),
        roster(it, "ids out of order", entries=[*entries[:-2], entries[-1], entries[-2]],
               vouchers=[*vouchers[:-2], vouchers[-1], vouchers[-2]]),
        roster(it, "an id twice", entries=replaced(entries, last, twice)),
        with_entry(it, "a mask key twice", last, mask_key=entries[3][16:48]),
        with_entry(it, "a share key that is another's mask key", last, share_key=entries[3][16:48]),
        with_entry(it, "a mask key that is another's member key", last, mask_key=entries[3][80:]),
        roster(it, "a member key twice", entries=replaced(entries, last, member_twice)),
        roster(it, "without this device", entries=entries[1:], vouchers=vouchers[1:], numbers=(12, 12, 7)),
        with_entry(it, "another mask key for this device", 0, mask_key=new),
        with_entry(it, "another share key for this device", 0, share_key=new),
        roster(it, "one neighbour too few", numbers=(12, 13, 8)),
        roster(it, "one holder too few", numbers=(13, 12, 8)),
        roster(it, "a threshold that is no majority", numbers=(13, 13, 7)),
        roster(it, "a threshold above the usual one", numbers=(13, 13, 9)),
        roster(it, "half an entry", entries=[*entries, entries[last][:56]]),
        roster(it, "a voucher is missing", vouchers=vouchers[:-1]),
        roster(it, "a byte too many behind the vouchers", vouchers=[*vouchers, b"\0"]),
        *bad_vouchers(it, vouchers),
        *(with_entry(it, f"a holder's share key of low order, {i}", last, share_key=point)
          for i, point in enumerate(LOW_ORDER)),
    ]  # fmt: skip


def bad_vouchers(it, vouchers):
    """Of the last device; the roster itself is the good one."""
    device = it.devices[-1]
    key, own = member_public(device.member), device.entry_signature
    mask_key, share_key = device.entry[16:48], device.entry[48:80]
    elsewhere = device.member.sign(entry_message(noise("another round", 16), device.peer_id, mask_key, share_key))
    other_id = device.member.sign(entry_message(it.round_id, noise("another id", 16), mask_key, share_key))
    swapped = device.member.sign(entry_message(it.round_id, device.peer_id, share_key, mask_key))
    faults = {
        "a membership of another authority": membership(key, by=STRANGER)[32:] + own,
        "a membership that has ended": membership(key, NOW)[32:] + own,
        "another device's membership": it.devices[3].membership[32:] + own,
        "an entry that the device did not sign": device.membership[32:] + bytes(64),
        "an entry that another device signed": device.membership[32:] + it.devices[3].entry_signature,
        "an entry signed for another round": device.membership[32:] + elsewhere,
        "an entry signed for another id": device.membership[32:] + other_id,
        "an entry signed with its keys swapped": device.membership[32:] + swapped,
    }
    return [roster(it, name, vouchers=[*vouchers[:-1], voucher]) for name, voucher in faults.items()]


def bad_inboxes(it):
    inbox, good = it.inbox(0), records(it.inbox(0))
    contents = {
        "a sender twice": good + records({N - 1: inbox[N - 1]}),
        "not by ascending index": records({2: inbox[2]}) + records({1: inbox[1]}),
        "this device as a sender": records({0: inbox[1], **inbox}),
        "a sender beyond the roster": good + records({N: inbox[1]}),
        "half a record": good[:-1],
    }
    return [refused("acknowledge", name, inbox=content) for name, content in contents.items()]


def included(it, name, devices, least=2, *, content=None, digest=None, by=SERVER, label=None):
    content = bitmap(devices, N) if content is None else content
    text = included_message(digest or it.digest, content)
    text = text if label is None else label + text[len("lightfr included v1\n") :]
    return refused("sign_included", name, least, included=content, included_signature=by.sign(text))


def bad_inclusions(it):
    good = it.included_indices
    return [
        included(it, "signed by another key", good, by=STRANGER),
        included(it, "signed as a survivor set", good, label=b"lightfr survivors v1\n"),
        included(it, "signed for another roster", good, digest=noise("another digest", 32)),
        included(it, "without this device", good[1:]),
        included(it, "fewer devices than the minimum", good, N),
        included(it, "fewer than the threshold", range(7)),
        included(it, "a bit behind the last device", [], content=bytes([it.included[0], it.included[1] | 0x40])),
        included(it, "a byte too many", [], content=it.included + b"\0"),
        included(it, "a byte too few", [], content=it.included[:1]),
    ]


def quorums(it, step, prefix, signed, text, outsider, other_text):
    """Cases of step 5 or 7: what the server says others have signed."""
    devices, key = it.devices, it.devices[signed[0]].member

    def case(name, signers, signatures=None, content=None):
        signatures = b"".join(devices[i].member.sign(text) for i in signers) if signatures is None else signatures
        given = {f"{prefix}_signers": content or bitmap(signers, N), f"{prefix}_signatures": signatures}
        return refused(step, name, **given)

    nine = signed[:9]
    true = [devices[i].member.sign(text) for i in nine]
    beyond = bitmap(nine, N)
    return [
        case("one signer too few", signed[:8]),
        case("nobody signed", [], b""),
        case("a signer who is not in the set", sorted([*signed[:8], outsider])),
        case("a signature is missing", nine, b"".join(true[:-1])),
        case("a signature too many", nine, b"".join([*true, true[0]])),
        case("half a signature", nine, b"".join(true)[:-32]),
        case("two signatures in the wrong places", nine, b"".join([true[1], true[0], *true[2:]])),
        case("a signature of zeros", nine, b"".join([*true[:-1], bytes(64)])),
        case("a signature of another set", nine, b"".join([*true[:-1], devices[nine[-1]].member.sign(other_text)])),
        case("one device signed for all", nine, b"".join(key.sign(text) for _ in nine)),
        case("a bit behind the last device", nine, content=bytes([beyond[0], beyond[1] | 0x80])),
    ]


def survivors(it, name, devices, least=2, *, content=None, among=None, digest=None, by=SERVER):
    content = bitmap(devices, N) if content is None else content
    text = survivors_message(digest or it.digest, among or it.included, content)
    return refused("sign_survivors", name, least, survivors=content, survivors_signature=by.sign(text))


def bad_survivals(it):
    good = it.alive
    return [
        survivors(it, "signed by another key", good, by=STRANGER),
        survivors(it, "signed for another included set", good, among=bitmap(range(N), N)),
        survivors(it, "signed for another roster", good, digest=noise("another digest", 32)),
        survivors(it, "without this device", good[1:]),
        survivors(it, "a survivor who was not included", sorted([*good, 8])),
        survivors(it, "fewer devices than the minimum", good, 12),
        survivors(it, "fewer than the threshold", good[:7]),
        survivors(it, "a bit behind the last device", [], content=bytes([it.survivors[0], it.survivors[1] | 0x40])),
    ]


def device_cases(it):
    other_set = included_message(it.digest, bitmap(range(N), N))
    other_survivors = survivors_message(it.digest, it.included, it.included)
    return [
        *bad_rosters(it),
        *bad_inboxes(it),
        *bad_inclusions(it),
        *quorums(it, "upload", "included", it.signed_included, it.included_message, 8, other_set),
        *bad_survivals(it),
        *quorums(it, "reveal", "survivors", it.revealing, it.survivors_message, DROPPED, other_survivors),
    ]


# ---- what the server refuses, always with UPLOAD_INVALID ----


def bad_keys(it):
    """AdvertiseKeys of a fifteenth device, after the fourteen."""
    mask, share = public(noise("fifteenth mask", 32)), public(noise("fifteenth share", 32))
    member = Ed25519PrivateKey.from_private_bytes(noise("fifteenth member", 32))
    own, peer_id, first = membership(member_public(member)), noise("fifteenth peer", 16), it.devices[0]

    def request(mask_key=mask, share_key=share, said=own, by=member, round_id=it.round_id, peer=peer_id):
        signature = by.sign(entry_message(round_id, peer, mask_key, share_key))
        return message((1, it.round_id), (2, mask_key), (3, share_key), (4, said), (5, signature))

    low = {f"a mask key of low order, {i}": request(point) for i, point in enumerate(LOW_ORDER)}
    return peer_id, request(), {
        "the same key twice": request(mask, mask),
        "another device's mask key": request(first.entry[16:48]),
        "another device's share key, as a mask key": request(first.entry[48:80]),
        "another device's member key, as a mask key": request(first.entry[80:]),
        "its own member key, as a share key": request(mask, member_public(member)),
        "another device's member key": request(said=first.membership, by=first.member),
        "a share key of low order": request(mask, LOW_ORDER[0]),
        **low,
        "a membership of another authority": request(said=membership(member_public(member), by=STRANGER)),
        "a membership that has ended": request(said=membership(member_public(member), NOW)),
        "a membership whose end was moved": request(said=own[:32] + little([NOW + 9], 8) + own[40:]),
        "signed by another key": request(by=first.member),
        "signed for another round": request(round_id=noise("another round", 16)),
        "signed for another id": request(peer=first.peer_id),
    }  # fmt: skip


def requests_of(round_id, field, contents):
    return {name: message((1, round_id), (field, content)) for name, content in contents.items()}


def bad_shares(it):
    sealed = it.devices[0].sealed
    good = records(sealed)
    itself = {0: sealed[1], **{i: sealed[i] for i in range(2, N)}}
    beyond = {**{i: sealed[i] for i in range(1, N - 1)}, N: sealed[N - 1]}
    return {
        "a holder is missing": records({i: sealed[i] for i in range(1, N - 1)}),
        "none at all": b"",
        "a holder twice": good[:-98] + good[-196:-98],
        "not by ascending index": good[98:196] + good[:98] + good[196:],
        "one for itself": records(itself),
        "one beyond the roster": records(beyond),
        "one too many": good + good[-98:],
        "a byte too many": good + b"\0",
        "a byte missing": good[:-1],
    }


def bad_complaints():
    return {
        "a byte too many": bytes(3),
        "a byte missing": bytes(1),
        "nothing": b"",
        "a bit behind the last device": b"\0\x40",
        "about itself, who sent itself nothing": b"\1\0",
    }


def bad_signatures(it, text, other):
    first = it.devices[0].member
    return {
        "zeros": bytes(64),
        "signed by another device": it.devices[2].member.sign(text),
        "signed by the server": SERVER.sign(text),
        "of another set": first.sign(other),
        "of the roster": first.sign(roster_message(it.digest)),
    }


def bad_vectors(it):
    """Upload of device 0: the block `weight` has twelve bits, so four of its last byte must be clear."""
    upload = it.upload(0)
    head = message((1, it.round_id), (2, it.manifest), (3, noise("an upload", 16)))
    contents = {
        "a byte missing": upload[:-1],
        "a byte too many": upload + b"\0",
        "nothing": b"",
        "a bit behind the last value": upload[:-1] + bytes([upload[-1] | 0x80]),
        "the lowest bit behind the last value": upload[:-1] + bytes([upload[-1] | 0x10]),
    }
    contents = {name: head + message((5, content)) for name, content in contents.items()}
    return contents | {"rows in the clear": head + b"\x22\x02\x08\x08"}


def bad_reveals(it):
    seeds, keys = it.seeds(0), it.mask_keys(0)
    good_seeds, good_keys = records(seeds), records(keys)
    survivor = {2: it.devices[2].key_shares[0]}
    dropped = {DROPPED: it.devices[DROPPED].seed_shares[0]}
    not_included = {8: it.devices[8].seed_shares[0]}
    contents = {
        "its own seed is missing": (good_seeds[37:], good_keys),
        "no seeds": (b"", good_keys),
        "no mask keys": (good_seeds, b""),
        "one mask key is missing": (good_seeds, good_keys[37:]),
        "both secrets of a survivor": (good_seeds, records({**keys, **survivor})),
        "both secrets of a dropped device": (records({**seeds, **dropped}), good_keys),
        "the seed of a dropped device in place of its mask key": (records({**seeds, **dropped}), good_keys[37:]),
        "a device that was not included": (records({**seeds, **not_included}), good_keys),
        "a device twice": (good_seeds + good_seeds[-37:], good_keys),
        "not by ascending index": (good_seeds[37:74] + good_seeds[:37] + good_seeds[74:], good_keys),
        "a device beyond the roster": (good_seeds, records({DROPPED: keys[DROPPED], N: keys[NOT_SIGNING]})),
        "a share that is not below p": (records({**seeds, 2: share_bytes(P)}), good_keys),
        "half a record": (good_seeds, good_keys[:-1]),
    }
    return {name: message((1, it.round_id), (2, one), (3, other)) for name, (one, other) in contents.items()}


def server_cases(it, keys):
    other_survivors = survivors_message(it.digest, it.included, it.included)
    other_set = included_message(it.digest, bitmap(range(N), N))
    by_method = {
        "AdvertiseKeys": keys,
        "ShareKeys": requests_of(it.round_id, 2, bad_shares(it)),
        "AcknowledgeShares": requests_of(it.round_id, 2, bad_complaints()),
        "SignIncluded": requests_of(it.round_id, 2, bad_signatures(it, it.included_message, other_set)),
        "Upload": bad_vectors(it),
        "SignSurvivors": requests_of(it.round_id, 2, bad_signatures(it, it.survivors_message, other_survivors)),
        "RevealShares": bad_reveals(it),
    }
    return [
        {"name": name, "method": method, "request": request}
        for method, requests in by_method.items()
        for name, request in requests.items()
    ]


# ---- answers after which no mask may come off ----


def failure(name, it, revealing, *, seeds=(), mask_keys=()):
    """Who reveals, and what some of them say in place of a true share: (holder, owner, number)."""
    said = {i: (it.seeds(i), it.mask_keys(i)) for i in revealing}
    for which, lies in enumerate((seeds, mask_keys)):
        for holder, owner, share in lies:
            said[holder][which][owner] = share_bytes(share)
    answers = {str(i): {"seeds": records(one), "mask_keys": records(other)} for i, (one, other) in said.items()}
    return {"name": name, "answers": answers}


def failures(it):
    all_ten = it.revealing
    return [
        failure("too few answers", it, all_ten[:7]),
        failure("one secret has a share too few", it, [i for i in all_ten if i not in (0, 5)]),
        failure("a false share, and none to spare", it, all_ten[:9], seeds=[(all_ten[0], 2, 7)]),
        failure("two false shares of a seed", it, all_ten, seeds=[(all_ten[0], 2, 7), (all_ten[9], 2, 8)]),
        failure("two false shares of a mask key", it, all_ten,
                mask_keys=[(all_ten[0], DROPPED, 7), (all_ten[9], DROPPED, 8)]),
        # A constant polynomial: all shares agree on a secret that is another one.
        failure("a mask key that is not the one in the roster", it, all_ten,
                mask_keys=[(i, DROPPED, 7) for i in all_ten]),
    ]  # fmt: skip


def vectors():
    it = WholeRound()
    peer_id, good, keys = bad_keys(it)
    return {
        "secagg_bad.json": {
            "device_refuses": device_cases(it),
            "server_refuses": {
                "reason": "ERROR_REASON_UPLOAD_INVALID",
                "fifteenth_peer_id": peer_id,
                "good_fifteenth": good,
                "cases": server_cases(it, keys),
            },
            "round_ends_without_a_sum": failures(it),
        }
    }
