"""Downloads: whole, in parts, and not at all when they are held already."""

from __future__ import annotations

from lightfr_harness.conformance.client import Answer, NoAnswer
from lightfr_harness.conformance.expectations import Unexpected, expect, expect_equal
from lightfr_harness.conformance.registry import case
from lightfr_harness.conformance.versions import Published, artifacts_of, open_items
from lightfr_harness.conformance.world import World

PLACE = "docs/protocol.md#downloads"
CATALOGUE, BITMAPS = "docs/artifacts.md#catalogue", "docs/artifacts.md#bitmaps"


class _Codes:
    """The newest item codes, whole, and a way to ask for them."""

    def __init__(self, world: World) -> None:
        self._device = world.device(0)
        artifact = world.manifest().codes
        self.digest, self.size = artifact.sha256.hex(), artifact.size_bytes
        self.etag = f'"{self.digest}"'
        self.content = self._device.artifact(artifact)

    def get(self, verb: str = "GET", **headers: str) -> Answer:
        return self._device.get(f"/artifacts/{self.digest}", verb, **headers)

    def require_whole(self, answer: Answer) -> None:
        expect(answer.status == 200, "200 with the whole", answer)
        expect_equal("the whole", answer.body, self.content)

    def require_part(self, answer: Answer, first: int, last: int) -> None:
        expect(answer.status == 206, f"206 with bytes {first} to {last}", answer)
        expect_equal("Content-Range", answer.headers.get("content-range"), f"bytes {first}-{last}/{self.size}")
        expect_equal("the part", answer.body, self.content[first : last + 1])

    def require_headers(self, answer: Answer) -> None:
        expect_equal("ETag", answer.headers.get("etag"), self.etag)
        expect_equal("Accept-Ranges", answer.headers.get("accept-ranges"), "bytes")
        control = {part.strip() for part in answer.headers.get("cache-control", "").split(",")}
        expect_equal("Cache-Control", control, {"public", "max-age=31536000", "immutable"})


@case("artifacts.whole", "A device uses nothing whose size or digest is not that of the manifest.", PLACE)
def whole(world: World) -> None:
    for artifact in artifacts_of(world.manifest()):
        answer = world.device(0).get(f"/artifacts/{artifact.sha256.hex()}")
        expect_equal("Content-Length", answer.headers.get("content-length"), str(artifact.size_bytes))
        world.device(0).artifact(artifact)


@case("artifacts.headers", "Caches and devices go by the tag, and may keep what never changes.", PLACE)
def headers(world: World) -> None:
    codes = _Codes(world)
    codes.require_headers(codes.get())
    codes.require_headers(codes.get(Range="bytes=7-"))


@case("artifacts.head", "HEAD tells size and tag without the bytes.", PLACE)
def head(world: World) -> None:
    codes = _Codes(world)
    answer = codes.get("HEAD")
    expect(answer.status == 200 and not answer.body, "200 without a body", answer)
    expect_equal("Content-Length", answer.headers.get("content-length"), str(codes.size))
    codes.require_headers(answer)


@case("artifacts.range-open", "A broken download goes on at the byte where it broke.", PLACE)
def range_open(world: World) -> None:
    codes = _Codes(world)
    codes.require_part(codes.get(Range="bytes=123-"), 123, codes.size - 1)


@case("artifacts.range-behind-the-end", "A device that has more than there is must learn the size.", PLACE)
def range_behind_the_end(world: World) -> None:
    codes = _Codes(world)
    for first in (codes.size, codes.size + 5):
        answer = codes.get(Range=f"bytes={first}-")
        expect(answer.status == 416, "416 for a range behind the end", answer)
        expect_equal("Content-Range", answer.headers.get("content-range"), f"bytes */{codes.size}")
        codes.require_headers(answer)


@case(
    "artifacts.range-other",
    "A device asks for the rest of a file and for nothing else; to another range a server may send the whole.",
    PLACE,
)
def range_other(world: World) -> None:
    codes, size = _Codes(world), _Codes(world).size
    parts = {"bytes=0-9": (0, 9), "bytes=-10": (size - 10, size - 1), f"bytes=200-{10 * size}": (200, size - 1)}
    for asked, part in parts.items():
        answer = codes.get(Range=asked)
        if answer.status != 200:
            codes.require_part(answer, *part)
        else:
            codes.require_whole(answer)
    for asked in ("rows=0-1", "bytes=9-3"):
        codes.require_whole(codes.get(Range=asked))


@case("artifacts.if-range-same", "The rest of what a device holds is sent if it still is the same.", PLACE)
def if_range_same(world: World) -> None:
    codes = _Codes(world)
    codes.require_part(codes.get(Range="bytes=50-", If_Range=codes.etag), 50, codes.size - 1)


@case("artifacts.if-range-other", "Parts of two files must never be put together.", PLACE)
def if_range_other(world: World) -> None:
    codes = _Codes(world)
    others = ('"' + "0" * 64 + '"', f"W/{codes.etag}", "Mon, 16 Nov 2026 00:00:00 GMT", codes.digest)
    for other in others:
        codes.require_whole(codes.get(Range="bytes=50-", If_Range=other))


@case("artifacts.resume", "Half a download and the rest of it make the file.", PLACE)
def resume(world: World) -> None:
    codes = _Codes(world)
    for held in (1, codes.size // 2, codes.size - 1):
        rest = codes.get(Range=f"bytes={held}-", If_Range=codes.etag).body
        expect_equal("what is held and the rest", codes.content[:held] + rest, codes.content)


@case("artifacts.if-none-match", "What a cache holds is not sent again.", PLACE)
def if_none_match(world: World) -> None:
    codes = _Codes(world)
    for tags in (codes.etag, "*", f'"{"0" * 64}", {codes.etag}', f"W/{codes.etag}"):
        answer = codes.get(If_None_Match=tags)
        expect(answer.status == 304 and not answer.body, f"304 without a body for If-None-Match: {tags[:12]}", answer)
        codes.require_headers(answer)


@case("artifacts.if-none-match-other", "What a cache does not hold is sent.", PLACE)
def if_none_match_other(world: World) -> None:
    codes = _Codes(world)
    codes.require_whole(codes.get(If_None_Match='"' + "0" * 64 + '"'))


@case("artifacts.unknown", "A digest that nothing has, or that is written otherwise, is not found.", PLACE)
def unknown(world: World) -> None:
    digest = world.manifest().codes.sha256.hex()
    answer = world.device(0).get(f"/artifacts/{'0' * 64}")
    expect(answer.status == 404, "404 for a digest that nothing has", answer)
    for name in (digest[:-1], digest + "0", digest.upper(), "", "..%2f..%2fsettings.json"):
        answer = world.device(0).get(f"/artifacts/{name}")
        expect(answer.status in (400, 404, 405), "404 for what is no digest", answer)


@case("artifacts.no-identity", "Downloads are for enrolled devices, as calls are.", PLACE)
def no_identity(world: World) -> None:
    path = f"/artifacts/{world.manifest().codes.sha256.hex()}"
    try:
        answer = world.client(None).request("GET", path, None, {})
    except NoAnswer:
        return
    raise Unexpected("the handshake to fail without a certificate", f"an answer: {answer}")


@case("artifacts.unnamed", "A certificate that names no device opens no download either.", PLACE)
def unnamed(world: World) -> None:
    path = f"/artifacts/{world.manifest().codes.sha256.hex()}"
    try:
        answer = world.client(world.kit.tester("unnamed")).request("GET", path, None, {})
    except NoAnswer:
        return
    expect(answer.status in (401, 403, 404), "403 for a certificate that names no device", answer)


@case("artifacts.catalogue", "Indices mean nothing unless every device maps them to the same ids.", CATALOGUE)
def catalogue(world: World) -> None:
    expect_equal("ids by index", Published.of(world, world.manifest()).ids, world.kit.item_ids)


@case("artifacts.open-rows", "The gate keeps items closed that too few devices rate.", "docs/protocol.md#the-server")
def open_rows(world: World) -> None:
    expect_equal("open items", open_items(world, world.manifest()), world.kit.open_rows)


@case(
    "artifacts.shared-row",
    "Closed items share the row behind those of the open ones, and a device reads it there.",
    BITMAPS,
)
def shared_row(world: World) -> None:
    published = Published.of(world, world.manifest())
    row_bytes = world.kit.settings.code_bits // 8
    expect_equal("rows of the codes", len(published.codes) // row_bytes, sum(world.kit.open_rows) + 1)
    expect_equal("D", published.matrix, world.twin.codes)


@case("artifacts.removed-items", "No item has left yet, and a device would not know one that has.", BITMAPS)
def removed_items(world: World) -> None:
    expect(not any(Published.of(world, world.manifest()).has_left), "no item that has left", "some")
