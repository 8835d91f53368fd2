"""Runs the conformance suite against two replicas behind HAProxy, on one PostgreSQL, with each kit.

python -m tests.campaigns.conformance_replicas [--kit clear --kit secagg ...]
"""

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from typer.testing import CliRunner

from lightfr_harness.cli import app
from lightfr_harness.conformance.kit import make_kit
from lightfr_harness.conformance.vectors import DEFAULT_FOLDER, Vectors
from lightfr_harness.server.coordinator.child import AuthorityProcess, CoordinatorProcess
from tests.haproxy import Balancer
from tests.postgres import Postgres

KITS = ("clear", "exact", "paper", "codes", "secagg", "crowd", "gate", "noise", "evaluation")


def run(kind, postgres, folder, only=()):
    """The cases of one kit that did not pass, and how many there are."""
    kit = make_kit(folder / "kit", kind, "localhost", Vectors.read(DEFAULT_FOLDER))
    shared = {
        "database": postgres.database(),
        "credentials": kit.authority / "coordinator",
    }
    report = folder / "report.json"
    with ExitStack() as stack:
        authority = stack.enter_context(AuthorityProcess(kit.authority))
        replicas = [
            stack.enter_context(
                CoordinatorProcess(
                    folder / f"replica-{i}", None, kit.folder / "items.tsv", **kit.serve_options(), **shared
                )
            )
            for i in range(2)
        ]
        balancer = Balancer(folder, [urlsplit(one.addresses["server"]).port for one in replicas])
        stack.callback(balancer.close)
        enrollment = authority.addresses["enrollment"].replace("127.0.0.1", "localhost")
        where = [f"https://localhost:{balancer.port}", "--enrollment", enrollment, "--kit", str(kit.folder)]
        arguments = ["conformance", *where, "--json", str(report), *(f"--only={one}" for one in only)]
        CliRunner().invoke(app, arguments, env={"COLUMNS": "100"})
    cases = json.loads(report.read_text())["cases"]
    return [one for one in cases if one["outcome"] != "passed"], len(cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kit", action="append", choices=KITS)
    parser.add_argument("--only", action="append", default=[])
    arguments = parser.parse_args()
    postgres, is_good = Postgres().start(), True
    try:
        for kind in arguments.kit or KITS:
            with tempfile.TemporaryDirectory() as folder:
                failed, total = run(kind, postgres, Path(folder), arguments.only)
            print(f"{kind}: {total - len(failed)} of {total} cases passed", flush=True)
            for one in failed:
                print(f"  {json.dumps(one)[:300]}", flush=True)
            is_good &= not failed
    finally:
        postgres.close()
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
