"""Adds a run of libFuzzer to the record, and prints both: python3 add_up.py RECORD TARGET SEED LOG."""

import json
import re
import sys
from pathlib import Path


def main(record, target, seed, log):
    path = Path(record)
    known = json.loads(path.read_text()) if path.exists() else {}
    runs = int(re.search(r"number_of_executed_units: *(\d+)", Path(log).read_text())[1])
    of_target = known.setdefault(target, {"runs": 0, "seeds": []})
    of_target["runs"] += runs
    of_target["seeds"] += [seed] if seed not in of_target["seeds"] else []
    path.write_text(json.dumps(known, indent=1) + "\n")
    print(f"{target}: {runs} runs, nothing found; {of_target['runs']} in {path}")


if __name__ == "__main__":
    main(*sys.argv[1:])
