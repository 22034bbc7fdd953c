import { expect, it } from "vitest";
import { ROUTES } from "../../../src/http/routes/table.ts";

/** What changes something and is not remembered, with the reason. */
const NOT_REMEMBERED: Readonly<Record<string, string>> = {
  "store.recover": "it does what time asks for, whoever asks and when",
};

it("the answer of every route that changes something is remembered, so that a copy that comes late does nothing", () => {
  const changing = ROUTES.filter(({ access }) => access === "write");
  expect(changing.length).toBeGreaterThan(10);
  expect(changing.filter(({ remembered }) => remembered !== true).map(({ name }) => name)).toEqual(Object.keys(NOT_REMEMBERED));
});
