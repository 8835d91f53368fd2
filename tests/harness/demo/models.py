"""A model as a device keeps it, trained in this process: far cheaper than a coordinator and its devices."""

from contextlib import closing

from lightfr_harness.server.authority import Authority
from lightfr_harness.server.authority.credentials import Credentials
from lightfr_harness.server.coordinator.accuracy import about_ranking
from lightfr_harness.server.coordinator.publishing import Publisher
from lightfr_harness.simulation.options import TrainOptions
from lightfr_harness.simulation.train import load_split, make_run


def trained_model(folder, **options):
    """Train as these TrainOptions say, and publish; the folder of models, and the file of the key that signed it."""
    options = TrainOptions(**options)
    run = make_run(options, load_split(options).train)
    for _ in run:
        pass
    with closing(Authority.init(folder / "authority", ["localhost"])) as authority:
        publisher, signer = Publisher(folder), Credentials(authority.coordinator)
        parts = [publisher.put_catalogue(load_split(options).train.item_ids)]
        # As the demo's coordinator, which does not evaluate.
        ranking = about_ranking(run.server, [], is_day_zero=False)
        signed = signer.sign(publisher.publish(run.server, 1, 0, parts, about_ranking=ranking))
        (publisher.artifacts / "current").write_bytes(signed.SerializeToString())
        return publisher.artifacts, authority.coordinator / "trust.pem"
