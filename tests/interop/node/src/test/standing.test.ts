// Who is left out of rounds, and who is named: docs/protocol.md, "Plausible sums", "Who spoilt it".
import assert from "node:assert/strict";
import { test } from "node:test";
import { Suspects } from "../standing.js";

const devices = ["a", "b", "c", "d", "e", "f", "g", "h"];
const roundId = (number: number): Buffer => Buffer.from([number, 7]);
const placed = (suspects: Suspects, number: number): string[] =>
  devices.filter((device) => !suspects.isLeftOut(device, roundId(number)));

test("a device that always lies is named, and nobody else", () => {
  for (const liar of devices) {
    const suspects = new Suspects();
    let named: string | undefined;
    for (let number = 0; named === undefined; number++) {
      assert.ok(number < 100, "it is found in time");
      const present = placed(suspects, number % 64);
      if (present.includes(liar)) named = suspects.spoilt(present);
      else suspects.good(present);
    }
    assert.equal(named, liar);
    assert.deepEqual(placed(suspects, 0), devices, "then nobody is a suspect any more");
  }
});

test("half of the suspects have places, and a bit of the round's id says which half is larger", () => {
  const suspects = new Suspects();
  assert.deepEqual(placed(suspects, 1), devices);
  suspects.spoilt(["a", "b", "c"]);
  assert.deepEqual(
    [2, 3].map((number) => placed(suspects, number).length),
    [5 + 1, 5 + 2],
  );
  suspects.spoilt(["a"]);
  assert.deepEqual(
    [2, 3].map((number) => placed(suspects, number).includes("a")),
    [false, true],
  );
});

test("the last suspect is named by two more spoilt sums in a row with it, and cleared by one without it", () => {
  const suspects = new Suspects();
  for (const sum of [
    ["a", "b"],
    ["a", "c"],
    ["a", "d"],
  ])
    assert.equal(suspects.spoilt(sum), undefined);
  assert.equal(suspects.spoilt(["a", "e"]), "a");
  for (const sum of [
    ["a", "b"],
    ["a", "c"],
    ["a", "d"],
    ["b", "c"],
    ["a", "b"],
  ])
    assert.equal(suspects.spoilt(sum), undefined);
});

test("three good sums clear a suspect, and a spoilt one counts them anew", () => {
  const suspects = new Suspects();
  suspects.spoilt(["a"]);
  for (const sum of [["a"], ["a"]]) suspects.good(sum);
  suspects.spoilt(["a", "b"]);
  for (const sum of [["a"], ["a", "b"]]) suspects.good(sum);
  assert.ok(suspects.isLeftOut("a", roundId(0)));
  suspects.good(["a"]);
  assert.ok(!suspects.isLeftOut("a", roundId(0)));
});

test("after a round with too few devices one round turns nobody away", () => {
  const suspects = new Suspects();
  suspects.spoilt(["a"]);
  suspects.tooFew();
  assert.deepEqual(placed(suspects, 0), devices);
  suspects.tooFew();
  assert.ok(suspects.isLeftOut("a", roundId(0)));
});
