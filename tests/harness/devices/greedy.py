"""A device with a fault, run in place of the stock one: once it has its place in a round, it takes all the memory."""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
from planted import stock_device


class Greedy(stock_device()):
    def say(self, **facts):
        super().say(**facts)
        self.kept = [bytearray(b"x") * 2**20 for _ in range(256 if facts.get("stage") == "shares_sent" else 0)]


if __name__ == "__main__":
    Greedy(json.loads(sys.argv[1])).live()
