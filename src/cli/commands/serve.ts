/** `queuefs serve` */

import { readFileSync, statSync } from "node:fs";
import { Option } from "commander";
import { QueueFSError } from "../../core/errors.ts";
import type { ListenOptions, Token } from "../../http/index.ts";
import { durationOption, integerOption, usageError } from "../arguments.ts";
import type { CommandRow } from "../command.ts";
import { formatDuration } from "../duration.ts";
import { LOG_FORMATS, LOG_LEVELS, openServeLog } from "../serve-log.ts";
import type { Session } from "../session.ts";
import { TOKEN_VARIABLE } from "../store-option.ts";
import { visible } from "../visible.ts";

interface ServeOptions {
  readonly host?: string;
  readonly port?: number;
  readonly tokenFile?: string;
  readonly allowHost?: readonly string[];
  readonly allowOrigin?: readonly string[];
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly maxConnections?: number;
  readonly maxLongPolls?: number;
  readonly mount?: string;
  readonly plainLease?: number;
  readonly drain?: number;
  readonly maxEventReaders?: number;
  readonly logLevel?: string;
  readonly logFormat?: string;
}

function read(what: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new QueueFSError("invalid-argument", `${what} ${JSON.stringify(path)} cannot be read (${why})`);
  }
}

/** The tokens of the file and of the environment. */
async function tokensOf(session: Session, path: string | undefined): Promise<Token[]> {
  const { parseTokens } = await import("../../http/index.ts");
  const secret = session.environment[TOKEN_VARIABLE];
  const tokens: Token[] = secret === undefined || secret === "" ? [] : [{ secret }];
  if (path === undefined) return tokens;
  const listed = parseTokens(read("the token file", path), path);
  // A file without tokens is a slip, and must not open the server to everybody.
  if (listed.length === 0) throw usageError(`the token file ${JSON.stringify(path)} has no token; write one a line`);
  if ((statSync(path).mode & 0o044) !== 0) session.note(`others on this host can read the token file ${path}; chmod 600 keeps it to you`);
  return [...tokens, ...listed];
}

function tlsOf({ tlsCert, tlsKey }: ServeOptions): ListenOptions["tls"] {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) throw usageError("--tls-cert and --tls-key need each other");
  return { cert: read("the certificate", tlsCert), key: read("the key", tlsKey) };
}

function collect(value: string, before: readonly string[] | undefined): string[] {
  return [...(before ?? []), value];
}

async function serveStore(session: Session, options: ServeOptions): Promise<void> {
  const { host, port, allowHost, allowOrigin, maxConnections, maxLongPolls, mount, plainLease, drain, maxEventReaders } = options;
  const tokens = await tokensOf(session, options.tokenFile);
  const tls = tlsOf(options);
  const log = await openServeLog(session, options);
  const backend = await session.openStore();
  const { listen } = await import("../../http/index.ts");
  const server = await listen(backend, {
    tokens,
    logger: log,
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port }),
    ...(allowHost === undefined ? {} : { allowHosts: allowHost }),
    ...(allowOrigin === undefined ? {} : { allowOrigins: allowOrigin }),
    ...(tls === undefined ? {} : { tls }),
    ...(maxConnections === undefined ? {} : { maxConnections }),
    ...(maxLongPolls === undefined ? {} : { maxLongPolls }),
    ...(mount === undefined ? {} : { mount }),
    ...(plainLease === undefined ? {} : { plainLeaseMs: plainLease }),
    ...(drain === undefined ? {} : { drainMs: drain }),
    ...(maxEventReaders === undefined ? {} : { maxEventReaders }),
  });
  // The end has a bound of its own, so that a second signal need not hurry it.
  session.endInOwnTime();
  const { location } = backend.description;
  log.info({ url: server.url, store: location, pid: process.pid }, "listening");
  if (session.json) await session.jsonLine({ url: server.url, store: location, pid: process.pid });
  else await session.output.line(`serving ${visible(location)} on ${server.url}; the API is described at ${server.url}/docs`);
  await session.output.flush();
  if (!session.signal.aborted)
    await new Promise<void>((resolve) => session.signal.addEventListener("abort", () => resolve(), { once: true }));
  const begunMs = performance.now();
  const { finished, released } = await server.stop();
  log.info({ finished, released }, "stopped");
  const words = `stopped after ${formatDuration(Math.round(performance.now() - begunMs))}: ${finished} requests finished`;
  session.note(released === 0 ? words : `${words}, ${released} connections cut`);
}

/** Puts an HTTP server in front of the store. */
export const serve: CommandRow = {
  name: "serve",
  summary: "serve the store over HTTP",
  description: `Listens on this host only, unless told otherwise and given a token. Tokens come from a file (one a line: the secret, then perhaps read-only and queues=a,b/c) and from ${TOKEN_VARIABLE}. Clients: --store http://HOST:PORT of every command, AGFS clients, curl; /docs describes the API. Ctrl-C or SIGTERM: takes no more connections, lets requests finish, ends.`,
  examples: [
    {
      title: "A server, and a command that uses it",
      lines: [
        "queuefs serve --port 7377 --json > server.json &",
        "until grep -q url server.json; do sleep 0.1; done",
        "queuefs --store http://127.0.0.1:7377 mkdir jobs",
        `kill "$(sed 's/.*"pid":\\([0-9]*\\).*/\\1/' server.json)"`,
      ],
    },
    {
      title: "Without a token it refuses to be reached from other hosts",
      lines: ["queuefs serve --host 0.0.0.0"],
      exitCode: 2,
    },
  ],
  define(command, run) {
    command
      .option("--host <address>", "the address to listen on; others than loopback need a token (default: 127.0.0.1)")
      .option("--port <n>", "the port; 0 for any that is free (default: 7333)", integerOption)
      .option("--token-file <file>", `tokens, one a line; $${TOKEN_VARIABLE} is another (default: none, everybody on this host is let in)`)
      .option("--allow-host <name>", "a name by which clients call the server, beside localhost and addresses; may be repeated", collect)
      .option("--allow-origin <origin>", "a web page's origin that may use the server; may be repeated", collect)
      .option("--tls-cert <file>", "certificate chain in PEM, for HTTPS")
      .option("--tls-key <file>", "its key in PEM")
      .option("--max-connections <n>", "connections at once (default: 4096)", integerOption)
      .option("--max-long-polls <n>", "requests that may wait at once (default: 2048)", integerOption)
      .option("--max-event-readers <n>", "streams of events that may be open at once (default: 1000)", integerOption)
      .option("--mount <path>", "where AGFS clients see the queues (default: /queuefs)")
      .option("--plain-lease <duration>", "how long a message that an AGFS client took may be held (default: 15m)", durationOption)
      .option("--drain <duration>", "how long requests may take to finish at the end (default: 30s)", durationOption)
      .addOption(
        new Option(
          "--log-level <level>",
          "what is logged on standard error: failures by default, with info changes too, with debug all requests",
        )
          .choices(LOG_LEVELS)
          .default("warn"),
      )
      .addOption(new Option("--log-format <format>", "how (default: text, with --json json)").choices(LOG_FORMATS))
      .action((options: ServeOptions) =>
        run(async (session) => {
          await serveStore(session, options);
          return 0;
        }),
      );
  },
};
