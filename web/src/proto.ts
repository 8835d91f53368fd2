// A reader of protobuf messages: exactly the kinds of field that a manifest has. Unknown fields are passed over.
import { type Bytes, concat } from "./bytes.js";

/** Thrown for bytes that are no message. Whoever reads a message says what was refused. */
export class MalformedMessage extends Error {}

/** A field: its kind, or the message that it holds; in a list where it is repeated. */
type Kind = "uint32" | "uint64" | "int32" | "bool" | "bytes" | "string" | Schema;
export interface Schema {
  readonly [fieldNumber: number]: readonly [name: string, kind: Kind, repeated?: "repeated"];
}

type Value = number | bigint | boolean | Bytes | string | Message;
export interface Message {
  [name: string]: Value | Value[] | undefined;
}

const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const GROUP = 3;
const END_GROUP = 4;
const FIXED32 = 5;
const MOST_DEPTH = 100;
const MOST_FIELD_NUMBER = 2 ** 29 - 1;

class Cursor {
  at = 0;
  constructor(readonly bytes: Bytes) {}

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.take(1)[0];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asUintN(64, value);
    }
    throw new MalformedMessage("a number has more than ten bytes");
  }

  take(length: number): Bytes {
    if (length > this.bytes.length - this.at) throw new MalformedMessage("it ends within a field");
    return this.bytes.subarray(this.at, (this.at += length));
  }

  tag(): [fieldNumber: number, wireType: number] {
    const tag = Number(this.varint());
    const fieldNumber = Math.floor(tag / 8);
    if (fieldNumber < 1 || fieldNumber > MOST_FIELD_NUMBER) throw new MalformedMessage("a field has no number");
    return [fieldNumber, tag % 8];
  }

  /** Passes over what follows a tag. */
  skip(fieldNumber: number, wireType: number, depth = 0): void {
    if (wireType === VARINT) this.varint();
    else if (wireType === FIXED64) this.take(8);
    else if (wireType === LENGTH) this.take(Number(this.varint()));
    else if (wireType === FIXED32) this.take(4);
    else if (wireType === GROUP && depth < MOST_DEPTH) this.#skipGroup(fieldNumber, depth);
    else throw new MalformedMessage("a field has an unknown type");
  }

  #skipGroup(groupNumber: number, depth: number): void {
    for (;;) {
      const [fieldNumber, wireType] = this.tag();
      if (wireType === END_GROUP && fieldNumber === groupNumber) return;
      this.skip(fieldNumber, wireType, depth + 1);
    }
  }
}

/** Reads a message; a field that comes again replaces the one before, is merged into it, or is appended, as in proto3. */
export function decode(schema: Schema, bytes: Bytes, into: Message = {}): Message {
  const cursor = new Cursor(bytes);
  while (cursor.at < bytes.length) {
    const [fieldNumber, wireType] = cursor.tag();
    const [name, kind, repeated] = schema[fieldNumber] ?? ["", "bool"];
    const isVarint = kind === "uint32" || kind === "uint64" || kind === "int32" || kind === "bool";
    const isPacked = repeated !== undefined && isVarint && wireType === LENGTH;
    if (name === "" || !(isPacked || wireType === (isVarint ? VARINT : LENGTH))) cursor.skip(fieldNumber, wireType);
    else if (isPacked) readPacked(cursor, kind, listOf(into, name));
    else if (repeated) listOf(into, name).push(read(cursor, kind));
    else into[name] = read(cursor, kind, into[name] as Message | undefined);
  }
  return into;
}

function listOf(message: Message, name: string): Value[] {
  return (message[name] ??= []) as Value[];
}

function readPacked(cursor: Cursor, kind: Kind, list: Value[]): void {
  const packed = new Cursor(cursor.take(Number(cursor.varint())));
  while (packed.at < packed.bytes.length) list.push(read(packed, kind));
}

function read(cursor: Cursor, kind: Kind, before?: Message): Value {
  if (kind === "uint64") return cursor.varint();
  if (kind === "uint32") return Number(BigInt.asUintN(32, cursor.varint()));
  if (kind === "int32") return Number(BigInt.asIntN(32, cursor.varint()));
  if (kind === "bool") return cursor.varint() !== 0n;
  const content = cursor.take(Number(cursor.varint()));
  if (kind === "bytes") return concat(content);
  if (kind === "string") return decodeText(content);
  return decode(kind, content, before);
}

function decodeText(bytes: Bytes): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new MalformedMessage("a text is not UTF-8");
  }
}
