"""A device that never gives back what a fit took."""

import json
import sys

import stock

kept = []
device = stock.load()
honest_fit = device.fit


def fit(client):
    honest_fit(client)
    kept.append(b"\x01" * 16 * 2**20)


device.fit = fit
device.main(json.loads(sys.argv[1]))
