"""Files of the model that were damaged on the medium: when that is noticed, and how it is mended."""

import errno
import hashlib
import os

import numpy as np
import pytest

from lightfr import codes
from lightfr.errors import ArtifactFileError, ManifestError, NotSyncedError, ServerUnavailableError
from lightfr.model import folder
from tests.sdk.client.publisher import asked, random_codes


@pytest.fixture
def device(publisher, open_device):
    """A device that holds version 1, in which the last item is closed, so that its row is the shared one."""
    publisher.publish(1, random_codes(1), is_open=np.arange(500) < 499, removed=np.zeros(500, bool))
    client = open_device()
    client.sync()
    client.rate("item 1", 5)
    publisher.server.requests.clear()
    return client


KINDS = pytest.mark.parametrize("name", ["codes", "catalogue", "open_rows", "removed_items"])


def file_of(client, artifact):
    return client._user.models._path / artifact.sha256.hex()


def named(message, name):
    """One of the files of a model."""
    return message.catalogue_parts[0] if name == "catalogue" else getattr(message, name)


def damage(path):
    """Change the last byte; the size stays."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.fixture
def read_whole(monkeypatch):
    """The names of the files whose digests were computed, in order."""
    names, digest = [], hashlib.file_digest
    monkeypatch.setattr(
        hashlib, "file_digest", lambda file, kind: (names.append(file.name.split("/")[-1]), digest(file, kind))[1]
    )
    return names


@KINDS
@pytest.mark.parametrize("is_open", [False, True])
def test_the_next_sync_notices_a_damaged_file_and_fetches_it_again(publisher, device, open_device, name, is_open):
    path = file_of(device, named(publisher.message, name))
    if is_open:
        assert not device.sync()
    else:
        device.close()
    damage(path)
    client = device if is_open else open_device()
    assert client.sync(), "a model that was mended counts as new"
    assert asked(publisher) == [path.name]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
    assert len(client.recommend(5)) == 5
    assert client._user.model.codes.row(499) == random_codes(1)[499].tobytes()
    assert client._user.model.catalogue.index_of("item 499") == 499
    assert client.status().model_version == 1
    assert not client.sync()


@KINDS
def test_a_file_that_is_known_to_be_damaged_is_not_used_also_when_the_server_is_away(
    publisher, device, open_device, name
):
    damage(file_of(device, named(publisher.message, name)))
    publisher.answers["GetManifest"] = lambda _: (503, {}, b"")
    with pytest.raises(ServerUnavailableError):
        device.sync()
    with pytest.raises(NotSyncedError):
        device.recommend(5)
    device.close()
    client = open_device()
    with pytest.raises(NotSyncedError):
        client.recommend(5)
    del publisher.answers["GetManifest"]
    assert client.sync()
    assert len(client.recommend(5)) == 5


@KINDS
@pytest.mark.parametrize("change", ["cut", "removed"])
def test_opening_notices_a_file_of_another_size_and_the_next_sync_fetches_that_file_alone(
    publisher, device, open_device, name, change
):
    path = file_of(device, named(publisher.message, name))
    device.close()
    if change == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        path.unlink()
    client = open_device()
    with pytest.raises(NotSyncedError):
        client.recommend(5)
    assert client.sync()
    assert asked(publisher) == [path.name]
    assert len(client.recommend(5)) == 5


def test_damage_is_no_way_back_to_an_older_version(publisher, device, open_device):
    publisher.publish(3, random_codes(3))
    device.sync()
    device.close()
    file_of(device, publisher.message.codes).unlink()
    publisher.publish(2, random_codes(2))
    for _ in range(2):
        client = open_device()
        with pytest.raises(ManifestError, match="version 2 after 3"):
            client.sync()
        client.close()
    publisher.publish(4, random_codes(4))
    client = open_device()
    assert client.sync()
    assert client.status().model_version == 4


def test_a_round_is_not_trained_on_damaged_codes(publisher, device):
    path = file_of(device, publisher.message.codes)
    damage(path)
    publisher.assignment()
    assert device.participate().took_part
    assert asked(publisher)[0] == path.name
    assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name


def test_a_damaged_manifest_is_noticed_by_opening_and_everything_is_fetched_anew(publisher, device, open_device):
    device.close()
    damage(device._user.models._path / "current")
    client = open_device()
    with pytest.raises(NotSyncedError):
        client.recommend(5)
    assert client.sync()
    assert len(client.recommend(5)) == 5


def test_files_are_read_whole_once_in_a_process_and_never_by_opening(publisher, device, open_device, read_whole):
    assert not device.sync()
    assert read_whole == [], "what was downloaded was checked then"
    device.close()
    client = open_device()
    client.recommend(5)
    assert read_whole == []
    message = publisher.message
    for _ in range(2):
        assert not client.sync()
        files = (message.codes, *message.catalogue_parts, message.open_rows, message.removed_items)
        assert read_whole == [file.sha256.hex() for file in files]


def refusing(monkeypatch, number):
    """From here on no file of a model can be read whole."""

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(folder.hashlib, "file_digest", refuse)


def test_a_file_that_the_medium_does_not_give_back_is_fetched_again(publisher, device, monkeypatch):
    path, models = file_of(device, publisher.message.codes), device._user.models
    models._checked.clear()
    with monkeypatch.context() as patch:
        refusing(patch, errno.EIO)
        assert not models._keep_if_whole(publisher.message.codes)
    assert not path.exists()
    assert device.sync()
    assert models._keep_if_whole(publisher.message.codes)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_file_that_is_locked_for_a_while_stays(publisher, device, open_device, monkeypatch, number):
    """A locked phone, or a process at its limit of descriptors: the model is whole, and needed offline."""
    path, models = file_of(device, publisher.message.codes), device._user.models
    models._checked.clear()
    with monkeypatch.context() as patch:
        refusing(patch, number)
        for call in (device.sync, device.participate):
            with pytest.raises(ArtifactFileError, match="cannot be read now"):
                call()
    assert path.exists()
    assert not device.sync()
    assert device.recommend(1)


def test_opening_a_model_whose_files_are_locked_is_an_error_that_deletes_nothing(
    publisher, device, open_device, monkeypatch
):
    path = file_of(device, publisher.message.codes)
    device.close()

    def full(*_, **__):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(codes.mmap, "mmap", full)
        refusing(patch, errno.EMFILE)
        with pytest.raises(ArtifactFileError, match="cannot be read now"):
            open_device()
    assert path.exists()
    assert open_device().recommend(1)


def test_a_manifest_that_cannot_be_read_is_an_error_that_deletes_nothing(publisher, device, open_device):
    current = device._user.models._path / "current"
    device.close()
    kept = current.rename(current.with_name("kept"))
    current.mkdir()
    with pytest.raises(ArtifactFileError, match="cannot be read now"):
        open_device()
    current.rmdir()
    kept.rename(current)
    assert open_device().recommend(1)
