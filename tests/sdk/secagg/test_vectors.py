"""The known answers of vectors/v1, byte for byte; they come of an oracle that shares no code with lightfr."""

import pytest

from lightfr._wire.secure import encode_sealed_records
from lightfr.errors import InvalidInputError, LightFRError, PrivacyError
from lightfr.membership import MemberKey, require_membership
from lightfr.secagg import Block, Roster, agreement, shamir, views
from lightfr.secagg.roster import least_neighbours, usual_numbers
from lightfr_harness.server.rules.secagg import settle_included
from lightfr_harness.server.rules.shares import secret_of
from tests.vectors.plain import noise
from tests.vectors.reading import Replay, by_name, vector
from tests.vectors.replaying import ROUND, STEPS, filled, inbox_of, of, roster_of, session_of, walk


def load(name):
    return vector(f"secagg_{name}")


def unhex(known, *names):
    return [bytes.fromhex(known[name]) for name in names]


def test_keys():
    known = load("keys")
    secret, salt, info, key = unhex(known["hkdf"], "secret", "salt", "info", "key")
    assert agreement.hkdf(secret, salt, info) == key
    private, public, peer, shared = unhex(known, "private_key", "public_key", "peer_key", "shared")
    assert agreement.public_key(private) == public
    assert agreement.Agreement(private).with_peer(peer) == shared
    round_id, digest, seed = unhex(known, "round_id", "roster_digest", "self_mask_seed")
    one, other = map(bytes.fromhex, known["peer_ids"])
    pair_key, self_key, there, back = unhex(
        known, "pair_mask_key", "self_mask_key", "share_key_one_to_other", "share_key_other_to_one"
    )
    assert agreement.pair_mask_key(shared, round_id, one, other) == pair_key
    assert agreement.pair_mask_key(shared, round_id, other, one) == pair_key
    assert agreement.self_mask_key(seed, round_id, one) == self_key
    assert agreement.share_key(shared, round_id, digest, one, other) == there
    assert agreement.share_key(shared, round_id, digest, other, one) == back


def test_sealing():
    key, nonce, plain, sealed = unhex(load("sealing"), "key", "nonce", "plain", "sealed")
    assert agreement.seal(key, nonce, plain) == sealed
    assert agreement.unseal(key, sealed, len(plain)) == plain


@pytest.mark.parametrize("known", load("shamir"))
def test_shamir(known):
    source, shares = Replay(known["random"]), [bytes.fromhex(share) for share in known["shares"]]
    (secret,) = unhex(known, "secret")
    assert shamir.split(secret, known["holders"], known["threshold"], source) == shares
    assert not source.left
    last = list(zip(known["holders"], shares, strict=True))[-known["threshold"] :]
    assert shamir.join(dict(last)) == secret


@pytest.mark.parametrize(**by_name([case for case in load("correction") if len(case["shares"]) >= case["threshold"]]))
def test_false_shares_are_corrected_or_end_the_round(known):
    shares = {x: bytes.fromhex(share) for x, share in zip(known["holders"], known["shares"], strict=True)}
    if known["secret"]:
        assert secret_of(shares, known["threshold"]) == (of(known, "secret"), frozenset(known["false"]))
    else:
        with pytest.raises(InvalidInputError):
            secret_of(shares, known["threshold"])


def test_masks_and_packing():
    known = load("mask")
    (key,) = unhex(known, "key")
    blocks = [Block(*block) for block in known["blocks"]]
    for packed, masks in (("packed_plain", []), ("packed_plus", [False]), ("packed_minus", [True])):
        vector = filled(known["vector"], blocks)
        for subtract in masks:
            vector.mask(key, subtract=subtract)
        assert vector.pack().hex() == known[packed]


def test_memberships():
    known = vector("membership")
    keys, now = [bytes.fromhex(key) for key in known["membership_keys"]], known["now_unix_seconds"]
    for case in known["good"]:
        assert require_membership(of(case, "membership"), keys, now).hex() == known["member_key"], case["name"]
    for case in known["refused"]:
        with pytest.raises(PrivacyError):
            require_membership(of(case, "membership"), keys, now)


def test_what_is_signed():
    known = load("agreement")
    key, digest, included, survivors = unhex(known, "private_key", "digest", "included", "survivors")
    entry = unhex(known, "round_id", "peer_id", "mask_public_key", "share_public_key")
    messages = {
        "entry": views.entry_message(*entry),
        "roster": views.roster_message(digest),
        "included": views.included_message(digest, included),
        "survivors": views.survivors_message(digest, included, survivors),
    }
    member = MemberKey.from_private(key)
    assert member.public.hex() == known["public_key"]
    signed = {name: {"message": m.hex(), "signature": member.sign(m).hex()} for name, m in messages.items()}
    assert signed == known["messages"]


def roster_with(n, degree, holders, threshold):
    entries = b"".join(sorted(noise(f"{n} {i}", 112) for i in range(n)))
    return Roster(bytes(16), bytes(32), 1, degree, holders, threshold, entries)


def test_numbers_of_a_cohort():
    known = load("agreement")
    assert [[n, views.quorum(n)] for n, _ in known["quorums"]] == known["quorums"]
    assert [[n, *usual_numbers(n)] for n, *_ in known["usual_numbers"]] == known["usual_numbers"]
    assert [[d, least_neighbours(d)] for d, _ in known["least_neighbours"]] == known["least_neighbours"]
    for numbers in known["also_good_numbers"] + known["usual_numbers"]:
        roster_with(*numbers)
    for numbers in known["refused_numbers"]:
        with pytest.raises(PrivacyError):
            roster_with(*numbers)


@pytest.mark.parametrize("known", load("roster"), ids=lambda known: f"{len(known['entries']) // 224}")
def test_roster(known):
    roster = roster_of(known)
    assert roster.digest.hex() == known["digest"]
    if known["first_and_last_cycle"]:
        assert [roster._cycles[0], roster._cycles[-1]] == known["first_and_last_cycle"]
    for index, neighbours in known["neighbours"].items():
        assert roster.neighbours(int(index)) == neighbours


@pytest.mark.parametrize(**by_name(load("settling")["cases"]))
def test_who_goes_on_after_the_shares_were_acknowledged(known):
    n, everybody = known["devices"], range(known["devices"])
    chosen = load("settling")["holders_of_130"]
    holders = {i: chosen[i] if n == 130 else [j for j in everybody if j != i] for i in known["shared"]}
    unopened = {i: frozenset(known["unopened"].get(str(i), [])) for i in known["acknowledged"]}
    roster = roster_with(n, known["degree"], known["holders"], known["threshold"])
    settled = settle_included(roster, holders, unopened)
    assert (sorted(settled.devices), sorted(settled.faulty)) == (known["included"], known["faulty"])


class Sparse:
    """Device 0 of 130, after it has shared and opened nothing."""

    def __init__(self):
        self.known = load("sparse")
        self.session = session_of(self.known, self.known["device"])
        self.session.advertise()
        self.sealed = walk(self.session, "share", self.known, None)

    def sign(self, which):
        self.session.acknowledge([])
        return walk(self.session, "sign_included", self.known[which], None)


def test_a_device_chooses_holders_and_witnesses_in_a_sparse_cohort():
    sparse = Sparse()
    device = sparse.known["device"]
    assert roster_of(sparse.known).digest.hex() == sparse.known["roster_digest"]
    assert roster_of(sparse.known).neighbours(0) == device["neighbours"]
    assert [index for index, _ in sparse.sealed] == device["holders"]
    assert encode_sealed_records(sparse.sealed).hex() == device["sealed_shares"]
    assert not sparse.session._random.left
    stored = sparse.session.state.witnesses
    witnesses = [int.from_bytes(stored[at : at + 4], "little") for at in range(0, len(stored), 36)]
    assert witnesses == device["witnesses"]


def test_five_eighths_of_the_neighbours_must_be_left():
    assert len(Sparse().sign("enough_neighbours")) == 64
    with pytest.raises(LightFRError, match="among the neighbours"):
        Sparse().sign("too_few_neighbours")


@pytest.mark.parametrize("who", ["a_witness_who_signs", "a_signer_who_is_no_witness"])
def test_only_witnesses_are_asked_whether_they_really_signed(who):
    sparse = Sparse()
    sparse.sign("everybody")
    signatures = bytearray(of(sparse.known, "signatures"))
    signatures[64 * sparse.known[who]] ^= 1
    told = {"included_signers": sparse.known["signers"], "included_signatures": signatures.hex()}
    if who == "a_signer_who_is_no_witness":
        assert walk(sparse.session, "upload", told, ROUND["devices"][0])
    else:
        with pytest.raises(PrivacyError):
            walk(sparse.session, "upload", told, ROUND["devices"][0])


@pytest.mark.parametrize("index", range(len(ROUND["devices"])))
def test_each_device_of_a_whole_round_sends_each_of_its_bytes(index):
    device = ROUND["devices"][index]
    session, told = session_of(ROUND, device), {**ROUND, "inbox": inbox_of(index).hex()}
    sent = {}
    for step in STEPS:
        if (expected := expected_of(step, index, device)) == "":
            break
        sent[step] = walk(session, step, told, device)
        assert as_known(step, sent[step]) == expected, step
        assert step != "share" or not session._random.left
    assert len(sent) >= 2


def expected_of(step, index, device):
    """What the vector says that a device sends; empty: it is gone by then."""
    entry = of(ROUND, "entries")[112 * index : 112 * (index + 1)]
    return {
        "advertise": [entry.hex(), device["membership"], device["entry_signature"]],
        "share": device["sealed"],
        "acknowledge": device["unopened"],
        "sign_included": device["included_signature"],
        "upload": device["upload"],
        "sign_survivors": device["survivors_signature"],
        "reveal": device["seeds"] and [device["seeds"], device["mask_keys"]],
    }[step]


def as_known(step, sent):
    if step == "advertise":
        return [sent.entry.to_bytes().hex(), sent.membership.hex(), sent.signature.hex()]
    if step == "share":
        return {str(index): sealed.hex() for index, sealed in sent}
    return [sent.seeds.hex(), sent.mask_keys.hex()] if step == "reveal" else sent.hex()
