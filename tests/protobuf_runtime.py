"""Round-trips every message and checks a manifest, on whatever protobuf runtime is installed: `make test-protobuf`.

Plain asserts, so that it runs where nothing but the SDK is installed.
"""

import pkgutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import google.protobuf
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from google.protobuf.internal import api_implementation
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

import lightfr.v1
from lightfr.device import Trust, key_id
from lightfr.errors import ManifestError
from lightfr.model.manifest import Manifest
from lightfr.v1 import manifest_pb2

LARGEST = {"uint32": 2**32 - 1, "uint64": 2**64 - 1, "bool": True, "string": "\u00e9", "bytes": bytes(range(256))}
SCALARS = {8: "bool", 9: "string", 12: "bytes", 13: "uint32", 4: "uint64"}


def modules():
    """The generated ones."""
    return [import_module(f"lightfr.v1.{found.name}") for found in pkgutil.iter_modules(lightfr.v1.__path__)]


def filled(descriptor):
    """A message with every field set, the last of a oneof."""
    message = GetMessageClass(descriptor)()
    for field in descriptor.fields:
        value = getattr(message, field.name)
        if field.message_type:
            part = filled(field.message_type)
            value.extend([part, part]) if hasattr(value, "extend") else value.CopyFrom(part)
            continue
        sample = field.enum_type.values[-1].number if field.enum_type else LARGEST[SCALARS[field.type]]
        value.extend([sample, sample]) if hasattr(value, "extend") else setattr(message, field.name, sample)
    return message


def check_round_trip(descriptor):
    message = filled(descriptor)
    encoded = message.SerializeToString()
    kind = type(message)
    assert bool(encoded) == bool(descriptor.fields)
    assert kind.FromString(encoded) == message
    assert kind.FromString(encoded).SerializeToString() == encoded
    # What a later release adds is kept.
    assert kind.FromString(encoded + b"\xfa\x7f\x01!").SerializeToString() == encoded + b"\xfa\x7f\x01!"
    if not encoded:
        return
    try:
        kind.FromString(encoded[:-1])
    except DecodeError:
        return
    raise AssertionError(f"a truncated {descriptor.name} was taken")


def check_manifest():
    key = Ed25519PrivateKey.generate()
    public = key.public_key()
    message = manifest_pb2.Manifest(wire_version=1, model_version=3)
    message.model.code_bits, message.model.item_count = 64, 10
    message.codes.sha256, message.codes.size_bytes = bytes(32), 80
    message.catalogue_parts.add(sha256=bytes(32), size_bytes=100)
    content = message.SerializeToString()
    signature = key.sign(b"lightfr manifest v1\n" + content)
    name = key_id(public.public_bytes(Encoding.Raw, PublicFormat.Raw))
    signed = manifest_pb2.SignedManifest(manifest=content, signature=signature, key_id=name).SerializeToString()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trust.pem"
        pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        path.write_bytes(pem + pem.replace(b"PUBLIC KEY", b"LIGHTFR MEMBERSHIP KEY"))
        trust = Trust(path)
    assert Manifest(signed, trust).message == message
    for wrong in (signed[:-1], signed[:9] + bytes([signed[9] ^ 1]) + signed[10:]):
        try:
            Manifest(wrong, trust)
        except ManifestError:
            continue
        raise AssertionError("a damaged manifest was taken")


def main():
    descriptors = [each for module in modules() for each in module.DESCRIPTOR.message_types_by_name.values()]
    assert len(descriptors) > 15
    for descriptor in descriptors:
        check_round_trip(descriptor)
    check_manifest()
    runtime = f"protobuf {google.protobuf.__version__} ({api_implementation.Type()})"
    print(f"{runtime}: {len(descriptors)} messages and a manifest came through")


if __name__ == "__main__":
    sys.exit(main())
