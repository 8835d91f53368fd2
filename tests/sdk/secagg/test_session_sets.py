"""A device acts on a set of devices only if the server and enough others have signed the same."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.errors import (
    CohortTooSmallError,
    PrivacyError,
)
from lightfr.secagg import shamir
from lightfr.secagg.views import (
    bitmap_of,
    included_message,
    roster_message,
    survivors_message,
)
from tests.sdk.secagg.cohorts import Cohort, at
from tests.sdk.secagg.conftest import SPARSE_SIZE

N = 5
RECORD_BYTES = 4 + 33


def owners(records):
    return [int.from_bytes(records[at : at + 4], "little") for at in range(0, len(records), RECORD_BYTES)]


def share_of(records, owner):
    place = owners(records).index(owner) * RECORD_BYTES
    return records[place + 4 : place + RECORD_BYTES]


# ---- lies about who is included ----


def test_an_included_set_that_the_server_did_not_sign_is_refused():
    cohort = at("sign_included")
    digest, message = cohort.roster.digest, included_message(cohort.roster.digest, cohort.included)
    for signature in (
        bytes(64),
        Ed25519PrivateKey.generate().sign(message),
        cohort.server.sign(included_message(digest, b"\x0f")),
        cohort.server.sign(included_message(bytes(32), cohort.included)),
        cohort.roster_signature,
    ):
        with pytest.raises(PrivacyError, match="the server, of the included set, does not fit"):
            cohort.sessions[0].sign_included(cohort.included, signature)


def test_a_device_signs_what_the_server_signed_with_its_member_key():
    cohort = at("sign_included")
    signature = cohort.sign_included_by(0)
    message = included_message(cohort.roster.digest, cohort.included)
    assert signature == cohort.members[0].key.sign(message)


def test_a_second_included_set_is_refused():
    cohort = at("sign_included")
    cohort.sign_included_by(0)
    with pytest.raises(PrivacyError, match="'sign_included' was asked for where 'mask' is next"):
        cohort.sign_included_by(0, b"\x0f")


def test_an_included_set_without_the_device_or_of_another_size_is_refused():
    cohort = at("sign_included")
    for included, reason in ((b"\x1e", "lacks this device"), *((bad, "5 bits") for bad in (b"", b"\x3f", b"\x1f\x00"))):
        with pytest.raises(PrivacyError, match=reason):
            cohort.sign_included_by(0, included)


def test_too_few_included_devices_are_refused():
    cohort = at("sign_included", minimum_cohort=4)
    with pytest.raises(CohortTooSmallError, match="the included set has 3 devices"):
        cohort.sign_included_by(0, b"\x07")
    with pytest.raises(CohortTooSmallError, match="and its holders, has 2 devices, this one asks for at least 3"):
        at("sign_included").sign_included_by(0, b"\x03")


def without(gone):
    return bitmap_of(set(range(SPARSE_SIZE)).difference(gone), SPARSE_SIZE)


def test_a_set_without_enough_holders_is_refused(sparse):
    holders, _, neighbours = sparse.ready_to_sign()
    # Holders that are not neighbours go first, so that nothing but holders is missing.
    gone = sorted(holders, key=lambda i: (i in neighbours, i))[:43]
    with pytest.raises(CohortTooSmallError, match="its holders, has 38 devices, this one asks for at least 39"):
        sparse.cohort.sign_included_by(0, without(gone))
    sparse.cohort.sign_included_by(0, without(gone[:-1]))


def test_a_set_without_enough_neighbours_is_refused(sparse):
    holders, _, neighbours = sparse.ready_to_sign()
    needed = -(-5 * len(neighbours) // 8)
    gone = sorted(neighbours, key=lambda i: (i in holders, i))[: len(neighbours) - needed + 1]
    with pytest.raises(CohortTooSmallError, match=f"neighbours of this device, has {needed - 1} devices"):
        sparse.cohort.sign_included_by(0, without(gone))
    sparse.cohort.sign_included_by(0, without(gone[:-1]))


def test_in_a_complete_graph_half_of_the_neighbours_will_do():
    """Of three devices two are a quorum, and then five eighths of the neighbours are not left."""
    at("sign_included", 3).sign_included_by(0, b"\x03")


# ---- agreement ----


@pytest.mark.parametrize("step", ["upload", "reveal"])
def test_fewer_signers_than_the_quorum_are_refused(step):
    cohort = at(step, 10)
    signed, act = agreement_of(cohort, step)
    with pytest.raises(CohortTooSmallError, match="has 6 devices, this one asks for at least 7"):
        act(*signed(6))
    act(*signed(7))


def agreement_of(cohort, step):
    """How the server shows that others signed, and what device 0 does with that."""
    session = cohort.sessions[0]
    if step == "upload":
        return cohort.included_signed, lambda *signed: session.mask(cohort.vector(0), *signed)
    return cohort.survivors_signed, session.reveal


@pytest.mark.parametrize("step", ["upload", "reveal"])
def test_a_signature_that_a_witness_did_not_make_is_refused(step):
    cohort = at(step, 10)
    signed, act = agreement_of(cohort, step)
    signers, signatures = signed(10)
    for i in range(1, 10):
        forged = bytearray(signatures)
        forged[64 * i] ^= 1
        with pytest.raises(PrivacyError, match=r"a device of the cohort, of the (included|survivor) set does not fit"):
            act(signers, bytes(forged))
    act(signers, signatures)


@pytest.mark.parametrize("step", ["upload", "reveal"])
def test_signatures_of_another_set_are_refused(step):
    cohort = at(step, 10)
    _, act = agreement_of(cohort, step)
    digest, others = cohort.roster.digest, bitmap_of(range(9), 10)
    messages = [
        included_message(digest, others),
        survivors_message(digest, cohort.included, others),
        included_message(digest, cohort.included) if step == "reveal" else roster_message(digest),
    ]
    for message in messages:
        with pytest.raises(PrivacyError, match="does not fit"):
            act(*cohort.signatures(message, range(10)))


def test_signers_who_are_not_included_are_refused():
    cohort = at("sign_included", 10)
    cohort.included = bitmap_of(range(8), 10)
    cohort.sign_included()
    message = included_message(cohort.roster.digest, cohort.included)
    with pytest.raises(PrivacyError, match="signed the included set without being in it"):
        cohort.sessions[0].mask(cohort.vector(0), *cohort.signatures(message, range(9)))
    cohort.sessions[0].mask(cohort.vector(0), *cohort.signatures(message, range(8)))


def test_signers_who_did_not_survive_are_refused():
    cohort = at("upload", 10).upload(absent=[9]).sign_survivors()
    message = survivors_message(cohort.roster.digest, cohort.included, cohort.survivors)
    with pytest.raises(PrivacyError, match="signed the survivor set without being in it"):
        cohort.sessions[0].reveal(*cohort.signatures(message, range(10)))
    cohort.sessions[0].reveal(*cohort.signatures(message, range(9)))


@pytest.mark.parametrize("step", ["upload", "reveal"])
def test_signatures_that_do_not_match_the_signers_in_number_are_refused(step):
    cohort = at(step, 10)
    signed, act = agreement_of(cohort, step)
    signers, signatures = signed()
    for bad in (signatures[:-1], signatures[:-64], signatures + bytes(64), b""):
        with pytest.raises(PrivacyError, match=f"^{len(bad)} bytes are not 7 signatures"):
            act(signers, bad)
    with pytest.raises(PrivacyError, match="not of 10 bits"):
        act(b"\xff\xff", signatures)


def test_a_device_checks_the_signatures_of_its_witnesses_alone(sparse):
    cohort, (_, witnesses, _) = sparse.cohort, sparse.ready_to_sign()
    cohort.sign_included_by(0)
    signers, signatures = cohort.included_signed(SPARSE_SIZE)
    witness, other = min(witnesses), min(set(range(1, SPARSE_SIZE)) - witnesses)

    def forged(i):
        return signatures[: 64 * i] + bytes(64) + signatures[64 * (i + 1) :]

    with pytest.raises(PrivacyError, match="does not fit"):
        cohort.sessions[0].mask(cohort.vector(0), signers, forged(witness))
    assert cohort.sessions[0].mask(cohort.vector(0), signers, forged(other))


# ---- lies about the survivors ----


def test_one_share_is_revealed_for_each_included_device_and_never_both():
    cohort = Cohort(8).share(absent=[7]).acknowledge().sign_included().upload(absent=[2]).sign_survivors()
    revealed = cohort.reveal_by(0)
    assert owners(revealed.seeds) == [0, 1, 3, 4, 5, 6]
    assert owners(revealed.mask_keys) == [2]


def test_nothing_is_revealed_of_a_device_that_shared_but_was_not_included():
    cohort = Cohort(8).share().acknowledge()
    cohort.included = bitmap_of(range(7), 8)
    cohort.sign_included().upload().sign_survivors()
    revealed = cohort.reveal_by(0)
    assert owners(revealed.seeds) == list(range(7))
    assert owners(revealed.mask_keys) == []


def test_shares_are_those_of_the_secrets_they_are_called_after():
    cohort = Cohort(4)
    seeds = [s.state.seed for s in cohort.sessions]
    keys = [s.state.mask_private for s in cohort.sessions]
    cohort.share().acknowledge().sign_included().upload(absent=[3]).sign_survivors()
    revealed = [cohort.reveal_by(i) for i in range(3)]
    assert shamir.join({i + 1: share_of(r.seeds, 0) for i, r in enumerate(revealed)}) == seeds[0]
    assert shamir.join({i + 1: share_of(r.mask_keys, 3) for i, r in enumerate(revealed)}) == keys[3]


def test_survivors_that_the_server_did_not_sign_are_refused():
    cohort = at("sign_survivors")
    session, digest = cohort.sessions[0], cohort.roster.digest
    message = survivors_message(digest, cohort.included, cohort.survivors)
    for signature in (
        bytes(64),
        Ed25519PrivateKey.generate().sign(message),
        cohort.server.sign(survivors_message(digest, cohort.included, b"\x0f")),
        cohort.server.sign(survivors_message(digest, b"\x0f", cohort.survivors)),
        cohort.server.sign(survivors_message(bytes(32), cohort.included, cohort.survivors)),
        cohort.roster_signature,
    ):
        with pytest.raises(PrivacyError, match="the server, of the survivor set, does not fit"):
            session.sign_survivors(cohort.survivors, signature)
    assert cohort.sign_survivors_by(0) == cohort.members[0].key.sign(message)


def test_survivors_who_were_not_included_or_without_the_device_are_refused():
    cohort = Cohort(N).share(absent=[4]).acknowledge().sign_included().upload()
    for survivors, reason in ((b"\x1f", "not among the included"), (b"\x0e", "lacks this device"), (b"", "5 bits")):
        with pytest.raises(PrivacyError, match=reason):
            cohort.sign_survivors_by(0, survivors)


def test_too_few_survivors_are_refused():
    cohort = at("sign_survivors", minimum_cohort=N)
    with pytest.raises(CohortTooSmallError, match="the survivor set has 4 devices"):
        cohort.sign_survivors_by(0, b"\x0f")
    with pytest.raises(CohortTooSmallError, match="its holders, has 2 devices"):
        at("sign_survivors").sign_survivors_by(0, b"\x03")


def test_a_second_answer_about_other_survivors_is_refused():
    cohort = at("sign_survivors")
    cohort.sign_survivors_by(0)
    with pytest.raises(PrivacyError, match="step 'sign_survivors' was asked for where 'reveal' is next"):
        cohort.sign_survivors_by(0, b"\x0f")
    cohort.reveal_by(0)
    with pytest.raises(PrivacyError, match="step 'reveal' was asked for where 'done' is next"):
        cohort.reveal_by(0)
