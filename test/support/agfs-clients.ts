/**
 * What AGFS clients send, and what they need to get, as far as their documentation and behaviour tell: requests in order, each with the part of
 * the answer that the client looks at. `ID` in a body stands for the id of the message read last.
 */

/** One request of a client. */
export interface ClientRequest {
  readonly method: string;
  /** Path and query below `/api/v1`, encoded as the client does it. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly status: number;
  /** What the JSON of the answer must hold. */
  readonly json?: object;
  /** What the text of the answer must be. */
  readonly text?: string;
  /** What the text of the answer must hold. */
  readonly holds?: string;
}

const pyagfs = { "user-agent": "python-requests/2.31.0", "accept-encoding": "gzip, deflate", accept: "*/*" };
const go = { "user-agent": "Go-http-client/1.1", "accept-encoding": "gzip" };

function by(headers: Readonly<Record<string, string>>, requests: readonly Omit<ClientRequest, "headers">[]): ClientRequest[] {
  return requests.map((request) => ({ ...request, headers }));
}

/** OpenViking's NamedQueue through plain pyagfs: mkdir at first use, polling of size, dequeue, ack after the handler, errors by their text. */
const NAMED_QUEUE = by(pyagfs, [
  { method: "POST", target: "/directories?path=%2Fqueuefs%2FSemantic&mode=755", status: 201, json: { message: "directory created" } },
  { method: "POST", target: "/directories?path=%2Fqueuefs%2FSemantic&mode=755", status: 201, json: { message: "directory created" } },
  { method: "GET", target: "/files?path=%2Fqueuefs%2FSemantic%2Fsize", status: 200, text: "0" },
  { method: "GET", target: "/files?path=%2Fqueuefs%2FSemantic%2Fdequeue", status: 200, text: "{}" },
  {
    method: "PUT",
    target: "/files?path=%2Fqueuefs%2FSemantic%2Fenqueue",
    body: '{"uri": "a"}',
    status: 200,
    json: { message: "Written 12 bytes" },
  },
  { method: "GET", target: "/files?path=%2Fqueuefs%2FSemantic%2Fpeek", status: 200, json: { data: '{"uri": "a"}' } },
  { method: "GET", target: "/files?path=%2Fqueuefs%2FSemantic%2Fsize", status: 200, text: "1" },
  { method: "GET", target: "/files?path=%2Fqueuefs%2FSemantic%2Fdequeue", status: 200, json: { data: '{"uri": "a"}' } },
  { method: "GET", target: "/files?path=%2Fqueuefs%2FSemantic%2Fstatus", status: 200, text: '{"pending":0,"processing":1}' },
  { method: "GET", target: "/files?path=%2Fqueuefs%2FSemantic%2Fmessages", status: 200, holds: '"data":"{\\"uri\\": \\"a\\"}"' },
  { method: "PUT", target: "/files?path=%2Fqueuefs%2FSemantic%2Fack", body: "ID", status: 200, json: { acked: true } },
  { method: "PUT", target: "/files?path=%2Fqueuefs%2FSemantic%2Fack", body: "ID", status: 200, json: { acked: false } },
  { method: "GET", target: "/files?path=%2Fqueuefs%2FSemantic%2Fstatus", status: 200, text: '{"pending":0,"processing":0}' },
  { method: "PUT", target: "/files?path=%2Fqueuefs%2FSemantic%2Fclear", body: "", status: 200, json: { message: "Written 0 bytes" } },
  { method: "GET", target: "/files?path=%2Fqueuefs%2Fworker-1%2FSemantic%2Fsize", status: 404, holds: "not found" },
  { method: "POST", target: "/directories?path=%2Fqueuefs%2Fworker-1%2FSemantic&mode=755", status: 201 },
  { method: "GET", target: "/files?path=%2Fqueuefs%2Fworker-1%2FSemantic%2Fsize", status: 200, text: "0" },
]);

/** The Python SDK beside that: its other calls, with the defaults that it sends. */
const PYTHON_SDK = by(pyagfs, [
  { method: "GET", target: "/health", status: 200, json: { status: "healthy", ready: true } },
  { method: "GET", target: "/capabilities", status: 200, json: { features: ["grep", "digest", "stream", "touch"] } },
  { method: "GET", target: "/directories?path=%2F", status: 200, json: { files: [{ name: "queuefs", isDir: true }] } },
  { method: "GET", target: "/mounts", status: 200, json: { mounts: [{ path: "/queuefs", pluginName: "queuefs", config: {} }] } },
  { method: "GET", target: "/plugins", status: 200, json: { plugins: [{ name: "queuefs", is_external: false }] } },
  { method: "POST", target: "/directories?path=%2Fqueuefs%2Fmy+queue&mode=755", status: 201 },
  { method: "PUT", target: "/files?path=%2Fqueuefs%2Fmy+queue%2Fenqueue", body: "x", status: 200 },
  { method: "GET", target: "/files?path=%2Fqueuefs%2Fmy+queue%2Fdequeue&offset=10", status: 200, text: "" },
  { method: "GET", target: "/files?path=%2Fqueuefs%2Fmy+queue%2Fdequeue&stream=true", status: 200, json: { data: "x" } },
  { method: "GET", target: "/stat?path=%2Fqueuefs%2Fmy+queue", status: 200, json: { isDir: true, mode: 0o755 } },
  { method: "POST", target: "/touch?path=%2Fqueuefs%2Fmy+queue%2Fdequeue", status: 200, json: { message: "touched" } },
  { method: "POST", target: "/rename?path=%2Fqueuefs%2Fmy+queue", body: '{"newPath": "/queuefs/b"}', status: 501, holds: "not supported" },
  { method: "POST", target: "/chmod?path=%2Fqueuefs%2Fmy+queue", body: '{"mode": 420}', status: 501, holds: "not supported" },
  { method: "POST", target: "/symlink?path=%2Fqueuefs%2Flink", body: '{"target": "/queuefs/a"}', status: 501, holds: "not supported" },
  { method: "GET", target: "/readlink?path=%2Fqueuefs%2Flink", status: 501, holds: "not supported" },
  { method: "POST", target: "/mount", body: '{"fstype": "memfs", "path": "/m", "config": {}}', status: 501, holds: "not supported" },
  { method: "POST", target: "/unmount", body: '{"path": "/queuefs"}', status: 501, holds: "not supported" },
  { method: "POST", target: "/plugins/load", body: '{"library_path": "/tmp/x.so"}', status: 501, holds: "not supported" },
  { method: "POST", target: "/plugins/unload", body: '{"library_path": "/tmp/x.so"}', status: 501, holds: "not supported" },
  { method: "POST", target: "/handles/open?path=%2Fqueuefs%2Fq&flags=0&mode=420&lease=60", status: 501, holds: "not supported" },
  { method: "GET", target: "/handles", status: 501, holds: "not supported" },
  { method: "DELETE", target: "/handles/1", status: 501, holds: "not supported" },
  { method: "GET", target: "/handles/1/read?size=-1", status: 501, holds: "not supported" },
  { method: "DELETE", target: "/files?path=%2Fqueuefs%2Fmy+queue&recursive=true", status: 200, json: { message: "deleted" } },
]);

/** The Go SDK: raw bytes that say they are JSON, and octal modes. */
const GO_SDK = by({ ...go, "content-type": "application/json" }, [
  { method: "POST", target: "/directories?mode=755&path=%2Fqueuefs%2Fq", status: 201 },
  { method: "POST", target: "/files?path=%2Fqueuefs%2Fq%2Fenqueue", status: 201, json: { message: "file created" } },
  { method: "PUT", target: "/files?path=%2Fqueuefs%2Fq%2Fenqueue", body: "no JSON {", status: 200 },
  { method: "GET", target: "/files?path=%2Fqueuefs%2Fq%2Fdequeue", status: 200, json: { data: "no JSON {" } },
  { method: "PUT", target: "/files?path=%2Fqueuefs%2Fq%2Fack", body: "ID\n", status: 200, json: { acked: true } },
  {
    method: "POST",
    target: "/grep",
    body: '{"path":"/queuefs","pattern":"x","recursive":true,"case_insensitive":false,"stream":false}',
    status: 200,
  },
  { method: "POST", target: "/digest", body: '{"algorithm":"md5","path":"/queuefs/q/size"}', status: 200, json: { algorithm: "md5" } },
]);

/** The shell: what it looks for when it starts, `ls`, `cat`, which tries to stream first, and `>>`, which reads what it appends to. */
const SHELL = by(pyagfs, [
  ...["/etc/rc", "/etc/initrc", "/initrc.as", "/etc/profile", "/etc/profile.as"].map((path) => ({
    method: "GET",
    target: `/stat?path=${encodeURIComponent(path)}`,
    status: 404,
    holds: "not found",
  })),
  { method: "POST", target: "/directories?path=%2Fqueuefs%2Fq&mode=755", status: 201 },
  { method: "GET", target: "/stat?path=%2Fqueuefs", status: 200, json: { isDir: true, meta: { Type: "mount-point" } } },
  { method: "GET", target: "/directories?path=%2Fqueuefs", status: 200, json: { files: [{ name: "README" }, { name: "q" }] } },
  { method: "GET", target: "/files?path=%2Fqueuefs%2Fq%2Fdequeue&stream=true", status: 200, text: "{}" },
  { method: "GET", target: "/files?path=%2Fqueuefs%2Fq%2Fenqueue", status: 403, holds: "permission denied" },
  { method: "PUT", target: "/files?path=%2Fqueuefs%2Fq%2Fenqueue", body: "echoed\n", status: 200 },
  { method: "GET", target: "/files?path=%2Fqueuefs%2Fq%2Fdequeue&stream=true", status: 200, json: { data: "echoed\n" } },
  { method: "DELETE", target: "/files?path=%2Fqueuefs%2Fq", status: 409, holds: "not empty" },
  { method: "DELETE", target: "/files?path=%2Fqueuefs%2Fq%2Fsize", status: 403, holds: "permission denied" },
  { method: "GET", target: "/directories?path=%2Fqueuefs%2Fq%2Fsize", status: 400, holds: "not a directory" },
  { method: "GET", target: "/files?path=%2Fqueuefs%2Fq", status: 400, holds: "is a directory" },
]);

/** The FUSE client: no handles, so a truncation and a write for each `>`, and a whole read for each open; a stat of each file for `ls`. */
const FUSE = by(go, [
  { method: "POST", target: "/directories?mode=755&path=%2Fqueuefs%2Fq", status: 201 },
  { method: "GET", target: "/stat?path=%2Fqueuefs%2Fq%2Fenqueue", status: 200, json: { mode: 0o222, isDir: false } },
  { method: "POST", target: "/truncate?path=%2Fqueuefs%2Fq%2Fenqueue&size=0", status: 200, json: { message: "truncated" } },
  {
    method: "POST",
    target: "/handles/open?flags=513&lease=60&mode=644&path=%2Fqueuefs%2Fq%2Fenqueue",
    status: 501,
    holds: "not supported",
  },
  { method: "PUT", target: "/files?path=%2Fqueuefs%2Fq%2Fenqueue", body: "x\n", status: 200 },
  { method: "GET", target: "/stat?path=%2Fqueuefs%2Fq%2Fdequeue", status: 200, json: { mode: 0o444 } },
  { method: "GET", target: "/files?path=%2Fqueuefs%2Fq%2Fdequeue", status: 200, json: { data: "x\n", deliveries: 1 } },
  { method: "PUT", target: "/files?path=%2Fqueuefs%2Fq%2Fack", body: "ID\n", status: 200, json: { acked: true } },
  { method: "DELETE", target: "/files?path=%2Fqueuefs%2Fq&recursive=false", status: 200, json: { message: "deleted" } },
]);

/** All clients by name. */
export const AGFS_CLIENTS: Readonly<Record<string, readonly ClientRequest[]>> = {
  "OpenViking's NamedQueue": NAMED_QUEUE,
  "the Python SDK": PYTHON_SDK,
  "the Go SDK": GO_SDK,
  "the shell": SHELL,
  "the FUSE client": FUSE,
};
