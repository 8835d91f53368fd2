"""Manifests: what a trusted key signed is taken, as far as it is in order; everything else is refused."""

import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from lightfr._kernel import packed_bytes
from lightfr.device import key_id
from lightfr.errors import ManifestError
from lightfr.model.manifest import MANIFEST_LIMIT_BYTES, SIGNED_LIMIT_BYTES, Manifest
from lightfr.v1 import manifest_pb2

# The secret key of the first test in RFC 8032, part 7.1.
KEY = Ed25519PrivateKey.from_private_bytes(
    bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
)
PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
# A manifest of one item of 8 bits, and the same signed: by a plain transcription of RFC 8032.
MINIMAL = (
    "080110012204080810012a240a20bbeebd879e1dff6918546dc0c179fdde505f2a21591c9a9c96e36b054ec5af8310013a24"
    "0a20000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f101d"
)
SIGNED_MINIMAL = (
    "0a56080110012204080810012a240a20bbeebd879e1dff6918546dc0c179fdde505f2a21591c9a9c96e36b054ec5af831001"
    "3a240a20000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f101d124087b37ba526e1ce9272b6"
    "636dbb6d6ff79a69aba0a43617b0fe325d17b6c60f44e3cad97dd962f84a7b0a32b0722b1c607c8f1237508fa3ac2e878922"
    "51a7e10d1a0821fe31dfa154a261"
)
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))


class Keys:
    """Stands for a Trust with this key alone."""

    manifest_keys = {key_id(PUBLIC): PUBLIC}  # noqa: RUF012


def artifact(name, size_bytes):
    return manifest_pb2.Artifact(sha256=hashlib.sha256(name.encode()).digest(), size_bytes=size_bytes)


def good():
    """A manifest of every field, all in order."""
    message = manifest_pb2.Manifest(
        wire_version=1,
        model_version=7,
        created_unix_seconds=1_700_000_000,
        codes=artifact("codes", 201 * 8),
        catalogue_parts=[artifact("catalogue", 5000), artifact("new items", 100)],
        open_rows=artifact("open rows", 30),
        removed_items=artifact("removed items", 20),
        artifacts_address="https://cache.example:443",
    )
    message.model.code_bits, message.model.item_count = 64, 1001
    message.codes_deltas.add(from_sha256=hashlib.sha256(b"older").digest(), artifact=artifact("delta", 300))
    return message


def signed(message, key=KEY, named=PUBLIC):
    content = message if isinstance(message, bytes) else message.SerializeToString()
    signature = key.sign(b"lightfr manifest v1\n" + content)
    return manifest_pb2.SignedManifest(manifest=content, signature=signature, key_id=key_id(named)).SerializeToString()


def test_a_known_answer():
    """Not made with our code: the prefix, the key id and the field numbers are the contract."""
    raw = KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    assert (raw, key_id(PUBLIC).hex()) == (PUBLIC, "21fe31dfa154a261")
    minimal = bytes.fromhex(MINIMAL)
    manifest = Manifest(bytes.fromhex(SIGNED_MINIMAL), Keys)
    assert manifest.sha256 == hashlib.sha256(minimal).digest()
    assert (manifest.model_version, manifest.message.model.item_count) == (1, 1)


def test_what_a_good_manifest_says():
    manifest = Manifest(signed(good()), Keys)
    assert (manifest.model_version, manifest.signed) == (7, signed(good()))
    assert manifest.sha256 == hashlib.sha256(good().SerializeToString()).digest()
    assert manifest.message == good()
    assert repr(manifest) == "<Manifest of version 7>"


def test_a_delta_counts_from_its_own_codes_and_when_it_is_smaller():
    manifest = Manifest(signed(good()), Keys)
    assert manifest.delta_from(hashlib.sha256(b"older").digest()) == artifact("delta", 300)
    assert manifest.delta_from(bytes(32)) is None
    message = good()
    message.codes_deltas[0].artifact.size_bytes = message.codes.size_bytes
    assert Manifest(signed(message), Keys).delta_from(hashlib.sha256(b"older").digest()) is None


def test_a_key_that_is_not_trusted_is_refused():
    other = OTHER_KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    with pytest.raises(ManifestError, match="not trusted"):
        Manifest(signed(good(), OTHER_KEY, other), Keys)
    with pytest.raises(ManifestError, match="signature"):
        Manifest(signed(good(), OTHER_KEY), Keys)


@pytest.mark.parametrize("signature", [b"", bytes(63), bytes(64), bytes(65)])
def test_a_signature_of_another_length_or_content_is_refused(signature):
    envelope = manifest_pb2.SignedManifest.FromString(signed(good()))
    envelope.signature = signature
    with pytest.raises(ManifestError, match="signature"):
        Manifest(envelope.SerializeToString(), Keys)


def test_a_signature_for_another_purpose_is_refused():
    envelope = manifest_pb2.SignedManifest.FromString(signed(good()))
    envelope.signature = KEY.sign(envelope.manifest)
    with pytest.raises(ManifestError, match="signature"):
        Manifest(envelope.SerializeToString(), Keys)


def test_a_manifest_cut_off_anywhere_is_refused():
    whole = signed(good())
    for length in range(len(whole)):
        with pytest.raises(ManifestError):
            Manifest(whole[:length], Keys)


def test_a_flipped_bit_anywhere_is_refused():
    whole = signed(good())
    for place in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        with pytest.raises(ManifestError):
            Manifest(bytes(flipped), Keys)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_manifest_are_refused(content):
    for attempt in (content, signed(content + b"\x08")):  # a tag without its value never parses
        with pytest.raises(ManifestError):
            Manifest(attempt, Keys)


def change(path, value):
    """A good manifest with one field changed, signed all the same."""
    message = target = good()
    *parents, last = path.split(".")
    for name in parents:
        target = getattr(target, name)[0] if name in ("codes_deltas", "catalogue_parts") else getattr(target, name)
    setattr(target, last, value)
    return signed(message)


OUT_OF_RANGE = [
    ("wire_version", 0),
    ("wire_version", 2),
    ("model_version", 0),
    ("model.code_bits", 0),
    ("model.code_bits", 63),
    ("model.code_bits", 1032),
    ("model.code_bits", 128),
    ("model.item_count", 0),
    ("model.item_count", 199),
    ("codes.size_bytes", 0),
    ("codes.size_bytes", 1607),
    ("codes.size_bytes", 1609),
    ("codes.size_bytes", 1003 * 8),
    ("catalogue_parts.size_bytes", 4 * (2**17 + 2**12) + 1),
    ("open_rows.size_bytes", 2**40 + 1),
    ("codes_deltas.artifact.size_bytes", 2**40 + 1),
    *(
        (f"{name}sha256", bytes(length))
        for name in (
            "codes.",
            "catalogue_parts.",
            "open_rows.",
            "removed_items.",
            "codes_deltas.artifact.",
            "codes_deltas.from_",
        )
        for length in (0, 31, 33)
    ),
]


@pytest.mark.parametrize(("path", "value"), OUT_OF_RANGE)
def test_a_signed_field_outside_its_range_is_refused(path, value):
    with pytest.raises(ManifestError, match="a manifest was refused"):
        Manifest(change(path, value), Keys)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model_version", 2**64 - 1),
        ("catalogue_parts.size_bytes", 4 * (2**17 + 2**12)),
        ("open_rows.size_bytes", 2**40),
        ("codes.size_bytes", 8),
        ("codes.size_bytes", 1002 * 8),
        ("created_unix_seconds", 0),
    ],
)
def test_a_signed_field_at_the_end_of_its_range_is_taken(path, value):
    Manifest(change(path, value), Keys)


LONGEST_HOST = ".".join(["a" * 63] * 3 + ["b" * 61])


@pytest.mark.parametrize(
    "address",
    [
        "",
        "https://cache.example:443",
        "https://localhost:1",
        "https://192.0.2.7:65535",
        "https://xn--bcher-kva.example:8443",
        f"https://{LONGEST_HOST}:443",
    ],
)
def test_an_address_of_artifacts_is_absent_or_a_host_and_a_port(address):
    assert Manifest(change("artifacts_address", address), Keys).message.artifacts_address == address


@pytest.mark.parametrize(
    "address",
    [
        "cache.example:443",
        "http://cache.example:443",
        "HTTPS://cache.example:443",
        "https://cache.example",
        "https://cache.example:",
        "https://cache.example:0",
        "https://cache.example:0443",
        "https://cache.example:65536",
        "https://cache.example:\u0664\u0664\u0663",
        "https://cache.example:443/",
        "https://cache.example:443/x",
        "https://cache.example:443?x",
        "https://cache.example:443#x",
        "https://user@cache.example:443",
        "https://:secret@cache.example:443",
        "https://:443",
        "https://..:443",
        "https://.cache.example:443",
        "https://cache.example.:443",
        "https://-cache.example:443",
        "https://cache_1.example:443",
        "https://Cache.example:443",
        "https://b\u00fccher.example:443",
        "https://[::1]:443",
        "https://cache.example:443\n",
        "https://cache.example\t:443",
        " https://cache.example:443",
        f"https://{'a' * 64}.example:443",
        f"https://{LONGEST_HOST}b:443",
    ],
)
def test_an_address_of_artifacts_of_any_other_form_is_refused(address):
    with pytest.raises(ManifestError, match="artifacts_address is not https://host:port"):
        Manifest(change("artifacts_address", address), Keys)


@pytest.mark.parametrize("name", ["codes", "catalogue_parts", "model"])
def test_a_manifest_without_a_part_is_refused(name):
    message = good()
    message.ClearField(name)
    with pytest.raises(ManifestError):
        Manifest(signed(message), Keys)


def test_bitmaps_may_be_absent_and_then_every_item_has_its_row():
    message = good()
    message.ClearField("removed_items")
    message.ClearField("open_rows")
    with pytest.raises(ManifestError, match="the codes have another size"):
        Manifest(signed(message), Keys)
    message.codes.size_bytes = 1001 * 8
    manifest = Manifest(signed(message), Keys)
    assert manifest.files == [message.codes, *message.catalogue_parts]


def test_items_that_left_are_not_open_so_they_need_the_bitmap_of_open_ones():
    message = good()
    message.ClearField("open_rows")
    message.codes.size_bytes = 1001 * 8
    with pytest.raises(ManifestError, match="items have left, and nothing says which are open"):
        Manifest(signed(message), Keys)


def test_the_files_of_a_version_are_all_that_a_device_keeps():
    message = good()
    named = [message.codes, *message.catalogue_parts, message.open_rows, message.removed_items]
    assert Manifest(signed(message), Keys).files == named


def test_sixteen_parts_are_taken_and_seventeen_refused():
    message = good()
    message.catalogue_parts.extend([message.catalogue_parts[0]] * 14)
    Manifest(signed(message), Keys)
    message.catalogue_parts.append(message.catalogue_parts[0])
    with pytest.raises(ManifestError, match="1 to 16 parts"):
        Manifest(signed(message), Keys)


def test_sixteen_deltas_are_taken_and_seventeen_refused():
    message = good()
    message.codes_deltas.extend([message.codes_deltas[0]] * 15)
    Manifest(signed(message), Keys)
    message.codes_deltas.append(message.codes_deltas[0])
    with pytest.raises(ManifestError, match="16 deltas"):
        Manifest(signed(message), Keys)


def test_a_manifest_up_to_the_limit_is_taken_and_a_longer_one_refused():
    """Unknown fields are those of a later release: they fill it up here."""
    content = good().SerializeToString()
    filler = b"\xfa\x7f" + bytes([*_varint(MANIFEST_LIMIT_BYTES - len(content) - 5)])
    full = content + filler + bytes(MANIFEST_LIMIT_BYTES - len(content) - len(filler))
    assert len(full) == MANIFEST_LIMIT_BYTES
    assert len(signed(full)) <= SIGNED_LIMIT_BYTES
    Manifest(signed(full), Keys)
    with pytest.raises(ManifestError, match="too long"):
        Manifest(signed(full + b"\x08\x01"), Keys)


def _varint(number):
    while number > 127:
        yield number % 128 + 128
        number //= 128
    yield number


@pytest.mark.parametrize("n_items", [1, 256, 257, 8193, 2**20, 2**32 - 1])
def test_every_part_whose_blocks_are_not_too_long_may_be_announced(n_items):
    """The layout of docs/artifacts.md, with blocks of the greatest length."""
    blocks, groups = -(-n_items // 256), -(-n_items // 8192)
    packed = sum(packed_bytes(n_items, (most - 1).bit_length()) for most in (n_items, groups))
    largest = 16 + 4 * (blocks + 1) + 8 * blocks + blocks * 2**17 + packed
    message = good()
    message.model.item_count = n_items
    message.codes.size_bytes = 8
    message.catalogue_parts[0].size_bytes = min(largest, 2**40)
    Manifest(signed(message), Keys)
