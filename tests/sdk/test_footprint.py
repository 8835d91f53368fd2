"""The device is small: what importing and using the SDK loads and allocates, seen in a fresh process."""

import os
import subprocess
import sys

import numpy as np

from lightfr import Device, FileKey, _kernel
from lightfr.model.catalogue_part import HEADER

SCRIPT_MODULES = "import sys, lightfr; print(*sorted(m.split('.')[0] for m in sys.modules))"

SCRIPT_PRIVATE_KIB = """
import sys, lightfr

def private_kib():
    wanted = ("RssAnon:",)
    with open("/proc/self/status") as status:
        return sum(int(line.split()[1]) for line in status if line.startswith(wanted))
"""

SCRIPT_MEMORY = (
    SCRIPT_PRIVATE_KIB
    + """
user = lightfr.UserCode.random(64)
with lightfr.ItemCodes(bytes(8), 64) as warm:
    lightfr.recommend(user, warm, 1)
before = private_kib()
with lightfr.ItemCodes.open(sys.argv[1], 64) as codes:
    assert len(lightfr.recommend(user, codes, 10, rated=range(100))) == 10
    print(private_kib() - before)
"""
)

SCRIPT_LOOK_UPS = (
    SCRIPT_PRIVATE_KIB
    + """
from lightfr.model.catalogue import Catalogue

before = private_kib()
asked = range(0, 9_000_000, 30_000)
with Catalogue.open([sys.argv[1]], 10_000_000) as catalogue:
    catalogue.check()
    assert [catalogue.index_of(3 * index) for index in asked] == list(asked)
    assert [catalogue.id_of(index) for index in asked] == [3 * index for index in asked]
    print(private_kib() - before)
"""
)

SCRIPT_RECOMMEND = """
import sys
from lightfr import Device, FileKey

folder = sys.argv[1]
with Device.load(folder).client(folder + "/data", key=FileKey(folder + "/key")) as client:
    client.like("item 3")
    assert len(client.recommend(10)) == len(client.similar("item 4", 10)) == 10
    assert len(client.explain("item 4")) == 1
    client.score("item 5")
print(*sys.modules)
"""


def run(script, *arguments):
    answer = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, check=True, text=True)
    return answer.stdout.split()


def test_a_system_without_posix_is_told_so_in_one_sentence():
    """Not by a module that is missing somewhere below."""
    script = "import os, pathlib; os.name = 'nt'\ntry: import lightfr\nexcept ImportError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("lightfr runs on Linux and macOS")


def test_importing_the_sdk_loads_no_numpy_and_no_http_framework():
    loaded = set(run(SCRIPT_MODULES))
    assert "lightfr" in loaded
    assert not loaded & {"numpy", "aiohttp", "grpc", "requests", "httpx", "typer", "rich", "asyncio"}


def test_ten_million_items_add_at_most_5_mib_of_private_memory(tmp_path):
    path = tmp_path / "items.codes"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 80_000_000)
    (added_kib,) = run(SCRIPT_MEMORY, str(path))
    assert int(added_kib) <= 5 * 1024


def test_looking_up_300_of_ten_million_ids_adds_at_most_3_mib_of_private_memory(tmp_path):
    path, m, blocks = tmp_path / "items.ids", 10_000_000, 39_063
    with path.open("wb") as file:
        file.write(HEADER.pack(b"LFRC", 2, 1, 0, m))
        gap_bytes = np.minimum(255 * np.arange(blocks + 1), m - blocks)
        gap_bytes.astype("<u4").tofile(file)
        np.arange(0, 3 * m, 3 * 256, dtype="<i8").tofile(file)
        np.full(m - blocks, 2, np.uint8).tofile(file)
        file.write(_kernel.pack_bits(np.arange(m, dtype="<u4").data, m, 24))
        file.write(_kernel.pack_bits((np.arange(m) // 8192).astype("<u2").data, m, 11))
    (added_kib,) = run(SCRIPT_LOOK_UPS, str(path))
    assert int(added_kib) <= 3 * 1024


def test_opening_a_client_and_recommending_loads_no_tls_and_no_secure_aggregation(coordinator, invitation, tmp_path):
    folder = tmp_path / "device"
    with Device.enroll(invitation(coordinator), folder).client(folder / "data", key=FileKey(folder / "key")) as client:
        client.sync()
    loaded = set(run(SCRIPT_RECOMMEND, str(folder)))
    assert "lightfr.client" in loaded
    unneeded = {"ssl", "http.client", "lightfr.secagg", "lightfr.rounds", "lightfr.evaluation"}
    assert not loaded & (unneeded | {"logging", "queue", "dataclasses"})
    read = {name for name in loaded if name.startswith("lightfr.v1.")}
    assert read == {"lightfr.v1.manifest_pb2", "lightfr.v1.model_pb2"}, "more messages than a manifest needs"
