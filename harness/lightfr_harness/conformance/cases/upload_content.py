"""Uploads whose content the round did not ask for, one fault at a time, and odd ones that are legal."""

from __future__ import annotations

import struct
from collections.abc import Callable

from lightfr.v1 import update_pb2
from lightfr_harness.conformance.cases.upload import upload_case
from lightfr_harness.conformance.expectations import expect_equal
from lightfr_harness.conformance.registry import CLEAR_KITS
from lightfr_harness.conformance.versions import require_twin
from lightfr_harness.conformance.world import World

PLACE = "docs/protocol.md#what-a-server-must-refuse"
Spoil = Callable[[update_pb2.RowUpdate], None]
ROWS = 3


def _indices(*rows: int) -> bytes:
    return struct.pack(f"<{len(rows)}I", *rows)


def _code_bits(update: update_pb2.RowUpdate) -> None:
    update.code_bits = 64


def _no_code_bits(update: update_pb2.RowUpdate) -> None:
    update.ClearField("code_bits")


def _half_index(update: update_pb2.RowUpdate) -> None:
    update.item_indices += b"\0\0"


def _repeated_index(update: update_pb2.RowUpdate) -> None:
    update.item_indices = _indices(4, 4, 9)


def _descending(update: update_pb2.RowUpdate) -> None:
    update.item_indices = _indices(4, 9, 7)


def _beyond(update: update_pb2.RowUpdate) -> None:
    update.item_indices = _indices(4, 9, 80)


def _far_beyond(update: update_pb2.RowUpdate) -> None:
    update.item_indices = _indices(4, 9, 2**32 - 1)


def _closed(update: update_pb2.RowUpdate) -> None:
    update.item_indices = _indices(4, 9, 72)


def _one_index_less(update: update_pb2.RowUpdate) -> None:
    update.item_indices = _indices(4, 9)


def _ternary(update: update_pb2.RowUpdate) -> None:
    update.ternary.CopyFrom(update_pb2.TernaryRows(nonzero=bytes(4 * ROWS), positive=bytes(4 * ROWS)))


def _exact(update: update_pb2.RowUpdate) -> None:
    update.exact.gradients = bytes(4 * 32 * ROWS)


def _codes(update: update_pb2.RowUpdate) -> None:
    update.codes.codes = bytes(4 * ROWS)


def _no_rows(update: update_pb2.RowUpdate) -> None:
    update.ClearField("rows")


def _no_rows_and_no_indices(update: update_pb2.RowUpdate) -> None:
    update.ClearField("rows")
    update.ClearField("item_indices")


def _nonzero_short(update: update_pb2.RowUpdate) -> None:
    update.ternary.nonzero = update.ternary.nonzero[:-1]


def _nonzero_long(update: update_pb2.RowUpdate) -> None:
    update.ternary.nonzero += b"\0"


def _positive_short(update: update_pb2.RowUpdate) -> None:
    update.ternary.positive = update.ternary.positive[:-1]


def _positive_long(update: update_pb2.RowUpdate) -> None:
    update.ternary.positive += b"\0"


def _positive_of_zero(update: update_pb2.RowUpdate) -> None:
    # The last element of the last row is zero and positive at once.
    nonzero, positive = bytearray(update.ternary.nonzero), bytearray(update.ternary.positive)
    nonzero[-1] &= 0x7F
    positive[-1] |= 0x80
    update.ternary.nonzero, update.ternary.positive = bytes(nonzero), bytes(positive)


def _gradients_short(update: update_pb2.RowUpdate) -> None:
    update.exact.gradients = update.exact.gradients[:-4]


def _gradients_long(update: update_pb2.RowUpdate) -> None:
    update.exact.gradients += b"\0"


def _codes_short(update: update_pb2.RowUpdate) -> None:
    update.codes.codes = update.codes.codes[:-1]


def _codes_long(update: update_pb2.RowUpdate) -> None:
    update.codes.codes += b"\0"


def _user_code(update: update_pb2.RowUpdate) -> None:
    update.user_code = bytes(4)


def _user_code_short(update: update_pb2.RowUpdate) -> None:
    update.user_code = update.user_code[:-1]


def _user_code_long(update: update_pb2.RowUpdate) -> None:
    update.user_code += b"\0"


def _no_user_code(update: update_pb2.RowUpdate) -> None:
    update.ClearField("user_code")


# Faults by the kits in which they are some.
FAULTS: dict[tuple[str, ...], dict[str, tuple[Spoil, str]]] = {
    CLEAR_KITS: {
        "other-code-bits": (_code_bits, "Codes of another length belong to another model."),
        "no-code-bits": (_no_code_bits, "An upload says for which code length it is."),
        "half-an-index": (_half_index, "Indices are whole numbers of four bytes."),
        "repeated-row": (_repeated_index, "A row sent twice would count twice."),
        "descending-rows": (_descending, "Rows in another order could hide a row that is sent twice."),
        "row-beyond-the-matrix": (_beyond, "A row outside the matrix must not be written to."),
        "row-far-beyond-the-matrix": (_far_beyond, "The largest index must not wrap around to a row that there is."),
        "closed-row": (_closed, "The gate holds only if the server holds it too."),
        "more-rows-than-indices": (_one_index_less, "Rows without an index belong nowhere."),
        "no-rows-field": (_no_rows, "Indices without rows say nothing."),
        "nothing-at-all": (_no_rows_and_no_indices, "Not even an upload without rows may leave out its kind."),
    },
    ("exact", "paper", "codes"): {
        "ternary-rows": (_ternary, "Ternary rows where others were asked for are on another scale."),
    },
    ("clear", "codes"): {
        "exact-rows": (_exact, "Exact gradients tell far more than the round asked for."),
    },
    ("clear", "exact", "paper"): {
        "code-rows": (_codes, "Codes in the place of gradients are of another kind."),
    },
    ("clear",): {
        "short-nonzero": (_nonzero_short, "A plane that lacks a byte would be read beyond its end."),
        "long-nonzero": (_nonzero_long, "A plane with a byte too many is not what was asked for."),
        "short-positive": (_positive_short, "Both planes have the same size."),
        "long-positive": (_positive_long, "Both planes have the same size, the second too."),
        "positive-zero": (_positive_of_zero, "An element cannot be zero and positive."),
    },
    ("exact", "paper"): {
        "short-gradients": (_gradients_short, "Gradients that lack an element would be read beyond their end."),
        "long-gradients": (_gradients_long, "Gradients with a byte too many are not what was asked for."),
    },
    ("codes",): {
        "short-codes": (_codes_short, "Codes that lack a byte would be read beyond their end."),
        "long-codes": (_codes_long, "Codes with a byte too many are not what was asked for."),
    },
    ("clear", "exact"): {
        "short-user-code": (_user_code_short, "A user code that lacks a byte would shift the sums."),
        "long-user-code": (_user_code_long, "A user code with a byte too many is not what was asked for."),
        "no-user-code": (
            _no_user_code,
            "Without its user code an upload would count in one sum and lack in the others.",
        ),
    },
    ("paper", "codes"): {
        "user-code": (_user_code, "The paper's objective has no use for a user code, and it tells everything."),
    },
}


def _declare(fault: str, spoil: Spoil, why: str, kits: tuple[str, ...]) -> None:
    @upload_case(fault, why, PLACE, kits=kits)
    def refused(world: World) -> None:
        current = world.fresh_round()
        update = current.random_update(ROWS)
        spoil(update)
        current.send(current.first, current.request(update)).refusal("UPLOAD_INVALID")
        expect_equal("upload_count after a refused upload", current.status().upload_count, 0)


for _kits, _faults in FAULTS.items():
    for _fault, (_spoil, _why) in _faults.items():
        _declare(_fault, _spoil, _why, _kits)


@upload_case("too-many-rows", "The limit of rows bounds what one device can say.", PLACE)
def too_many_rows(world: World) -> None:
    current = world.fresh_round()
    update = current.random_update(world.kit.settings.max_rows + 1)
    current.send(current.first, current.request(update)).refusal("UPLOAD_INVALID")


@upload_case("masked-in-the-clear", "A masked vector cannot be added up in a round in the clear.", PLACE)
def masked_in_the_clear(world: World) -> None:
    current = world.fresh_round()
    request = current.request()
    request.masked_vector = bytes(100)
    current.send(current.first, request).refusal("UPLOAD_INVALID")


@upload_case("no-body", "An upload without a body is none.", PLACE)
def no_body(world: World) -> None:
    current = world.fresh_round()
    request = current.request()
    request.ClearField("body")
    current.send(current.first, request).refusal("UPLOAD_INVALID")


@upload_case(
    "good-after-refused", "A refused upload leaves the place: the device may send a good one.", kits=CLEAR_KITS
)
def good_after_refused(world: World) -> None:
    current = world.fresh_round()
    bad = current.random_update(ROWS)
    _half_index(bad)
    request = current.request(bad)
    current.send(current.first, request).refusal("UPLOAD_INVALID")
    current.upload(current.first, current.request(upload_id=request.upload_id))


@upload_case(
    "refused-counts-nothing",
    "Of a refused upload nothing may reach the sums, not its good rows either.",
    PLACE,
    kits=CLEAR_KITS,
)
def refused_counts_nothing(world: World) -> None:
    current = world.fresh_round()
    for device in world.devices(world.kit.settings.goal):
        if device not in current.placed:
            current.check_in(device)
        # Many good rows and one closed row at the end.
        bad = current.random_update(40)
        bad.item_indices = bad.item_indices[:-4] + _indices(79)
        current.send(device, current.request(bad)).refusal("UPLOAD_INVALID")
    require_twin(world, current.finish())


@upload_case("no-rows-at-all", "A device whose rated rows are all closed still weighs in the sums.", kits=CLEAR_KITS)
def no_rows_at_all(world: World) -> None:
    current = world.fresh_round()
    current.upload(current.first, current.request(current.random_update(0)))


@upload_case("most-rows", "An upload may have as many rows as the model says.", kits=CLEAR_KITS)
def most_rows(world: World) -> None:
    current = world.fresh_round()
    most = world.kit.settings.max_rows or sum(world.kit.open_rows)
    current.upload(current.first, current.request(current.random_update(most)))
