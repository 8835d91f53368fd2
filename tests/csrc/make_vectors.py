"""Turns what the kernel computes of vectors/v1 into a C header: python3 make_vectors.py FOLDER >vectors.h

Needs nothing but Python. The types of the cases are in vector_cases.h.
"""

import json
import sys
from pathlib import Path

INTEGERS = {"uint8_t", "uint16_t", "uint32_t", "int8_t", "int32_t", "int64_t"}


class Header:
    """C source that grows: arrays, and lists of cases that point to them."""

    def __init__(self, folder):
        self.folder, self.lines, self.arrays = folder, ["/* Made by make_vectors.py; not to be edited. */"], 0

    def load(self, name):
        return json.loads((self.folder / f"{name}.json").read_text())

    def array(self, kind, values):
        """Put an array there and return its name. Nested lists are flat in C; an empty one has an element too many."""
        assert kind in INTEGERS
        self.arrays += 1
        name = f"array_{self.arrays}"
        literal = ",".join(f"INT64_C({v})" if kind == "int64_t" else str(v) for v in flat(values)) or "0"
        self.lines.append(f"static const {kind} {name}[] = {{{literal}}};")
        return name

    def octets(self, digits):
        return self.array("uint8_t", list(bytes.fromhex(digits)))

    def cases(self, kind, cases):
        """Put a list of structs there: static const KIND KINDs[]."""
        rows = ",\n".join("  {" + ", ".join(f".{name} = {value}" for name, value in c.items()) + "}" for c in cases)
        self.lines.append(f"static const {kind} {kind}s[] = {{\n{rows}\n}};")


def flat(values):
    for value in values:
        if isinstance(value, list):
            yield from flat(value)
        else:
            yield value


def fields(content):
    """Number to content of a protobuf message: a varint as a number, anything else as bytes."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value, shift, at = value | (content[at] & 127) << shift, shift + 7, at + 1
            if content[at - 1] < 128:
                return value

    while at < len(content):
        tag = varint()
        value = varint()
        if tag & 7 == 2:
            value, at = content[at : at + value], at + value
        found[tag >> 3] = value
    return found


def code_cases(header):
    return [
        {"n": len(c["signs"]), "signs": header.array("int8_t", c["signs"]), "code": header.octets(c["code"])}
        for c in header.load("codes")["codes"]
    ]


def hamming_cases(header):
    return [
        {
            "code_bits": c["code_bits"],
            "n_items": c["item_count"],
            "codes": header.octets(c["codes"]),
            "query": header.octets(c["query"]),
            "excluded": header.octets(c["excluded"]),
            "k": c["k"],
            "distances": header.array("uint16_t", c["distances"]),
            "n_best": len(c["best"]),
            "best": header.array("uint32_t", c["best"]),
        }
        for c in header.load("hamming")
    ]


def gram_cases(header):
    return [
        {
            "code_bits": c["code_bits"],
            "n_items": c["item_count"],
            "codes": header.octets(c["codes"]),
            "gram": header.array("int64_t", c["gram"]),
            "column_sums": header.array("int64_t", c["column_sums"]),
        }
        for c in header.load("gram")
    ]


def start_of(header, start):
    codes = ", ".join(header.octets(start[name]) for name in ("start", "after_one_sweep", "code"))
    return f"{{{codes}, {start['sweeps']}, INT64_C({start['loss']})}}"


def fit_cases(header):
    return [
        {
            "name": json.dumps(c["name"]),
            "code_bits": c["code_bits"],
            "n_items": c["item_count"],
            "n_rated": len(c["rated_oldest_first"]),
            "max_sweeps": c["max_sweeps"],
            "codes": header.octets(c["codes"]),
            "old_code": header.octets(c["old_code"]),
            "rated": header.array("uint32_t", c["rated_oldest_first"]),
            "weights": header.array("uint16_t", c["weights"]),
            "targets": header.array("int32_t", c["targets"]),
            "mean_pull": header.array("int64_t", c["mean_pull"]),
            "linear": header.array("int64_t", c["linear"]),
            "quadratic": header.array("int64_t", c["quadratic"]) if c["quadratic"] else "NULL",
            "from_old": start_of(header, c["from_old_code"]),
            "from_linear": start_of(header, c["from_linear_signs"]),
        }
        for c in header.load("user_fit")["cases"]
    ]


def paper_cases(header):
    """One for each device of each round."""
    return [
        {
            "code_bits": c["code_bits"],
            "n_items": c["item_count"],
            "n_rated": len(d["rated"]),
            "balance": c["balance"],
            "codes": header.octets(c["codes"]),
            "rated": header.array("uint32_t", d["rated"]),
            "levels": header.array("int32_t", d["levels"]),
            "old_code": header.octets(d["old_code"]),
            "for_round": header.octets(d["fitted_for_round"]),
            "for_use": header.octets(d["fitted_for_use"]),
            "gradients": header.array("int32_t", d["gradients"]),
        }
        for c in header.load("paper")["rounds"]
        for d in c["devices"]
    ]


def gradient_cases(header):
    return [
        {
            "code_bits": c["code_bits"],
            "n_rows": len(c["gradients"]),
            "target": c["target"],
            "rows": header.octets(c["rows"]),
            "user_code": header.octets(c["user_code"]),
            "gradients": header.array("int32_t", c["gradients"]),
        }
        for c in header.load("gradients")
    ]


def ternary_cases(header):
    return [
        {
            "n": len(c["gradients"]),
            "full": c["full"],
            "gradients": header.array("int32_t", c["gradients"]),
            "random": header.octets(c["random"]),
            "nonzero": header.octets(c["nonzero"]),
            "positive": header.octets(c["positive"]),
        }
        for c in header.load("ternary")
    ]


def upload_of(header, digits):
    update = fields(bytes.fromhex(digits))
    planes = fields(update[3])
    indices = update.get(2, b"")
    numbers = [int.from_bytes(indices[at : at + 4], "little") for at in range(0, len(indices), 4)]
    parts = (header.array("uint8_t", list(content)) for content in (planes.get(1, b""), planes.get(2, b""), update[6]))
    return f"{{{len(numbers)}, {header.array('uint32_t', numbers)}, {', '.join(parts)}}}"


def round_cases(header):
    """Rounds of aggregation.json, in order: each goes on where the one before ended."""
    known = header.load("aggregation")
    assert (known["code_bits"], known["item_count"]) == (32, 80)
    header.lines.append(f"static const uint8_t* const first_codes = {header.octets(known['codes'])};")
    return [
        {
            "uploads": "{" + ", ".join(upload_of(header, digits) for digits in one["uploads"]) + "}",
            "codes": header.octets(one["codes"]),
            "memory": header.array("int32_t", one["memory"]),
        }
        for one in known["rounds"]
    ]


def term_cases(header):
    return [
        {
            "n": c["item_count"] * c["code_bits"],
            "sums": header.array("int32_t", c["sums"]),
            "codes": header.octets(c["codes"]),
            "codes_after": header.octets(c["codes_after"]),
        }
        for c in header.load("catalogue_term")
    ]


def block_cases(header):
    """The blocks of secagg_mask.json, each with its own piece of the packed bytes."""
    known, at, cases = header.load("secagg_mask"), 0, []
    for (_, n, bits), values, mask in zip(known["blocks"], known["vector"], known["mask"], strict=True):
        size, length = 2 if bits <= 16 else 4, (n * bits + 7) // 8
        piece = slice(2 * at, 2 * (at + length))
        stream = b"".join(number.to_bytes(size, "little") for number in mask)
        case = {"n": n, "bits": bits, "values": header.array("int32_t", values), "stream": header.octets(stream.hex())}
        packed = {name: header.octets(known[f"packed_{name}"][piece]) for name in ("plain", "plus", "minus")}
        cases.append({**case, **packed})
        at += length
    return cases


def count_cases(header):
    """A gate refresh: packed counts of seven devices, and their sum."""
    known = header.load("gate")
    (_, n, bits), packed = known["blocks"][0], known["packed"]
    total = header.array("uint16_t", [count % 2**bits for count in known["sum"]])
    return [{"n": n, "bits": bits, "n_devices": len(packed), "packed": header.octets("".join(packed)), "sum": total}]


KINDS = {
    "code_case": code_cases,
    "hamming_case": hamming_cases,
    "gram_case": gram_cases,
    "fit_case": fit_cases,
    "paper_case": paper_cases,
    "gradient_case": gradient_cases,
    "ternary_case": ternary_cases,
    "round_case": round_cases,
    "term_case": term_cases,
    "block_case": block_cases,
    "count_case": count_cases,
}


def main():
    header = Header(Path(sys.argv[1]))
    for kind, cases_of in KINDS.items():
        header.cases(kind, cases_of(header))
    print("\n".join(header.lines))


if __name__ == "__main__":
    main()
