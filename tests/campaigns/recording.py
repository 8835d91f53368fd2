"""What came of a campaign, as JSON."""

import json


def write_record(options, came_of_it):
    """Write options and outcome, if a record is asked for."""
    if options.record:
        asked = {name: value for name, value in vars(options).items() if name != "record"}
        options.record.parent.mkdir(parents=True, exist_ok=True)
        options.record.write_text(json.dumps({**asked, **came_of_it}, indent=1) + "\n")
