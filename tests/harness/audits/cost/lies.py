"""Devices that lie, each a function that lives the stock device's session with one thing changed."""

import json
import sys
import time

from tests.harness.devices.planted import stock_device

MIB = 2**20
SLEEP_SECONDS = 0.9


def _live(device):
    device(json.loads(sys.argv[1])).live()


def _padded(request):
    """As many bytes again, in a field that no server knows: field 1,000, its length as a varint, and the padding."""
    length, varint = len(request), b""
    while length > 0x7F:
        varint, length = varint + bytes([length & 0x7F | 0x80]), length >> 7
    return request + bytes([0xC2, 0x3E]) + varint + bytes([length]) + bytes(len(request))


def doubles_uploads():
    """Send as many bytes again as an upload in the clear needs."""
    from lightfr._wire import coordinator

    honest = coordinator.encode_upload
    coordinator.encode_upload = lambda *arguments: _padded(honest(*arguments))
    _live(stock_device())


def doubles_shares():
    """Send as many bytes again as the shares of a secure round need."""
    from lightfr._wire import secure

    honest = secure.encode_shares
    secure.encode_shares = lambda *arguments: _padded(honest(*arguments))
    _live(stock_device())


def leaks_in_fit():
    """Never give back what a fit took."""

    class Leaking(stock_device()):
        def fit(self):
            kept, honest = [], self._timed
            self._timed = lambda work, *rest: honest(lambda: (work(), kept.append(b"\x01" * (16 * MIB))), *rest)
            return super().fit()

    _live(Leaking)


def hoards_in_a_round():
    """Take far more memory than masks need, while the round is under way."""

    class Hoarding(stock_device()):
        def say(self, **facts):
            super().say(**facts)
            if facts.get("stage") == "shares_sent":
                self.kept = [bytearray(b"x") * MIB for _ in range(128)]

    _live(Hoarding)


def sleeps_in_recommend():
    """Recommend late."""
    from lightfr import Client

    honest = Client.recommend

    def recommend(client, *arguments, **named):
        time.sleep(SLEEP_SECONDS)
        return honest(client, *arguments, **named)

    Client.recommend = recommend
    _live(stock_device())
