"""Writes the folder that the examples are tried on: a small model as a server would publish it, and one user's ratings.

Run as python examples/c/make_device.py examples/c/device
"""

import random
import sys
import zlib
from hashlib import sha256
from pathlib import Path

from lightfr.v1 import manifest_pb2, model_pb2

CODE_BITS, ITEMS, GROUPS = 64, 240, 3
# The user likes the first group, and one item of the second.
RATINGS = {0: 5, 3: 4, 9: 5, 21: 4, 30: 5, 42: 3, 1: 2, 66: 5, 90: 4}


def item_codes(rng: random.Random) -> bytes:
    """Codes in three groups: each item is its group's code with a sixth of the bits turned over."""
    centres = [rng.getrandbits(CODE_BITS) for _ in range(GROUPS)]
    turned = (sum(1 << k for k in range(CODE_BITS) if rng.random() < 1 / 6) for _ in range(ITEMS))
    return b"".join(
        (centres[row % GROUPS] ^ bits).to_bytes(CODE_BITS // 8, "little") for row, bits in enumerate(turned)
    )


def artifact(content: bytes) -> manifest_pb2.Artifact:
    """Name a file by its content."""
    return manifest_pb2.Artifact(sha256=sha256(content).digest(), size_bytes=len(content))


def files() -> dict[str, bytes]:
    """The content of every file in the folder."""
    rng = random.Random(1)  # noqa: S311 # an example, the same each time
    # The last four items are closed, and share the row of the first of them.
    codes, open_rows = item_codes(rng)[: -3 * CODE_BITS // 8], bytes([0xFF] * (ITEMS // 8 - 1) + [0x0F])
    packed = zlib.compress(open_rows)
    mean = b"".join(rng.randrange(-32, 33).to_bytes(2, "little", signed=True) for _ in range(CODE_BITS))
    model = model_pb2.RoundModel(
        code_bits=CODE_BITS,
        item_count=ITEMS,
        objective=model_pb2.OBJECTIVE_CATALOGUE,
        upload_kind=model_pb2.UPLOAD_KIND_TERNARY,
        mean_user=mean,
        max_rows=6,
        privacy_mode=model_pb2.PRIVACY_MODE_CLEAR,
    )
    manifest = manifest_pb2.Manifest(
        wire_version=1,
        model_version=7,
        model=model,
        codes=artifact(codes),
        open_rows=artifact(packed),
    )
    ratings = "".join(f"{item} {rating}\n" for item, rating in RATINGS.items())
    return {
        "manifest": manifest.SerializeToString(deterministic=True),
        "codes": codes,
        "open_rows": open_rows,
        "ratings.txt": ratings.encode(),
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files().items():
        (folder / name).write_bytes(content)
