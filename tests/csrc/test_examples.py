"""The examples, built against the installed library as an app would, do what the SDK does, bit for bit."""

import io
import sys
from functools import partial
from hashlib import sha256

import numpy as np
import pytest

from lightfr import ItemCodes, ItemSet, OpenRows, UserCode, _wire, rank
from lightfr._wire.coordinator import Assignment, encode_upload
from lightfr.interactions import Interactions
from lightfr.training import PublishedModel, fit_for_round, fit_for_use, make_update
from lightfr.v1 import coordinator_pb2, manifest_pb2, model_pb2
from lightfr_harness.server.rules.uploads import UploadReader
from tests.csrc.conftest import EXAMPLES, start_program

ROUND_ID = bytes(range(16))
sys.path.insert(0, str(EXAMPLES))
import make_device  # noqa: E402
import make_fields  # noqa: E402


@pytest.fixture(params=["by_pkg_config", "by_cmake"])
def programs(request, staged):
    """Runs a program of either build."""
    return partial(start_program, request.getfixturevalue(request.param), staged)


class Device:
    """A folder for the programs, and the same device in Python."""

    def __init__(self, folder, *, code_bits, n_items, n_rated, seed=1, **fields):
        rng = np.random.default_rng(seed)
        self.folder, self.random = folder, rng.bytes(4 * n_items + code_bits * (2 * n_rated + 1) + 16)
        self.rated, self.open_rows, self.removed = rng.permutation(n_items)[:n_rated].tolist(), None, None
        if fields.pop("gate", False):
            is_open = rng.random(n_items) < 0.5
            self.open_rows = OpenRows(np.packbits(is_open, bitorder="little").tobytes(), n_items)
            is_removed = ~is_open & (rng.random(n_items) < 0.5)
            is_removed[self.rated] = False
            self.removed = np.packbits(is_removed, bitorder="little").tobytes()
        n_rows = self.open_rows.n_open + 1 if self.open_rows else n_items
        self.codes = rng.bytes(n_rows * code_bits // 8)
        if fields.pop("mean", False):
            fields["mean_user"] = rng.integers(-256, 257, code_bits).astype("<i2").tobytes()
        defaults = {"objective": 1, "upload_kind": 1, "privacy_mode": 1}
        self.model = model_pb2.RoundModel(code_bits=code_bits, item_count=n_items, **{**defaults, **fields})
        self.manifest = manifest_pb2.Manifest(wire_version=1, model_version=3, model=self.model)
        self.write()

    def write(self):
        if self.open_rows:
            self.manifest.open_rows.size_bytes = self.manifest.removed_items.size_bytes = 1
            (self.folder / "open_rows").write_bytes(self.open_rows.bitmap)
            (self.folder / "removed_items").write_bytes(self.removed)
        (self.folder / "manifest").write_bytes(self.manifest.SerializeToString())
        (self.folder / "codes").write_bytes(self.codes)
        (self.folder / "random").write_bytes(self.random)
        (self.folder / "ratings.txt").write_text("".join(f"{item} {1 + item % 5}\n" for item in self.rated))

    @property
    def digest(self):
        return sha256((self.folder / "manifest").read_bytes()).digest()

    def sdk(self):
        """Model, opinions, first code and generator of the SDK."""
        stream = io.BytesIO(self.random)
        model = PublishedModel(ItemCodes(self.codes, self.model.code_bits, self.open_rows), self.model)
        rated = Interactions([(item, 630 * (item % 5)) for item in self.rated])
        return model, rated, UserCode(stream.read(model.code_bits // 8)), stream

    def sdk_upload(self):
        """The code after the round, and the bytes that the SDK would send."""
        model, rated, start, stream = self.sdk()
        taught = rated.to_teach()
        code = fit_for_round(model, taught, start)
        update = _wire.encode_update(make_update(model, taught, code, stream.read))
        assignment = Assignment(ROUND_ID, 3, self.digest, 1000, 2**20, b"", False)
        return code.reveal(), encode_upload(assignment, stream.read(16), update)

    def sdk_ranking(self):
        model, rated, start, _ = self.sdk()
        code = fit_for_use(model, rated, start)
        f = model.code_bits
        left_out = ItemSet(model.n_items, self.rated, bitmap=self.removed)
        found = rank(code, model.codes, 5, exclude=left_out)
        return [(ranked.item_index, round(f * (2 * ranked.similarity - 1))) for ranked in found]


DEVICES = {
    "few ratings": {"code_bits": 64, "n_items": 300, "n_rated": 9},
    "a mean user": {"code_bits": 64, "n_items": 300, "n_rated": 9, "mean": True},
    "a gate": {"code_bits": 64, "n_items": 301, "n_rated": 40, "gate": True},
    "more ratings than rows": {"code_bits": 64, "n_items": 300, "n_rated": 90, "max_rows": 64},
    "a gate and one row": {"code_bits": 32, "n_items": 80, "n_rated": 33, "gate": True, "max_rows": 1, "mean": True},
    "nothing rated": {"code_bits": 64, "n_items": 50, "n_rated": 0, "mean": True},
    "everything rated": {"code_bits": 24, "n_items": 31, "n_rated": 31},
    "the shortest codes": {"code_bits": 8, "n_items": 40, "n_rated": 12, "mean": True},
    "the longest codes": {"code_bits": 1024, "n_items": 60, "n_rated": 20, "mean": True},
    "a fit that depends on rounding down": {"code_bits": 8, "n_items": 3, "n_rated": 0, "mean": True},
    "one item": {"code_bits": 16, "n_items": 1, "n_rated": 1},
}


@pytest.fixture(params=DEVICES, ids=lambda name: name.replace(" ", "-"))
def device(request, tmp_path):
    return Device(tmp_path, **DEVICES[request.param])


def upload(programs, device, *more):
    return programs("upload", device.folder, ROUND_ID.hex(), device.digest.hex(), *more)


def test_an_upload_is_what_the_sdk_would_send_and_a_coordinator_reads_it(programs, device):
    finished = upload(programs, device, device.folder / "random")
    assert (finished.returncode, finished.stderr) == (0, "")
    code, expected = device.sdk_upload()
    written = (device.folder / "upload").read_bytes()
    request = coordinator_pb2.UploadRequest.FromString(written)
    assert request == coordinator_pb2.UploadRequest.FromString(expected)
    assert written == expected
    assert (device.folder / "user_code").read_bytes() == code
    read = UploadReader(device.model, device.open_rows.bitmap if device.open_rows else b"").check(request.row_update)
    assert set(read.item_indices.tolist()) <= set(device.rated)
    assert finished.stdout == f"an upload of {len(written)} bytes for {len(read.item_indices)} rows\n"


def test_recommendations_are_those_of_the_sdk(programs, device):
    finished = programs("recommend", device.folder, device.folder / "random")
    assert (finished.returncode, finished.stderr) == (0, "")
    shown = [tuple(map(int, line.split()[1:])) for line in finished.stdout.splitlines()[1:]]
    assert shown == device.sdk_ranking()


def test_without_a_file_of_random_bytes_two_uploads_differ_and_start_from_the_stored_code(programs, tmp_path):
    device = Device(tmp_path, **DEVICES["few ratings"])
    uploads = set()
    for _ in range(2):
        assert upload(programs, device).returncode == 0
        uploads.add((tmp_path / "upload").read_bytes())
        code = (tmp_path / "user_code").read_bytes()
        model, rated, _, _ = device.sdk()
        assert fit_for_round(model, rated.to_teach(), UserCode(code)).reveal() == code
    assert len(uploads) == 2


def spoiled(device, **files):
    for name, content in files.items():
        (device.folder / name.replace("_txt", ".txt")).write_bytes(content)


BAD = {
    "is not an item and a rating": {"ratings_txt": b"1 5\ntwo 5\n"},
    "line 1 is not an item and a rating": {"ratings_txt": b"1 5 9\n"},
    "line 2: there are 40 items": {"ratings_txt": b"39 5\n40 5\n"},
    "line 1: there are 40 items": {"ratings_txt": b"-1 5\n"},
    "line 1: a rating is 1 to 5": {"ratings_txt": b"1 6\n"},
    "a rating is 1 to 5": {"ratings_txt": b"1 nan\n"},
    "line 2: the item was rated before": {"ratings_txt": b"1 5\n1 4\n"},
    "codes has 39 bytes, which are not 40 rows of 8 bits": {"codes": bytes(39)},
    "codes has 0 bytes": {"codes": b""},
    "user_code has 2 bytes, 1 were expected": {"user_code": b"12"},
    "the file of random bytes ended": {"random": b""},
    "the file manifest holds no Manifest message": {"manifest": b"\x0a"},
    "manifest holds no Manifest message": {"manifest": b"\x22\x7f\x08\x08"},  # a model of 127 bytes, two of them there
}


@pytest.mark.parametrize("complaint", BAD, ids=lambda text: text.replace(" ", "-"))
def test_a_bad_file_is_named_in_one_sentence(programs, tmp_path, complaint):
    device = Device(tmp_path, **DEVICES["the shortest codes"])
    spoiled(device, **BAD[complaint])
    finished = upload(programs, device, tmp_path / "random")
    assert finished.returncode == 1
    assert complaint in finished.stderr
    assert finished.stderr.count("\n") == 1
    assert not (tmp_path / "upload").exists()


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"code_bits": 12}, "codes of 12 bits"),
        ({"objective": 2}, "objective CATALOGUE only"),
        ({"upload_kind": 2}, "another kind than TERNARY"),
        ({"privacy_mode": 2}, "not in mode CLEAR"),
        ({"mean_user": bytes(3)}, "mean user has 3 bytes"),
        ({"mean_user": b"\xff\x7f" * 8}, "leaves -256 to 256"),
    ],
)
def test_a_model_that_this_program_does_not_serve_is_refused(programs, tmp_path, fields, complaint):
    device = Device(tmp_path, **DEVICES["the shortest codes"])
    for name, value in fields.items():
        setattr(device.manifest.model, name, value)
    device.write()
    finished = upload(programs, device)
    assert finished.returncode == 1
    assert complaint in finished.stderr


@pytest.mark.parametrize("wire_version", [0, 2, 2**32 - 1])
def test_a_manifest_of_another_wire_version_or_of_none_is_refused(by_pkg_config, staged, tmp_path, wire_version):
    device = Device(tmp_path, **DEVICES["the shortest codes"])
    device.manifest.wire_version = wire_version
    device.write()
    finished = start_program(by_pkg_config, staged, "recommend", tmp_path)
    assert finished.returncode == 1
    assert f"wire version {wire_version}, this program speaks 1" in finished.stderr


def test_a_user_code_that_cannot_be_opened_is_not_replaced_by_a_new_one(by_pkg_config, staged, tmp_path):
    device = Device(tmp_path, **DEVICES["the shortest codes"])
    (tmp_path / "user_code").symlink_to("user_code")  # no reader may open it, not even root
    finished = upload(partial(start_program, by_pkg_config, staged), device)
    assert (finished.returncode, finished.stderr.count("\n")) == (1, 1)
    assert "cannot open user_code" in finished.stderr
    assert (tmp_path / "user_code").is_symlink()
    assert not (tmp_path / "upload").exists()


def test_no_cut_or_spoiled_manifest_makes_a_program_crash(by_pkg_config, staged, tmp_path):
    Device(tmp_path, **DEVICES["a gate and one row"])
    whole = (tmp_path / "manifest").read_bytes()
    rng = np.random.default_rng(1)
    cut = [whole[:size] for size in range(len(whole))]
    changed = [
        bytes(
            b ^ int(x)
            for b, x in zip(whole, rng.integers(0, 256, len(whole)) * (rng.random(len(whole)) < 0.05), strict=True)
        )
        for _ in range(60)
    ]
    for manifest in cut + changed:
        (tmp_path / "manifest").write_bytes(manifest)
        finished = start_program(by_pkg_config, staged, "recommend", tmp_path)
        assert finished.returncode in (0, 1)
        assert finished.stderr.count("\n") == finished.returncode


def test_the_folder_that_comes_with_the_examples_is_what_its_script_makes():
    assert {path.name: path.read_bytes() for path in (EXAMPLES / "device").iterdir()} == make_device.files()


def test_the_view_of_the_messages_in_c_is_that_of_the_contract():
    assert (EXAMPLES / "lightfr_v1.h").read_text() == make_fields.header()
