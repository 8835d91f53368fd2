"""Spoiled HTTP around messages that may be good or bad: bytes for a socket, and numbers for pauses in seconds."""

from tests.campaigns.mutations import Mutator

# In bodies, paths and headers: must never be found in a log.
CANARY = b"CANARY-7f3a9c"
ARTIFACT = b"/artifacts/"
RPC = b"/lightfr.v1.CoordinatorService/"

METHODS = (
    b"GET",
    b"PUT",
    b"DELETE",
    b"PATCH",
    b"OPTIONS",
    b"HEAD",
    b"CONNECT",
    b"TRACE",
    b"",
    b"post",
    b"P\0ST",
    b"X" * 9000,
)
PATHS = (
    b"/",
    b"*",
    b"//",
    b"/" + CANARY,
    b"/?" + CANARY,
    b"/" + b"a" * 9000,
    b"/%00",
    b"/\xff\xfe",
    b"/%zz",
    b"http://x/" + CANARY,
    RPC,
    RPC + b"Upload/",
    RPC + b"upload",
    RPC + b"Nothing",
    RPC + b"Upload?" + CANARY,
    RPC + b"../Upload",
    b"/lightfr.v1.EnrollmentService/Enroll",
    b"/lightfr.v1." + CANARY + b"/Upload",
    b"/metrics",
    b"/healthz",
)
ARTIFACT_PATHS = (
    b"..",
    b"../coordinator.sqlite",
    b"../../etc/passwd",
    b"%2e%2e/coordinator.sqlite",
    b"..%2fcoordinator.sqlite",
    b"%00",
    b"0" * 64,
    b"0" * 63,
    b"0" * 65,
    b"A" * 64,
    b"g" * 64,
    b"0" * 62 + b"/.",
    b"",
    b".",
    b"//etc/passwd",
    CANARY,
)
RANGES = (
    b"bytes=0-",
    b"bytes=5-2",
    b"bytes=-1",
    b"bytes=-0",
    b"bytes=-",
    b"bytes=0-0,2-3",
    b"bytes=99999999999999999999-",
    b"bytes=9999999999999999999-9999999999999999999",
    b"bytes=a-b",
    b"items=0-1",
    b"bytes=0--1",
    b"",
    b"bytes=\xb2-",
)
HEADERS = (
    b"Content-Length: -1",
    b"Content-Length: +5",
    b"Content-Length: 0x10",
    b"Content-Length: 1e3",
    b"Content-Length: 5, 5",
    b"Content-Length: " + b"9" * 30,
    b"Content-Length: 2147483648",
    b"Content-Length: ",
    b"Content-Length: 3\r\nContent-Length: 4",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: " + CANARY,
    b"Transfer-Encoding : chunked",
    b"Content-Type: text/" + CANARY,
    b"Content-Type: application/json",
    b"Content-Type:",
    b"Content-Type: application/proto; charset=\xff",
    b"Content-Encoding: gzip",
    b"Content-Encoding: " + CANARY,
    b"Connect-Protocol-Version: 2",
    b"Connect-Protocol-Version: " + CANARY,
    b"Connect-Timeout-Ms: 0",
    b"Connect-Timeout-Ms: -5",
    b"Connect-Timeout-Ms: \xd9\xa3",
    b"Connect-Timeout-Ms: 99999999999",
    b"Expect: 100-continue",
    b"Expect: " + CANARY,
    b"Upgrade: h2c\r\nConnection: Upgrade",
    b"Upgrade: websocket\r\nConnection: Upgrade",
    b"Connection: close",
    b"Connection: " + CANARY,
    b"Host:",
    b"Host: a\r\nHost: b",
    b"no colon " + CANARY,
    b": no name",
    b"N\0ul: x",
    b"X: \0",
    b"X: " + b"y" * 20_000,
    b"\r\n".join(b"X%d: y" % n for n in range(1000)),
    b"X: a\r\n folded",
    b"Cookie: " + CANARY + b'="\\',
    b'If-None-Match: "' + CANARY,
    b"Authorization: " + CANARY,
)
VERSIONS = (
    b"HTTP/1.0",
    b"HTTP/0.9",
    b"HTTP/2.0",
    b"HTTP/9.9",
    b"HTTP/1.1 ",
    b"HTP/1.1",
    b"",
    b"http/1.1",
    b"HTTP/1." + b"1" * 50,
)
CHUNKED = (
    b"5\r\nhello\r\n0\r\n\r\n",
    b"zz\r\n",
    b"-1\r\n",
    b"5\r\nhel",
    b"ffffffffffffffff\r\nx",
    b"5;" + b"e" * 9000 + b"\r\nhello\r\n0\r\n\r\n",
    b"0\r\nTrailer: " + CANARY + b"\r\n\r\n",
    b"5\r\nhelloX\r\n",
    b"5\nhello\n0\n\n",
    b"1\r\na\r\n" * 3000 + b"0\r\n\r\n",
)


def request(path, body, method=b"POST", version=b"HTTP/1.1", headers=(), length=None):
    """One request as it stands on the wire."""
    given = b"".join(header + b"\r\n" for header in headers)
    size = b"Content-Length: %d\r\n" % (len(body) if length is None else length)
    size = b"" if b"content-length" in given.lower() or b"transfer-encoding" in given.lower() else size
    kind = b"" if b"content-type" in given.lower() else b"Content-Type: application/proto\r\n"
    return b"%s %s %s\r\nHost: localhost\r\n%s%s%s\r\n" % (method, path, version, kind, size, given) + body


class HttpMutator:
    """Spoils what stands around a body; a list of bytes to send and seconds to pause."""

    def __init__(self):
        self._bytes = Mutator(70_000)
        self.random = self._bytes.random
        self._ways = (
            self._method, self._path, self._artifact, self._headers, self._headers, self._version, self._chunked,
            self._length, self._too_large, self._slow, self._garbage, self._flipped, self._pipelined, self._broken_off,
        )  # fmt: skip

    def mutate(self, path, body):
        """One of the ways; the generator's state decides."""
        return self.random.choice(self._ways)(path, body)

    def _method(self, path, body):
        return [request(path, body, method=self.random.choice(METHODS))]

    def _path(self, path, body):
        return [request(self.random.choice(PATHS), body, method=self.random.choice((b"POST", b"GET")))]

    def _artifact(self, path, body):
        ranges = [b"Range: " + self.random.choice(RANGES), b'If-Range: "x"', b"If-None-Match: *"]
        chosen = self.random.sample(ranges, self.random.randrange(3))
        return [request(ARTIFACT + self.random.choice(ARTIFACT_PATHS), b"", b"GET", headers=chosen)]

    def _headers(self, path, body):
        return [request(path, body, headers=self.random.sample(HEADERS, self.random.choice((1, 1, 2, 4))))]

    def _version(self, path, body):
        return [request(path, body, version=self.random.choice(VERSIONS))]

    def _chunked(self, path, body):
        return [request(path, self.random.choice(CHUNKED), headers=[b"Transfer-Encoding: chunked"])]

    def _length(self, path, body):
        """More or fewer bytes announced than come."""
        return [request(path, body, length=max(len(body) + self.random.choice((-1, -5, 1, 5, 500)), 0))]

    def _too_large(self, path, body):
        if self.random.random() < 0.5:
            return [request(path, CANARY * 2000, length=self.random.choice((10**6, 10**9, 10**15)))]
        chunk = b"%x\r\n%s\r\n" % (8192, b"z" * 8192)
        return [request(path, b"", headers=[b"Transfer-Encoding: chunked"]), *[chunk] * 12, b"0\r\n\r\n"]

    def _slow(self, path, body):
        whole = request(path, body + b"\0" * 8, headers=[b"Connect-Timeout-Ms: %d" % self.random.choice((1, 20, 100))])
        cut = len(whole) - self.random.randrange(1, 8)
        return [whole[:cut], 0.15, whole[cut:]]

    def _garbage(self, path, body):
        first = self.random.choice(
            (b"", b"\x16\x03\x01", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\r\n" * 50, b"\0" * 100)
        )
        return [first + self.random.randbytes(self.random.choice((1, 30, 3000)))]

    def _flipped(self, path, body):
        return [self._bytes.mutate(self.random.getrandbits(60), request(path, body))]

    def _pipelined(self, path, body):
        return [request(path, body) * self.random.choice((2, 5, 20))]

    def _broken_off(self, path, body):
        whole = request(path, body)
        return [whole[: self.random.randrange(len(whole))]]
