"""Prints lightfr_v1.h: the field numbers and enum values of every message in proto/lightfr/v1, for readers in plain C.

`make gen` runs it.
"""

import re

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from lightfr.v1 import coordinator_pb2, enrollment_pb2, error_pb2, manifest_pb2, model_pb2, secure_pb2, update_pb2

MODULES = (model_pb2, manifest_pb2, update_pb2, secure_pb2, coordinator_pb2, enrollment_pb2, error_pb2)
# Wire types of the field types that lightfr.v1 has; whatever is missing here raises KeyError.
VARINT, LENGTH_DELIMITED = 0, 2
WIRE_TYPES = {
    FieldDescriptorProto.TYPE_BOOL: VARINT,
    FieldDescriptorProto.TYPE_ENUM: VARINT,
    FieldDescriptorProto.TYPE_UINT32: VARINT,
    FieldDescriptorProto.TYPE_UINT64: VARINT,
    FieldDescriptorProto.TYPE_BYTES: LENGTH_DELIMITED,
    FieldDescriptorProto.TYPE_MESSAGE: LENGTH_DELIMITED,
    FieldDescriptorProto.TYPE_STRING: LENGTH_DELIMITED,
}
HEAD = """\
/*
 * The messages of lightfr.v1 for plain C: the number of each field, beside it the tag byte that stands before it on the
 * wire and its type, and the values of enums. Made by make_fields.py from proto/lightfr/v1, which says what they mean.
 */
#ifndef LIGHTFR_V1_H
#define LIGHTFR_V1_H

/* clang-format off */
"""


def constant(name: str) -> str:
    """Turn RoundModel into ROUND_MODEL."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


def type_of(field: FieldDescriptorProto) -> str:
    """The type as the .proto file writes it."""
    simple = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    repeated = "repeated " if field.label == FieldDescriptorProto.LABEL_REPEATED else ""
    return repeated + (field.type_name.rsplit(".", 1)[-1] or simple)


def tag_of(field: FieldDescriptorProto) -> int:
    """The byte before the field. Repeated numbers are packed in proto3."""
    repeated = field.label == FieldDescriptorProto.LABEL_REPEATED
    tag = field.number << 3 | (LENGTH_DELIMITED if repeated else WIRE_TYPES[field.type])
    if tag > 127:
        raise ValueError(f"field {field.name} has a tag of two bytes, which the comment cannot show")
    return tag


def enum_text(enum: EnumDescriptorProto) -> str:
    """The values of one enum."""
    values = "".join(f"  LFR_V1_{value.name} = {value.number},\n" for value in enum.value)
    return f"enum {{ /* enum {enum.name} */\n{values}}};\n"


def message_text(message: DescriptorProto) -> str:
    """The fields of one message."""
    prefix = f"LFR_V1_{constant(message.name)}"
    fields = "".join(
        f"  {prefix}_{field.name.upper()} = {field.number}, /* {tag_of(field):02x} {type_of(field)} */\n"
        for field in message.field
    )
    return f"enum {{ /* message {message.name} */\n{fields}}};\n"


def header() -> str:
    """The whole file."""
    parts = [HEAD]
    for module in MODULES:
        file = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        parts += map(enum_text, file.enum_type)
        parts += [message_text(message) for message in file.message_type if message.field]
    return "\n".join([*parts, "#endif\n"])


if __name__ == "__main__":
    print(header(), end="")
