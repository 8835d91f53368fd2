"""Files that devices download, good and bad, are read and written as vectors/v1 says."""

import hashlib
import io

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lightfr.device import key_id
from lightfr.errors import ArtifactError, ArtifactFileError, ManifestError
from lightfr.model.bitmaps import read_bitmap
from lightfr.model.catalogue import Catalogue
from lightfr.model.deltas import apply_delta
from lightfr.model.manifest import Manifest
from lightfr_harness.server.artifacts import make_bitmap, make_delta, write_catalogue
from lightfr_harness.server.authority import Authority
from lightfr_harness.server.authority.credentials import Credentials
from tests.vectors.reading import FOLDER, by_name, vector


def applied(folder, delta, old, max_bytes=10**6):
    """The new codes and their digest as the SDK makes them."""
    (folder / "delta").write_bytes(delta)
    (folder / "old").write_bytes(old)
    new = io.BytesIO()
    digest = apply_delta(folder / "delta", folder / "old", new, max_bytes=max_bytes)
    return new.getvalue(), digest


@pytest.mark.parametrize(**by_name(vector("deltas")["good"]))
def test_a_good_delta(known, tmp_path):
    delta, old, new = (bytes.fromhex(known[name]) for name in ("delta", "old", "new"))
    assert applied(tmp_path, delta, old) == (new, known["new_sha256"])
    rows = [np.frombuffer(codes, np.uint8).reshape(-1, known["code_bits"] // 8) for codes in (old, new)]
    places = [range(first, first + count) if first < 2**32 - 1 else [-1] * count for first, count in known["runs"]]
    moved_from = np.array([row for run in places for row in run], np.int64)
    assert applied(tmp_path, make_delta(*rows, moved_from), old) == (new, known["new_sha256"])
    assert applied(tmp_path, make_delta(*rows), old) == (new, known["new_sha256"])


def test_the_delta_in_a_file_is_the_documented_one():
    assert (FOLDER / "delta.bin").read_bytes().hex() == vector("deltas")["good"][0]["delta"]


def test_changed_rows_far_apart(tmp_path):
    known = vector("deltas")["far_apart"]
    new, digest = applied(tmp_path, bytes.fromhex(known["delta"]), bytes(known["old_zero_bytes"]))
    assert np.flatnonzero(np.frombuffer(new, np.uint8)).tolist() == known["changed_rows"]
    assert digest == known["new_sha256"]


@pytest.mark.parametrize(**by_name(vector("deltas")["bad"]["refused"]))
def test_a_bad_delta_is_refused(known, tmp_path):
    common = vector("deltas")["bad"]
    with pytest.raises((ArtifactError, ArtifactFileError)):
        applied(tmp_path, bytes.fromhex(known["delta"]), bytes.fromhex(common["old"]), common["largest_new_bytes"])


def test_a_delta_for_other_codes_gives_another_digest(tmp_path):
    common = vector("deltas")["bad"]
    good = common["good"]
    delta, most = bytes.fromhex(good["delta"]), common["largest_new_bytes"]
    assert applied(tmp_path, delta, bytes.fromhex(common["old"]), most)[1] == good["new_sha256"]
    other = bytes.fromhex(common["other_old_codes"]["old"])
    assert applied(tmp_path, delta, other, most)[1] != good["new_sha256"]


@pytest.mark.parametrize(**by_name(vector("bitmaps")["good"]))
def test_a_good_bitmap(known, tmp_path):
    common = vector("bitmaps")
    (tmp_path / "bitmap").write_bytes(bytes.fromhex(known["file"]))
    assert read_bitmap(tmp_path / "bitmap", common["item_count"]).hex() == common["bitmap"]
    bits = np.zeros(common["item_count"], bool)
    bits[common["items"]] = True
    (tmp_path / "bitmap").write_bytes(make_bitmap(bits))
    assert read_bitmap(tmp_path / "bitmap", common["item_count"]).hex() == common["bitmap"]


@pytest.mark.parametrize(**by_name(vector("bitmaps")["refused"]))
def test_a_bad_bitmap_is_refused(known, tmp_path):
    (tmp_path / "bitmap").write_bytes(bytes.fromhex(known["file"]))
    with pytest.raises(ArtifactFileError):
        read_bitmap(tmp_path / "bitmap", vector("bitmaps")["item_count"])


@pytest.mark.parametrize(**by_name(vector("catalogue")["good"]))
def test_a_good_catalogue(known):
    kind = {"int": int, "str": str}[known["kind"]]
    ids = [kind(text) for text in known["ids"]]
    with Catalogue.open([FOLDER / file for file in known["files"]], len(ids)) as catalogue:
        catalogue.check()
        assert catalogue.kind == known["kind"]
        assert [catalogue.id_of(index) for index in range(len(ids))] == ids
        assert [catalogue.index_of(item_id) for item_id in ids] == list(range(len(ids)))
        assert [catalogue.index_of(kind(text)) for text in known["missing"]] == [None] * len(known["missing"])


def ids_of_many():
    """By number, from what the vector says of their positions."""
    many = vector("catalogue")["many"]
    positions, steps = np.arange(many["item_count"] - 1), np.array(many["steps"])
    by_position = np.concatenate(([0], np.cumsum(steps[positions // 256 % len(steps)])))
    numbers = np.arange(many["item_count"])
    return by_position[(numbers + 1) * many["multiplier"] % many["modulus"] - 1].tolist()


def test_a_catalogue_with_gaps_of_every_size_and_two_groups(tmp_path):
    file, ids = FOLDER / vector("catalogue")["many"]["file"], ids_of_many()
    write_catalogue(tmp_path / "catalogue", ids)
    assert (tmp_path / "catalogue").read_bytes() == file.read_bytes()
    with Catalogue.open([file], len(ids)) as catalogue:
        catalogue.check()
        asked = range(0, len(ids), 37)
        assert [catalogue.id_of(index) for index in asked] == ids[::37]
        assert [catalogue.index_of(ids[index]) for index in asked] == list(asked)


@pytest.mark.parametrize("name", ["catalogue_int.bin", "catalogue_documented.bin"])
def test_a_catalogue_is_written_as_the_vector_is(name, tmp_path):
    """Other strings are stored without compression in the vectors, so their files differ."""
    (known,) = (case for case in vector("catalogue")["good"] if case["files"] == [name])
    write_catalogue(tmp_path / "catalogue", [int(i) if known["kind"] == "int" else i for i in known["ids"]])
    assert (tmp_path / "catalogue").read_bytes() == (FOLDER / name).read_bytes()


@pytest.mark.parametrize(**by_name(vector("catalogue")["refused"]))
def test_a_bad_catalogue_is_refused(known, tmp_path):
    paths = [tmp_path / str(number) for number in range(len(known["files"]))]
    for path, content in zip(paths, known["files"], strict=True):
        path.write_bytes(bytes.fromhex(content))
    if known["at"] == "open":
        with pytest.raises(ArtifactFileError), Catalogue.open(paths, known["item_count"]) as catalogue:
            catalogue.check()
        return
    with Catalogue.open(paths, known["item_count"]) as catalogue:
        catalogue.check()
        with pytest.raises(ArtifactFileError):
            getattr(catalogue, known["at"])(int(known["asked"]))


class Trusting:
    """Trust in the one key of the vectors."""

    def __init__(self, public_key):
        self.manifest_keys = {key_id(public_key): public_key}


def trust():
    return Trusting(bytes.fromhex(vector("manifest")["public_key"]))


def test_a_good_manifest():
    known = vector("manifest")
    signed = bytes.fromhex(known["signed_manifest"])
    assert signed == (FOLDER / "manifest.bin").read_bytes()
    manifest = Manifest(signed, trust())
    assert manifest.sha256.hex() == known["manifest_sha256"]
    assert key_id(bytes.fromhex(known["public_key"])).hex() == known["key_id"]
    assert manifest.message.SerializeToString(deterministic=True).hex() == known["manifest"]
    assert manifest.rankings.popularities == ((0, 1023), (5, 80), (6, 80), (99, 0))
    assert [ranking.prior_fourths for ranking in manifest.rankings.by_group] == [0, 64, 1024, 0]
    assert len(manifest.rankings.candidates) == 8


@pytest.mark.parametrize("signed", vector("manifest")["also_good"].values())
def test_another_good_manifest(signed):
    assert Manifest(bytes.fromhex(signed), trust()).rankings == ((), (), ())


def test_a_coordinator_signs_as_the_vector_does(tmp_path):
    known = vector("manifest")
    Authority.init(tmp_path / "authority", ["localhost"]).close()
    credentials = Credentials(tmp_path / "authority" / "coordinator")
    credentials.manifest_key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(known["private_key"]))
    signed = credentials.sign(bytes.fromhex(known["manifest"]))
    assert signed.SerializeToString().hex() == known["signed_manifest"]
    assert hashlib.sha256(signed.manifest).hexdigest() == known["manifest_sha256"]


@pytest.mark.parametrize(**by_name(vector("manifest")["refused"]))
def test_a_bad_manifest_is_refused(known):
    with pytest.raises(ManifestError):
        Manifest(bytes.fromhex(known["signed_manifest"]), trust())
