// Every error of the package, under one root, split by what the caller does next. None holds ratings, codes or item ids.

/** Root of every error that this package throws on purpose. */
export class LightFRError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** The call is outside the function's domain: fix the call. */
export class InvalidInputError extends LightFRError {}

/** An item index that is not below the number of items. */
export class ItemIndexError extends InvalidInputError {
  constructor(readonly itemCount: number) {
    super(`an item index is not a whole number below the number of items, ${itemCount}`);
  }
}

/** An item id outside the domain. */
export class ItemIdError extends InvalidInputError {
  constructor() {
    super("an item id is neither a string of 1 to 255 bytes in UTF-8 nor a whole number of 64 bits, signed");
  }
}

/** A rating that is not a number of the scale, or a scale that is empty or not finite. */
export class RatingError extends InvalidInputError {
  constructor(
    readonly minimum: number,
    readonly maximum: number,
  ) {
    super(`a rating is not a number from ${minimum} to ${maximum}, the scale that was given`);
  }
}

/** The browser lacks something that the package cannot do without: show your page without recommendations. */
export class UnsupportedBrowserError extends LightFRError {
  constructor(readonly lacks: string) {
    super(`this browser lacks ${lacks}`);
  }
}

/** The server cannot be reached or does not answer as it should, and no model is stored. Try again later. */
export class ServerUnavailableError extends LightFRError {}

/** A manifest that no trusted key signed, that is older than the stored one, or that contradicts itself. */
export class ManifestError extends LightFRError {
  constructor(reason: string) {
    super(`a manifest was refused: ${reason}`);
  }
}

/** A download that is malformed or not what the signed manifest names. It was thrown away. */
export class ArtifactError extends LightFRError {}

/** What the browser keeps, ratings or the model, cannot be read or written. */
export class StoreError extends LightFRError {}

/** The kernel refused: its status says why. Please report it. */
export class KernelError extends LightFRError {
  constructor(
    readonly call: string,
    readonly status: number,
  ) {
    super(`${call} of the kernel gave status ${status}`);
  }
}
