"""Writes who is in a cohort and what it agrees on: memberships, rosters, graphs, quorums, the included set.

From docs/secagg.md alone.
"""

import hashlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tests.vectors.plain import chosen, little, noise

NOW = 1_800_000_000
AUTHORITY, OLD_AUTHORITY, STRANGER, SERVER = (
    Ed25519PrivateKey.from_private_bytes(noise(label, 32))
    for label in ("authority", "authority before", "another authority", "server")
)
MEMBERSHIP_KEYS = [key.public_key().public_bytes_raw() for key in (AUTHORITY, OLD_AUTHORITY)]
WITNESSES = 96


def public(key):
    return key.public_key().public_bytes_raw()


def membership(member_key, end=NOW + 86_400, *, by=AUTHORITY, label=b"lightfr member v1\n"):
    statement = member_key + little([end], 8)
    return statement + by.sign(label + statement)


def entry_message(round_id, peer_id, mask_key, share_key):
    return b"lightfr entry v1\n" + round_id + peer_id + mask_key + share_key


def roster_message(digest):
    return b"lightfr roster v1\n" + digest


def included_message(digest, included):
    return b"lightfr included v1\n" + digest + included


def survivors_message(digest, included, survivors):
    return b"lightfr survivors v1\n" + digest + included + survivors


def quorum(n):
    return max(n // 2 + 1, 7 * n // 10)


def usual_numbers(n):
    """k, h and t."""
    return (n - 1, n - 1, n // 2 + 1) if n <= 129 else (64, 80, 39)


def roster_digest(round_id, manifest, kind, numbers, entries):
    head = round_id + manifest + little([kind, len(entries), *numbers], 4)
    return hashlib.sha256(head + b"".join(entries)).digest()


def graph(digest, n, degree):
    """The cycles, and the neighbours of every index."""
    if degree == n - 1:
        return [], [[i for i in range(n) if i != own] for own in range(n)]
    key = hashlib.sha256(b"lightfr graph v1\n" + digest).digest()
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(8 * n * degree // 2))
    numbers = [int.from_bytes(stream[at : at + 8], "little") for at in range(0, len(stream), 8)]
    cycles = [sorted(range(n), key=lambda i: (numbers[j * n + i], i)) for j in range(degree // 2)]
    near = [set() for _ in range(n)]
    for cycle in cycles:
        for place, one in enumerate(cycle):
            near[one].add(cycle[place - 1])
            near[cycle[place - 1]].add(one)
    return cycles, [sorted(some) for some in near]


def drawn(own, n, wanted, random):
    """So many of the other devices, without replacement."""
    left = [i for i in range(n) if i != own]
    if len(left) <= wanted:
        return left
    numbers = [int.from_bytes(random(4), "little") for _ in range(wanted)]
    for i, number in enumerate(numbers):
        j = i + (number * (len(left) - i) >> 32)
        left[i], left[j] = left[j], left[i]
    return sorted(left[:wanted])


def bitmap(indices, n):
    bits = ["1" if i in indices else "0" for i in range((n + 7) // 8 * 8)]
    return bytes(int("".join(reversed(bits[at : at + 8])), 2) for at in range(0, len(bits), 8))


# ---- memberships ----


def membership_file():
    key, other = public(Ed25519PrivateKey.from_private_bytes(noise("member", 32))), noise("another member", 32)
    good = membership(key)
    accepted = {
        "of the first key": good,
        "of the second key": membership(key, by=OLD_AUTHORITY),
        "it ends a second later": membership(key, NOW + 1),
        "it never ends": membership(key, 2**64 - 1),
    }
    refused = {
        "it ends now": membership(key, NOW),
        "it ended long ago": membership(key, 0),
        "of another authority": membership(key, by=STRANGER),
        "signed without its context": membership(key, label=b""),
        "signed as a roster": membership(key, label=b"lightfr roster v1\n"),
        "of another member key": other + good[32:],
        "its end was moved": key + little([NOW + 86_401], 8) + good[40:],
        "its signature was changed": good[:-1] + bytes([good[-1] ^ 1]),
        "a byte is missing": good[:-1],
        "a byte too many": good + b"\0",
        "nothing": b"",
    }
    return {
        "membership_keys": MEMBERSHIP_KEYS,
        "now_unix_seconds": NOW,
        "member_key": key,
        "good": [{"name": name, "membership": content} for name, content in accepted.items()],
        "refused": [{"name": name, "membership": content} for name, content in refused.items()],
    }


# ---- rosters ----


def roster_case(n, kind):
    """A roster whose keys are any bytes; neighbours of the first, a middle and the last device."""
    entries = sorted(noise(f"entry {n} {i}", 112) for i in range(n))
    round_id, manifest, numbers = noise(f"round {n}", 16), noise(f"manifest {n}", 32), usual_numbers(n)
    digest = roster_digest(round_id, manifest, kind, numbers, entries)
    cycles, near = graph(digest, n, numbers[0])
    return {
        "round_id": round_id,
        "manifest_sha256": manifest,
        "kind": kind,
        **dict(zip(("degree", "holders", "threshold"), numbers, strict=True)),
        "entries": b"".join(entries),
        "digest": digest,
        "first_and_last_cycle": [cycles[0], cycles[-1]] if cycles else [],
        "neighbours": {str(i): near[i] for i in (0, n // 2, n - 1)},
    }


def agreement_file():
    digest, key = noise("agreed digest", 32), Ed25519PrivateKey.from_private_bytes(noise("member", 32))
    round_id, peer_id, mask_key, share_key = (noise(f"agreed {i}", size) for i, size in enumerate((16, 16, 32, 32)))
    included, survivors = bitmap(range(11), 12), bitmap(range(10), 12)
    messages = {
        "entry": entry_message(round_id, peer_id, mask_key, share_key),
        "roster": roster_message(digest),
        "included": included_message(digest, included),
        "survivors": survivors_message(digest, included, survivors),
    }
    sizes = [2, 3, 5, 7, 10, 11, 97, 128, 129, 130, 256, 512, 8191, 8192]
    fields = {"round_id": round_id, "peer_id": peer_id, "mask_public_key": mask_key, "share_public_key": share_key}
    return {
        "quorums": [[n, quorum(n)] for n in sizes],
        "usual_numbers": [[n, *usual_numbers(n)] for n in sizes],
        "also_good_numbers": [[130, 64, 129, 63], [300, 148, 256, 256], [8192, 256, 256, 125], [514, 66, 81, 40]],
        "refused_numbers": refused_numbers(),
        "least_neighbours": [[d, -(-5 * d // 8)] for d in (1, 7, 8, 9, 57, 60, 63, 64, 256)],
        "private_key": noise("member", 32),
        "public_key": public(key),
        **fields,
        "digest": digest,
        "included": included,
        "survivors": survivors,
        "messages": {name: {"message": text, "signature": key.sign(text)} for name, text in messages.items()},
    }


def refused_numbers():
    """n, k, h and t."""
    return [
        [5, 3, 4, 3], [5, 4, 3, 3], [5, 4, 4, 2], [5, 4, 4, 4], [129, 64, 80, 39], [130, 129, 129, 66],
        [300, 62, 80, 39], [300, 65, 80, 39], [300, 150, 80, 39], [300, 64, 79, 39], [300, 64, 257, 126],
        [300, 64, 80, 38], [300, 64, 80, 81], [300, 64, 160, 77], [8192, 258, 80, 39],
    ]  # fmt: skip


# ---- who goes on after the shares were acknowledged ----


def settled(n, holders, unopened):
    """The rules of "The server settles who goes on", in their order. Returns the included and the faulty."""
    _, h, t = usual_numbers(n)
    senders = {holder: [owner for owner, some in holders.items() if holder in some] for holder in unopened}
    liars = [i for i, bad in unopened.items() if len(bad) >= 2 and len(bad) > len(senders[i]) / 2]
    believed = {i: bad for i, bad in unopened.items() if i not in liars}
    included, faulty = [], list(liars)
    for owner in sorted(set(believed) & set(holders)):
        said_so = [i for i in holders[owner] if owner in believed.get(i, [])]
        opened = 1 + len([i for i in holders[owner] if i in believed and i not in said_so])
        if len(said_so) > (h + 1 - t) // 2:
            faulty.append(owner)
        elif opened >= t:
            included.append(owner)
    return included, sorted(faulty)


# 130 devices that chose their holders.
CHOSEN = {i: chosen(f"settling {i}", [j for j in range(130) if j != i], 80) for i in range(130)}


def settling_case(name, n, complaints=(), *, never_shared=(), never_acknowledged=()):
    """`complaints` are pairs: who complains, about whom."""
    shared = [i for i in range(n) if i not in never_shared]
    holders = {i: CHOSEN[i] if n == 130 else [j for j in range(n) if j != i] for i in shared}
    present = [i for i in shared if i not in never_acknowledged]
    unopened = {i: sorted(about for who, about in complaints if who == i) for i in present}
    included, faulty = settled(n, holders, unopened)
    numbers = dict(zip(("degree", "holders", "threshold"), usual_numbers(n), strict=True))
    complaining = {str(holder): bad for holder, bad in unopened.items() if bad}
    case = {"name": name, "devices": n, **numbers, "shared": shared, "acknowledged": present, "unopened": complaining}
    return {**case, "included": included, "faulty": faulty}


def settling_file():
    """12 devices: h = 11 and t = 7, so that two complaints are borne. 130 devices: h = 80, t = 39, 21 are borne."""
    senders = [owner for owner in range(130) if 9 in CHOSEN[owner]]
    half, of_all = len(senders) // 2, [i for i in range(12) if i != 3]
    cases = [
        settling_case("nobody complains", 12),
        settling_case("two complain about one", 12, [(1, 4), (2, 4)]),
        settling_case("three complain about one", 12, [(1, 4), (2, 4), (3, 4)]),
        settling_case("one complains about five of eleven", 12, [(3, i) for i in of_all[:5]]),
        settling_case("one complains about six of eleven", 12, [(3, i) for i in of_all[:6]]),
        settling_case("the third who complains is not believed", 12, [(1, 4), (2, 4), *((3, i) for i in of_all)]),
        settling_case("one never acknowledged", 12, never_acknowledged=[6]),
        settling_case("one never shared", 12, never_shared=[6]),
        settling_case("five are gone, and all shares opened", 12, never_acknowledged=range(7, 12)),
        settling_case("five are gone, and a share did not open", 12, [(0, 1)], never_acknowledged=range(7, 12)),
        settling_case("of two devices one complains", 2, [(0, 1)]),
        settling_case("of three devices one complains about both", 3, [(0, 1), (0, 2)]),
        settling_case("21 of 80 complain", 130, [(i, 5) for i in CHOSEN[5][:21]]),
        settling_case("22 of 80 complain", 130, [(i, 5) for i in CHOSEN[5][:22]]),
        settling_case("one complains about half of its senders", 130, [(9, i) for i in senders[:half]]),
        settling_case("one complains about more than half", 130, [(9, i) for i in senders[: half + 1]]),
    ]
    return {"holders_of_130": [CHOSEN[i] for i in range(130)], "cases": cases}


def vectors():
    return {
        "membership.json": membership_file(),
        "secagg_agreement.json": agreement_file(),
        "secagg_roster.json": [roster_case(3, 1), roster_case(300, 2)],
        "secagg_settling.json": settling_file(),
    }
