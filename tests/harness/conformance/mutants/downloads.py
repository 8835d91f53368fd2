"""Faults of downloads: ranges, tags, caches, deltas."""

from __future__ import annotations

from lightfr.v1 import manifest_pb2
from lightfr_harness.server.coordinator import downloads, publishing, web
from lightfr_harness.server.coordinator.publishing import Publisher
from tests.harness.conformance.mutants import around, mutant


@mutant("range-ignored", "Range is ignored: a download begins anew each time", "artifacts.range-open")
def range_ignored():
    downloads._part = lambda request, digest, size: None


@mutant(
    "if-range-ignored",
    "If-Range is ignored: the rest of one file is sent for the beginning of another",
    "artifacts.if-range-other",
)
def if_range_ignored():
    @around(downloads, "_part")
    def _(original, request, digest, size):
        headers = request.headers.copy()
        headers.pop("If-Range", None)
        return original(request.clone(headers=headers), digest, size)


@mutant("range-end-excluded", "the last byte of a range is left out", "artifacts.range-open")
def range_end_excluded():
    @around(downloads, "_part")
    def _(original, request, digest, size):
        part = original(request, digest, size)
        return part and part[:-1]


@mutant("range-suffix-first", "`-n` gives the first bytes in the place of the last", "artifacts.range-other")
def range_suffix_first():
    @around(downloads, "_part")
    def _(original, request, digest, size):
        part = original(request, digest, size)
        return range(len(part)) if "=-" in request.headers.get("Range", "") else part


@mutant("range-behind-the-end", "a range behind the end gets the whole, not 416", "artifacts.range-behind-the-end")
def range_behind_the_end():
    @around(downloads, "_part")
    def _(original, request, digest, size):
        return original(request, digest, size) or None


@mutant("no-304", "If-None-Match is ignored", "artifacts.if-none-match")
def no_304():
    downloads._names = lambda header, digest: False


@mutant("etag-weak", "the ETag is a weak one", "artifacts.headers")
def etag_weak():
    _with_headers(lambda headers: headers.update(ETag=f"W/{headers['ETag']}"))


@mutant("no-etag", "there is no ETag", "artifacts.headers")
def no_etag():
    _with_headers(lambda headers: headers.pop("ETag"))


@mutant("no-accept-ranges", "Accept-Ranges is left out", "artifacts.headers")
def no_accept_ranges():
    _with_headers(lambda headers: headers.pop("Accept-Ranges"))


@mutant("bare-416", "416 comes without the headers of the other answers", "artifacts.range-behind-the-end")
def bare_416():
    _with_headers(lambda headers: headers.pop("ETag"), statuses=(416,))


@mutant("bare-304", "304 comes without Cache-Control", "artifacts.if-none-match")
def bare_304():
    _with_headers(lambda headers: headers.pop("Cache-Control"), statuses=(304,))


def _with_headers(change, statuses=(200, 206, 304, 416)):
    @around(web, "_drop_server_header")
    async def _(original, request, response):
        await original(request, response)
        if "ETag" in response.headers and response.status in statuses:
            change(response.headers)


@mutant("delta-of-another-base", "a delta is made from another version than the one that it names", "deltas.apply")
def delta_of_another_base():
    @around(Publisher, "_deltas")
    def _(original, self, target, older):
        deltas = original(self, target, older)
        bases = [delta.from_sha256 for delta in deltas]
        for delta, base in zip(deltas, bases[1:] + bases[:1], strict=True):
            delta.from_sha256 = base
        return deltas


@mutant("deltas-oldest-first", "deltas come from the oldest version to the newest", "deltas.newest-first")
def deltas_oldest_first():
    @around(Publisher, "_deltas")
    def _(original, self, target, older):
        return original(self, target, older)[::-1]


@mutant("delta-not-worth-it", "deltas are offered that are larger than the codes", "deltas.worth-it")
def delta_not_worth_it():
    @around(Publisher, "_deltas")
    def _(original, self, target, older):
        boundless = manifest_pb2.Manifest()
        boundless.CopyFrom(target)
        boundless.codes.size_bytes = 2**40
        return original(self, boundless, older)


@mutant("old-artifacts-removed", "what the last version named is removed with the next one", "deltas.older-artifacts")
def old_artifacts_removed():
    offered = set()

    @around(Publisher, "clean")
    def _(original, self, manifests, *others):
        original(self, manifests, *others)
        offered.clear()
        for newest in list(manifests)[:1]:
            parsed = manifest_pb2.Manifest.FromString(newest)
            offered.update(publishing.artifact_kinds(parsed))

    @around(downloads, "answer")
    async def _(original, request, folder, digest):
        return await original(request, folder, digest if digest in offered or not offered else "0" * 64)
