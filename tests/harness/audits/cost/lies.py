"""Devices that lie, each a function that lives the stock device's session with one thing changed."""

import json
import sys
import time

from tests.harness.devices.planted import stock_device

MIB = 2**20
SLEEP_SECONDS = 0.9


def _live(device):
    device.main(json.loads(sys.argv[1]))


def doubles_uploads():
    """Send as many bytes again as an upload needs, in a field that no server knows."""
    from lightfr._wire import coordinator

    honest = coordinator.encode_upload

    def encode_upload(*arguments):
        request = honest(*arguments)
        # Field 1,000, of bytes: its tag, its length as a varint of two bytes, and the padding.
        length = len(request)
        return request + bytes([0xC2, 0x3E, length & 0x7F | 0x80, length >> 7]) + bytes(length)

    coordinator.encode_upload = encode_upload
    _live(stock_device())


def leaks_in_fit():
    """Never give back what a fit took."""
    kept, device = [], stock_device()
    honest = device.fit

    def fit(client):
        honest(client)
        kept.append(b"\x01" * (16 * MIB))

    device.fit = fit
    _live(device)


def sleeps_in_recommend():
    """Recommend late."""
    from lightfr import Client

    honest = Client.recommend

    def recommend(client, *arguments, **named):
        time.sleep(SLEEP_SECONDS)
        return honest(client, *arguments, **named)

    Client.recommend = recommend
    _live(stock_device())
