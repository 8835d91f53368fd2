"""The loss of a round is that of the numbers a device can really send."""

import numpy as np
import pytest

from lightfr import UserCode
from lightfr.errors import OutOfRangeError
from lightfr.interactions import Interactions
from lightfr.secagg.contribution import vector_without_noise
from lightfr.training import make_update
from lightfr.v1 import model_pb2
from lightfr_harness.simulation.accountant import Accountant
from lightfr_harness.simulation.fleet import stream
from lightfr_harness.simulation.loss import summed_discrete_gaussians
from tests.helpers import make_model, random_signs

NOISE = model_pb2.Noise(rows_thousandths=4000, sums_thousandths=30_000)


def test_a_round_is_its_rows_and_its_sums():
    rows = summed_discrete_gaussians(2000 * 64, 64 * 64, 64, 4, 500)
    sums = summed_discrete_gaussians(2080, 2080, np.sqrt(2080), 30, 500)
    accountant = Accountant(2000, 64, 64, NOISE, 500)
    assert accountant.round_loss() == rows + sums
    assert accountant.loss(10).rho == pytest.approx(10 * (rows + sums).rho)


def test_no_vector_of_a_device_is_longer_than_the_accountant_says():
    """Sensitivities by the SDK's own vectors, at the ends too: the user who rates more than may be uploaded."""
    model = make_model(random_signs(90, 16, 0), max_rows=40, privacy_mode=model_pb2.PRIVACY_MODE_SECAGG_DP, noise=NOISE)
    code = UserCode(stream("code")(2))
    update = make_update(model, Interactions((i, 0) for i in range(90)), code, bytes)  # zeros round every element up
    vector = vector_without_noise(model, update, 500)
    length = {b.name: int((np.array(vector[b.name]) ** 2).sum()) for b in vector.blocks}
    assert length["rows"] <= 40 * 16
    assert length["products"] + length["user_sum"] == 16 * 15 // 2 + 16
    assert length["rows"] > 0.9 * 40 * 16
    assert Accountant(90, 16, 40, NOISE, 500).round_loss().rho == pytest.approx(
        (40 * 16 / 16 + 136 / 900) / (2 * 500), rel=1e-6
    )


def test_fewer_open_rows_than_may_be_uploaded_bound_the_loss():
    assert Accountant(10, 64, 64, NOISE, 500).round_loss().rho < Accountant(64, 64, 64, NOISE, 500).round_loss().rho


def test_a_round_without_honest_devices_has_no_noise():
    with pytest.raises(OutOfRangeError, match="honest_devices is 0"):
        Accountant(10, 64, 64, NOISE, 0)
