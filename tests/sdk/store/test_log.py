"""Records of the log at the limits of their size."""

import os

import pytest

from lightfr.store import _log

HEADER, KEY = _log.Header(bytes(16), bytes(8), 1), bytes(32)
AROUND_BYTES = 12 + 16  # nonce and tag


@pytest.mark.parametrize("plaintext", [b"", b"a change"])
def test_no_reader_takes_a_record_above_the_limit_and_every_one_up_to_it(tmp_path, monkeypatch, plaintext):
    file = _log.write_temporary(tmp_path / "log", HEADER, KEY, [plaintext]).file
    try:
        monkeypatch.setattr(_log, "MAX_RECORD_BYTES", AROUND_BYTES + len(plaintext))
        assert _log.Log(file, HEADER, KEY).read() == plaintext
        monkeypatch.setattr(_log, "MAX_RECORD_BYTES", AROUND_BYTES + len(plaintext) - 1)
        assert _log.Log(file, HEADER, KEY).read() is None
    finally:
        os.close(file)
