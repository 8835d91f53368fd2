import numpy as np
import pytest

from lightfr import _wire, errors
from lightfr.v1 import model_pb2
from tests.helpers import make_model, random_signs

SIGNS = random_signs(20, 16, 0)
NOISY = {"privacy_mode": model_pb2.PRIVACY_MODE_SECAGG_DP, "upload_kind": model_pb2.UPLOAD_KIND_EXACT}
SECAGG = {"privacy_mode": model_pb2.PRIVACY_MODE_SECAGG, "max_rows": 64}


def noise_of(rows, sums, counts):
    return model_pb2.Noise(rows_thousandths=rows, sums_thousandths=sums, counts_thousandths=counts)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"objective": model_pb2.OBJECTIVE_UNSPECIFIED}, "objective"),
        ({"objective": 77}, "objective"),
        ({"upload_kind": model_pb2.UPLOAD_KIND_UNSPECIFIED}, "upload_kind"),
        ({"balance": 2**40, "objective": model_pb2.OBJECTIVE_PAPER}, "balance"),
        ({"balance": 1}, "balance belongs to objective PAPER"),
        ({"mean_user": bytes(30)}, "mean_user"),
        ({"mean_user": bytes(31)}, "mean_user"),
        ({"mean_user": np.full(16, 257, "<i2").tobytes()}, "mean_user leaves"),
        ({"noise": model_pb2.Noise(rows_thousandths=800)}, "noise belongs to mode SECAGG_DP"),
        (NOISY, "which cannot be without"),
        ({**SECAGG, "max_rows": 0}, "max_rows 1 to 64"),
        ({**SECAGG, "max_rows": 65}, "max_rows 1 to 64"),
        ({**SECAGG, "upload_kind": model_pb2.UPLOAD_KIND_EXACT}, "SECAGG sums ternary updates"),
        ({**SECAGG, "upload_kind": model_pb2.UPLOAD_KIND_CODES}, "SECAGG sums ternary updates"),
        ({**SECAGG, "objective": model_pb2.OBJECTIVE_PAPER}, "objective CATALOGUE alone"),
        ({**NOISY, "upload_kind": model_pb2.UPLOAD_KIND_TERNARY}, "SECAGG_DP exact ones"),
        ({**NOISY, "objective": model_pb2.OBJECTIVE_PAPER}, "objective CATALOGUE alone"),
        ({**NOISY, "noise": noise_of(499, 800, 800)}, "noise is not 500"),
        ({**NOISY, "noise": noise_of(800, 1_000_001, 800)}, "noise is not 500"),
        ({**NOISY, "noise": noise_of(800, 800, 0)}, "noise is not 500"),
    ],
)
def test_a_model_that_breaks_the_protocol_is_refused_with_the_reason(fields, reason):
    with pytest.raises(errors.ProtocolError, match=reason):
        make_model(SIGNS, **fields)


@pytest.mark.parametrize("field", ["code_bits", "item_count"])
def test_a_model_of_other_codes_is_refused(field):
    from lightfr import ItemCodes
    from lightfr.training import PublishedModel

    message = model_pb2.RoundModel(code_bits=16, item_count=20, objective=1, upload_kind=1)
    setattr(message, field, 24)
    with pytest.raises(errors.ProtocolError, match=field):
        PublishedModel(ItemCodes(bytes(40), 16), message)


def test_bytes_that_are_no_message_are_refused_with_their_number():
    with pytest.raises(errors.ProtocolError, match="3 bytes are not a RoundModel"):
        _wire.decode_round_model(b"\xff\xff\xff")


def test_a_decoded_model_is_the_one_that_was_encoded():
    message = model_pb2.RoundModel(code_bits=16, item_count=20, max_rows=5)
    assert _wire.decode_round_model(message.SerializeToString()) == message


def test_noise_is_that_of_the_message_and_absent_without_its_mode():
    noise = noise_of(500, 1_000_000, 500)
    assert make_model(SIGNS, **NOISY, noise=noise).noise == noise
    assert make_model(SIGNS, **SECAGG).noise is None


@pytest.mark.parametrize("max_rows", [1, 64])
def test_a_model_of_mode_secagg_has_room_for_1_to_64_rows(max_rows):
    assert make_model(SIGNS, **{**SECAGG, "max_rows": max_rows}).max_rows == max_rows
