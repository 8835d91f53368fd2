// The C kernel as WebAssembly. csrc/lfr.h is its contract; C allocates nothing, so the memory is laid out here.
import { KernelError, LightFRError, UnsupportedBrowserError } from "./errors.js";

const PAGE_BYTES = 65_536;
const ALIGNMENT = 16;
const LFR_OK = 0;

/** The smallest module with an instruction of 128-bit SIMD. */
const SIMD_PROBE = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
]);

type KernelFunction =
  | "lfr_topk_open"
  | "lfr_distances"
  | "lfr_gather"
  | "lfr_open_count"
  | "lfr_open_rows"
  | "lfr_gram_open"
  | "lfr_fit_prepare"
  | "lfr_fit_start"
  | "lfr_fit_sweep"
  | "lfr_refine_open";

type Exports = Record<KernelFunction, (...args: number[]) => number> & {
  memory: WebAssembly.Memory;
  __heap_base: WebAssembly.Global;
};

/** The compiled kernel. One is enough for a page. */
export class Kernel {
  readonly #module: WebAssembly.Module;

  private constructor(module: WebAssembly.Module) {
    this.#module = module;
  }

  /** Loads the kernel that lies beside this file, with SIMD where the browser has it; or the one that is passed in. */
  static async load(source?: BufferSource): Promise<Kernel> {
    if (typeof WebAssembly !== "object") throw new UnsupportedBrowserError("WebAssembly");
    const code = source ?? (await Kernel.#fetch());
    try {
      return new Kernel(await WebAssembly.compile(code));
    } catch (error) {
      // It is something else, or the page's content security policy forbids to compile it.
      throw new LightFRError(`the kernel could not be compiled: ${(error as Error).name}`);
    }
  }

  static async #fetch(): Promise<ArrayBuffer> {
    const address = WebAssembly.validate(SIMD_PROBE)
      ? new URL("./kernel.simd.wasm", import.meta.url)
      : new URL("./kernel.plain.wasm", import.meta.url);
    let what = "cannot be reached";
    try {
      const answer = await fetch(address);
      if (answer.ok) return await answer.arrayBuffer();
      what = `gave ${answer.status}`;
    } catch {
      // The error of the browser says no more.
    }
    throw new LightFRError(`the kernel could not be loaded: ${address.pathname} ${what}`);
  }

  /** A memory of its own, which goes with whoever holds it. */
  newMemory(): KernelMemory {
    return new KernelMemory(new WebAssembly.Instance(this.#module).exports as unknown as Exports);
  }
}

/** Memory for one catalogue and the calls on it. What is taken stays, except what is taken in `scratch`. */
export class KernelMemory {
  readonly #exports: Exports;
  #top: number;

  constructor(exports: Exports) {
    this.#exports = exports;
    this.#top = exports.__heap_base.value as number;
  }

  /** All of it, taken or not. */
  get byteLength(): number {
    return this.#exports.memory.buffer.byteLength;
  }

  /** Takes so many bytes, which hold anything, and returns their address. Views that were made before may be gone. */
  take(byteLength: number): number {
    const address = Math.ceil(this.#top / ALIGNMENT) * ALIGNMENT;
    this.#top = address + byteLength;
    const { memory } = this.#exports;
    const missing = this.#top - memory.buffer.byteLength;
    if (missing > 0) this.#grow(Math.ceil(missing / PAGE_BYTES));
    return address;
  }

  #grow(pages: number): void {
    try {
      this.#exports.memory.grow(pages);
    } catch {
      throw new LightFRError(`the browser did not give ${pages * PAGE_BYTES} bytes of memory for the item codes`);
    }
  }

  /** Takes room for these numbers and puts them there. */
  put(numbers: Uint8Array | Uint16Array | Uint32Array | Int32Array | BigInt64Array): number {
    const address = this.take(numbers.byteLength);
    const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
    this.bytes(address, bytes.length).set(bytes);
    return address;
  }

  /** What is taken while `use` runs is given back when it ends. */
  scratch<Result>(use: () => Result): Result {
    const top = this.#top;
    try {
      return use();
    } finally {
      this.#top = top;
    }
  }

  call(name: KernelFunction, ...args: number[]): void {
    const status = this.#exports[name](...args);
    if (status !== LFR_OK) throw new KernelError(name, status);
  }

  // Views, which hold until more memory is taken.
  bytes(address: number, length: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#exports.memory.buffer as ArrayBuffer, address, length);
  }

  uint16s(address: number, length: number): Uint16Array {
    return new Uint16Array(this.#exports.memory.buffer, address, length);
  }

  uint32s(address: number, length: number): Uint32Array {
    return new Uint32Array(this.#exports.memory.buffer, address, length);
  }

  int64s(address: number, length: number): BigInt64Array {
    return new BigInt64Array(this.#exports.memory.buffer, address, length);
  }
}
