/** The description of the API as a page for people: plain HTML from the very same document, without scripts and outside requests. */

import { createHash } from "node:crypto";
import type { OpenApiDocument, Operation } from "./openapi.ts";
import type { Schema } from "./schemas.ts";

const STYLE = `
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 20%, transparent); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem 1.25rem 4rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
h3 { margin-top: 2rem; font-size: 1rem; overflow-wrap: anywhere; }
code, pre { font: 0.875em/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: 0.75rem; border: 1px solid var(--line); border-radius: 0.25rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid var(--line); }
nav ul { columns: 18rem; padding-left: 1rem; }
summary { cursor: pointer; }
`;

const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");

function htmlOf(text: unknown): string {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** Text with `code` in back quotes. */
function prose(text: unknown): string {
  return htmlOf(text).replace(/`([^`]*)`/g, "<code>$1</code>");
}

function nameOf(schema: unknown): string | undefined {
  return /\/([^/]+)$/.exec(String((schema as { readonly $ref?: unknown })?.$ref ?? ""))?.[1];
}

/** The types of a body, with links to shapes. */
function contentLine(content: Readonly<Record<string, { readonly schema?: Schema }>> = {}): string {
  return Object.entries(content)
    .map(([type, { schema }]) => {
      const name = nameOf(schema);
      return `<code>${htmlOf(type)}</code>${name === undefined ? "" : ` <a href="#shape-${htmlOf(name)}">${htmlOf(name)}</a>`}`;
    })
    .join(", ");
}

function operationSection(path: string, method: string, operation: Operation): string {
  const { operationId, summary, description, parameters, requestBody, responses } = operation;
  const rows = parameters.map(
    (row) => `<tr><td><code>${htmlOf(row.name)}</code></td><td>${htmlOf(row.in)}</td><td>${prose(row.description)}</td></tr>`,
  );
  const body = requestBody as { readonly description: string; readonly content: never } | undefined;
  const answers = Object.entries(responses).map(
    ([status, answer]) =>
      `<tr><td>${htmlOf(status)}</td><td>${prose(answer.description)}</td><td>${contentLine(answer.content as never)}</td></tr>`,
  );
  return `<section id="${htmlOf(operationId)}">
<h3><code>${htmlOf(method.toUpperCase())} ${htmlOf(path)}</code></h3>
<p>${prose(summary)}.${description === undefined ? "" : ` ${prose(description)}`}</p>
${rows.length === 0 ? "" : `<table><tr><th>Parameter</th><th>In</th><th>Meaning</th></tr>${rows.join("")}</table>`}
${body === undefined ? "" : `<p>Body: ${prose(body.description)}; ${contentLine(body.content)}</p>`}
<details><summary>Answers</summary><table><tr><th>Status</th><th>Meaning</th><th>Body</th></tr>${answers.join("")}</table></details>
</section>`;
}

function page(document: OpenApiDocument): string {
  const entries = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const sections = document.tags.map(({ name }) => {
    const own = entries.filter(({ operation }) => operation.tags.includes(name));
    return `<h2>${htmlOf(name)}</h2>${own.map(({ path, method, operation }) => operationSection(path, method, operation)).join("\n")}`;
  });
  const links = entries.map(({ operation }) => `<li><a href="#${htmlOf(operation.operationId)}">${htmlOf(operation.operationId)}</a></li>`);
  const shapes = Object.entries(document.components.schemas as Record<string, Schema>).map(
    ([name, schema]) =>
      `<details id="shape-${htmlOf(name)}"><summary><code>${htmlOf(name)}</code></summary><pre>${htmlOf(JSON.stringify(schema, null, 2))}</pre></details>`,
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>QueueFS API</title><style>${STYLE}</style></head>
<body><h1>QueueFS ${htmlOf(document.info.version)}: native API</h1>
<p>${htmlOf(document.info.summary)}. The same for programs: <a href="/openapi.json">openapi.json</a>.</p>
<nav><ul>${links.join("")}</ul></nav>
${sections.join("\n")}
<h2>Shapes</h2>
${shapes.join("\n")}
</body></html>
`;
}

/** The page, as an answer that lets nothing else be loaded. */
export function docsAnswer(document: OpenApiDocument): Response {
  return new Response(page(document), {
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`,
      "referrer-policy": "no-referrer",
    },
  });
}
