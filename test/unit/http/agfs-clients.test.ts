/** The conversations of AGFS clients with the server, request by request. */

import { expect, test } from "vitest";
import { AGFS_CLIENTS } from "../../support/agfs-clients.ts";
import { overAgfs } from "../../support/agfs-face.ts";

overAgfs("what AGFS clients send", (face) => {
  test.each(Object.entries(AGFS_CLIENTS))("by %s gets what they need", async (_client, requests) => {
    let id = "";
    for (const { method, target, headers = {}, body, status, json, text, holds } of requests) {
      const sent = body?.replace("ID", id);
      const answer = await face.ask(target, { method, headers, ...(sent === undefined ? {} : { body: sent }) });
      const what = `${method} ${target}: ${answer.status} ${answer.text}`;
      expect(answer.status, what).toBe(status);
      if (text !== undefined) expect(answer.text, what).toBe(text);
      if (json !== undefined) expect(answer.json, what).toMatchObject(json);
      if (holds !== undefined) expect(answer.text, what).toContain(holds);
      // No client reads an error that has no text, or an answer without a body where JSON is awaited.
      if (status >= 400) expect(answer.json.error, what).toEqual(expect.any(String));
      if (target.includes("dequeue") && status === 200 && method === "GET" && answer.text.includes('"id"')) id = answer.json.id;
    }
  });
});
