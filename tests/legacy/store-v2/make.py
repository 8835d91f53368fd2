"""Make this folder's files: `python tests/legacy/store-v2/make.py FOLDER`. Keys and nonces differ each time."""

import sys
from pathlib import Path

from lightfr.keys import FileKey, PassphraseKey
from lightfr.store import Store


def make(folder):
    with Store.open(folder, FileKey(folder / "ring.key")) as store:
        store.rate([("before", 1), ("again", 2)])
        store.update({"user": b"before", "gone": b"x"})
        store.rotate_key()  # so that the file has a snapshot of several records
        store.rate([("ünïcode", 0), (-(2**63), 2520), (7, 1260), ("7", 630), ("again", 3)])
        store.unrate("before")
        store.update({"user": bytes(range(256)), "gone": None, "empty": b""})
    (folder / "store.lock").unlink()
    PassphraseKey(folder / "passphrase.key", "correct horse").save(b"a secret of version 2", b"an anchor")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
