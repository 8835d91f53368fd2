"""Writes every file of vectors/v1 anew: python -m tests.vectors."""

from tests.vectors import (
    generate_aggregation,
    generate_agreement,
    generate_artifacts,
    generate_catalogue,
    generate_cohorts,
    generate_device,
    generate_enrollment,
    generate_evaluation,
    generate_manifest,
    generate_messages,
    generate_plausible,
    generate_refusals,
    generate_round,
    generate_secagg,
    generate_secagg_bad,
    generate_server,
    generate_sums,
)
from tests.vectors.plain import FOLDER, as_text

GENERATORS = (
    generate_device,
    generate_evaluation,
    generate_aggregation,
    generate_server,
    generate_plausible,
    generate_cohorts,
    generate_artifacts,
    generate_catalogue,
    generate_manifest,
    generate_messages,
    generate_refusals,
    generate_enrollment,
    generate_sums,
    generate_secagg,
    generate_agreement,
    generate_round,
    generate_secagg_bad,
)


def files():
    """File name to bytes."""
    contents = {name: content for generator in GENERATORS for name, content in generator.vectors().items()}
    return {name: c if isinstance(c, bytes) else as_text(c).encode() for name, c in contents.items()}


if __name__ == "__main__":
    for name, content in files().items():
        (FOLDER / name).write_bytes(content)
