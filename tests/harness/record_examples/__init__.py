"""One small record of each kind, as its command would write it."""

from tests.harness.record_examples import audited, papers, scales, timings, training

EXAMPLES = {
    name: example for part in (training, timings, audited, papers, scales) for name, example in part.EXAMPLES.items()
}
