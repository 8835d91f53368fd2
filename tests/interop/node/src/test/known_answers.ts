// The known answers of vectors/v1: bytes are hexadecimal digits.
import { readFileSync } from "node:fs";

const folder = new URL("../../../../../vectors/v1/", import.meta.url);

export const readVector = (name: string): Buffer => readFileSync(new URL(name, folder));
/** Vectors have many shapes; a wrong one fails its test. */
export const vector = (name: string): any => JSON.parse(readVector(`${name}.json`).toString());
export const bytes = (hex: string): Buffer => Buffer.from(hex, "hex");
