// The page at the end of `lightfr-harness demo`: rate a few titles, and see what changes.
// Bundled into harness/lightfr_harness/demo/play.js by `make web-page`; play.html and play.css lie there too.
import { hasBit } from "../src/bytes.js";
import { LightFRError, type Model, RankBy } from "../src/index.js";
import { type Item, Items, openModel, type PageData, Visitor } from "./visitor.js";

const SHOWN = 10;
const ASKED_AT_ONCE = 8;
const ASKED_AT_MOST = 96;
const ENOUGH = 5;
const COLOURS = 8;

const element = <Kind extends HTMLElement = HTMLElement>(id: string): Kind => document.getElementById(id) as Kind;
const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? "" : "s"}`;

/** An element with a class, text or children. */
function make(tag: string, className: string, ...children: (string | Node)[]): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...children);
  return made;
}

class Page {
  readonly #model: Model;
  readonly #items: Items;
  readonly #visitor = new Visitor();
  readonly #asked: Item[];
  readonly #colours = new Map<string, number>();
  #firstAsked = 0;
  #list: Item[] = [];
  #atFirst: Item[] = [];
  #code: Uint8Array;

  constructor(model: Model, items: Items, asked: Item[]) {
    this.#model = model;
    this.#items = items;
    this.#asked = asked;
    this.#code = new Uint8Array(model.codes.codeBytes);
    for (const item of asked) this.#colourOf(item);
    element("others").onclick = () => this.#askOthers();
    element("forget").onclick = () => {
      this.#visitor.forget();
      this.#firstAsked = 0;
      void this.update();
    };
  }

  /** Computes the code and the list anew, and shows both. */
  async update(): Promise<void> {
    const started = performance.now();
    const code = (await this.#model.userCode(this.#visitor)).reveal();
    const found = await this.#model.recommend(this.#visitor, SHOWN);
    const milliseconds = performance.now() - started;
    const before = this.#list;
    this.#list = await Promise.all(found.map(({ itemId }) => this.#items.byId(itemId)));
    if (this.#visitor.count === 0) this.#atFirst = this.#list;
    this.#showBits(code);
    this.#showList(before);
    this.#showMix();
    this.#showAsked();
    this.#showProgress(milliseconds);
  }

  /** Each genre has a colour for as long as the page lives. */
  #colourOf({ genres: [genre = ""] }: Item): string {
    if (genre && !this.#colours.has(genre)) this.#colours.set(genre, this.#colours.size % COLOURS);
    return genre ? `genre g${this.#colours.get(genre)}` : "genre";
  }

  #titleOf(item: Item): HTMLElement {
    const genres = make("span", this.#colourOf(item), item.genres.join(", "));
    return make("span", "title", make("span", "name", item.name), ...(item.genres.length ? [genres] : []));
  }

  #button(item: Item, isLiked: boolean): HTMLElement {
    const button = make("button", isLiked ? "like" : "dislike", isLiked ? "Like" : "Not for me");
    button.setAttribute("aria-pressed", String(this.#visitor.likes(item.id) === isLiked));
    button.setAttribute("aria-label", `${button.textContent}: ${item.name}`);
    button.onclick = async () => {
      this.#visitor.say(item.id, isLiked);
      await this.update();
    };
    return button;
  }

  #askOthers(): void {
    this.#firstAsked = (this.#firstAsked + ASKED_AT_ONCE) % this.#asked.length;
    this.#showAsked();
  }

  #showAsked(): void {
    const shown = this.#asked.slice(this.#firstAsked, this.#firstAsked + ASKED_AT_ONCE);
    const list = element("asked");
    // Whoever uses the keyboard stays at the button.
    const focused = document.activeElement?.closest("#asked")
      ? document.activeElement.getAttribute("aria-label")
      : null;
    list.replaceChildren(
      ...shown.map((item) => {
        const card = make("li", "card", this.#titleOf(item), this.#buttons(item));
        this.#compareAt(card, item);
        return card;
      }),
    );
    if (focused) list.querySelector<HTMLElement>(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
  }

  #buttons(item: Item): HTMLElement {
    return make("span", "buttons", this.#button(item, true), this.#button(item, false));
  }

  #showList(before: Item[]): void {
    const list = element("list");
    const places = new Map(
      [...list.children].map((row) => [(row as HTMLElement).dataset.id, row.getBoundingClientRect()]),
    );
    const rows = this.#list.map((item, place) => {
      const old = before.findIndex(({ id }) => id === item.id);
      const row = make("li", "row", this.#titleOf(item), moved(old, place, before.length > 0), this.#buttons(item));
      row.dataset.id = String(item.id);
      this.#compareAt(row, item);
      return row;
    });
    list.replaceChildren(...rows);
    rows.forEach((row) => slide(row, places.get(row.dataset.id)));
    const fresh = this.#list.filter(({ id }) => !before.some((old) => old.id === id)).length;
    if (before.length)
      element("said").textContent = `${count(fresh, "new title")} in your list. First: ${this.#list[0]?.name}.`;
    const isPopular = this.#model.rankingFor(this.#visitor.count).by === RankBy.Popularity;
    element("popular").hidden = !isPopular;
  }

  /** The genres of the list as it was before any answer, and as it is now. */
  #showMix(): void {
    element("mix").hidden = !this.#list.some(({ genres }) => genres.length);
    for (const [name, items] of Object.entries({ first: this.#atFirst, now: this.#list })) {
      const inOrder = [...items].sort((a, b) => this.#colourOf(a).localeCompare(this.#colourOf(b)));
      element(name).replaceChildren(...inOrder.map((item) => make("span", this.#colourOf(item))));
      const counts = new Map<string, number>();
      for (const {
        genres: [genre = "other"],
      } of items)
        counts.set(genre, (counts.get(genre) ?? 0) + 1);
      const said = [...counts].sort((a, b) => b[1] - a[1]).map(([genre, times]) => `${times} ${genre}`);
      element(`${name}-said`).textContent = said.join(", ");
    }
  }

  #showBits(code: Uint8Array): void {
    const [picture, old] = [element("bits"), this.#code];
    const bits = Array.from({ length: this.#model.codes.codeBits }, (_, bit) => hasBit(code, bit));
    const isFirst = picture.childElementCount === 0;
    if (isFirst) picture.append(...bits.map(() => make("span", "")));
    const changed = bits.map((isSet, bit) => !isFirst && isSet !== hasBit(old, bit));
    bits.forEach((isSet, bit) => {
      const square = picture.children[bit] as HTMLElement;
      square.className = `${isSet ? "set" : ""} ${changed[bit] ? "changed" : ""}`;
    });
    this.#code = code;
    const changes = changed.filter(Boolean).length;
    const set = bits.filter(Boolean).length;
    element("changes").textContent =
      isFirst || !this.#visitor.count
        ? "So far this is everybody's average taste."
        : `Your last answer changed ${count(changes, "bit")}.`;
    picture.setAttribute("aria-label", `${bits.length} bits, ${set} of them set. ${element("changes").textContent}`);
  }

  /** While somebody points at an item, the picture shows which bits its code shares with the user's. */
  #compareAt(place: HTMLElement, item: Item): void {
    const picture = element("bits");
    const show = (): void => {
      const row = this.#model.codes.row(item.index);
      let same = 0;
      [...picture.children].forEach((square, bit) => {
        const isSame = hasBit(row, bit) === hasBit(this.#code, bit);
        square.classList.toggle("other", !isSame);
        same += Number(isSame);
      });
      element("shared").textContent = `${item.name} shares ${same} of your ${picture.childElementCount} bits.`;
    };
    const hide = (): void => {
      for (const square of picture.children) square.classList.remove("other");
      element("shared").textContent = "Point at a title to see which bits it shares with you.";
    };
    for (const event of ["pointerenter", "focusin"]) place.addEventListener(event, show);
    for (const event of ["pointerleave", "focusout"]) place.addEventListener(event, hide);
  }

  #showProgress(milliseconds: number): void {
    const rated = this.#visitor.count;
    element("progress").setAttribute("aria-valuenow", String(Math.min(rated, ENOUGH)));
    [...element("progress").children].forEach((dot, at) => dot.classList.toggle("done", at < rated));
    element("rated").textContent = rated < ENOUGH ? `${rated} of ${ENOUGH} rated` : `${rated} rated`;
    element("time").textContent = `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;
    element<HTMLButtonElement>("forget").disabled = rated === 0;
  }
}

/** What happened to a row: it is new, it went up or down, or nothing. */
function moved(old: number, place: number, isLater: boolean): HTMLElement {
  if (!isLater || old === place) return make("span", "moved");
  if (old < 0) return make("span", "moved new", "new");
  const [sign, word] = old > place ? ["▲", "up"] : ["▼", "down"];
  const mark = make("span", `moved ${word}`, `${sign} ${Math.abs(old - place)}`);
  mark.setAttribute("aria-label", `${word} by ${Math.abs(old - place)}`);
  return mark;
}

/** Moves a row from where it was; a row that was nowhere appears. */
function slide(row: HTMLElement, from: DOMRect | undefined): void {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const start = from
    ? { transform: `translateY(${from.top - row.getBoundingClientRect().top}px)` }
    : { opacity: 0, transform: "translateY(0.5rem)" };
  row.animate([start, { opacity: 1, transform: "none" }], { duration: 350, easing: "ease-out" });
}

/** The browser itself lists what the page asks for. It asks for nothing, and so nothing is sent. */
function watchRequests(): void {
  const show = (): void => {
    const requests = performance.getEntriesByType("resource").length;
    element("sent").textContent = requests === 0 ? "0 bytes sent" : `${count(requests, "request")} sent`;
    element("requests").textContent = String(requests);
  };
  new PerformanceObserver(show).observe({ type: "resource" });
  show();
}

async function run(): Promise<void> {
  watchRequests();
  const data = JSON.parse(element("data").textContent!) as PageData;
  const model = await openModel(data);
  const items = new Items(model, data.titles);
  await new Page(model, items, await items.toAskAbout(ASKED_AT_MOST)).update();
  performance.mark("ready");
  document.body.classList.add("ready");
}

run().catch((error: Error) => {
  element("failed").hidden = false;
  element("failed").textContent =
    error instanceof LightFRError
      ? `The page cannot recommend here: ${error.message}.`
      : `The page failed: ${error.name}.`;
});
