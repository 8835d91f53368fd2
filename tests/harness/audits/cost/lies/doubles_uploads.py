"""A device that sends as many bytes again as its upload needs, in a field that no server knows."""

import json
import sys

import stock

from lightfr._wire.channel import Channel

honest_call = Channel.call


def call(channel, method, request, limit_bytes):
    if method.endswith("/Upload"):
        # Field 1,000, of bytes: its tag, its length as a varint of two bytes, and the padding.
        length = len(request)
        request += bytes([0xC2, 0x3E, length & 0x7F | 0x80, length >> 7]) + bytes(length)
    return honest_call(channel, method, request, limit_bytes)


Channel.call = call
stock.load().main(json.loads(sys.argv[1]))
