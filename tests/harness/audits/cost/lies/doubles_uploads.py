"""A device that sends as many bytes again as its upload needs, in a field that no server knows."""

import json
import sys

import stock

from lightfr._wire import coordinator

honest_upload = coordinator.encode_upload


def encode_upload(*arguments):
    request = honest_upload(*arguments)
    # Field 1,000, of bytes: its tag, its length as a varint of two bytes, and the padding.
    length = len(request)
    return request + bytes([0xC2, 0x3E, length & 0x7F | 0x80, length >> 7]) + bytes(length)


coordinator.encode_upload = encode_upload
stock.load().main(json.loads(sys.argv[1]))
