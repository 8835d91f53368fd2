"""A device whose recommendations are late."""

import json
import sys
import time

import stock

from lightfr import Client

honest_recommend = Client.recommend


def recommend(client, *arguments, **named):
    time.sleep(0.9)
    return honest_recommend(client, *arguments, **named)


Client.recommend = recommend
stock.load().main(json.loads(sys.argv[1]))
