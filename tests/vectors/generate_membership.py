"""Writes v1/membership.json: memberships that a device believes, and others. From docs/protocol.md, Enrolment."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.vectors.plain import noise

ENDS = 1_800_000_000


def key(label):
    return Ed25519PrivateKey.from_private_bytes(noise(f"membership {label}", 32))


def public(private):
    return private.public_key().public_bytes_raw()


def made(member, ends=ENDS, signer=None, context=b"lightfr member v1\n"):
    statement = public(member) + ends.to_bytes(8, "little")
    return statement + (signer or key("authority")).sign(context + statement)


def changed(content, at):
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def vectors():
    member, other = key("member"), key("another")
    good = made(member)
    later = (ENDS + 365 * 86_400).to_bytes(8, "little")
    refused = {
        "the signature was changed": (good[:-1] + bytes([good[-1] ^ 0x20]), ENDS - 1),
        "the first byte of the signature was changed": (changed(good, 40), ENDS - 1),
        "another key in the place of the member's": (public(other) + good[32:], ENDS - 1),
        "the end was put off": (good[:32] + later + good[40:], ENDS - 1),
        "another key than the authority's signed it": (made(member, signer=key("stranger")), ENDS - 1),
        "the member signed it": (made(member, signer=member), ENDS - 1),
        "signed for another purpose": (made(member, context=b"lightfr manifest v1\n"), ENDS - 1),
        "it ends in this second": (good, ENDS),
        "it has ended": (good, ENDS + 1),
        "103 bytes": (good[:-1], ENDS - 1),
        "105 bytes": (good + b"\0", ENDS - 1),
        "no bytes": (b"", ENDS - 1),
    }
    return {
        "membership.json": {
            "authority_private_key": noise("membership authority", 32),
            "membership_keys": [public(other), public(key("authority"))],
            "member_private_key": noise("membership member", 32),
            "member_key": public(member),
            "ends": ENDS,
            "membership": good,
            "good_at": [0, ENDS - 1],
            "refused": [{"name": name, "membership": m, "now": now} for name, (m, now) in refused.items()],
        }
    }
