/** What the server says of itself: health, version, capabilities, mounts and plugins. */

import { jsonAnswer } from "./answers.ts";
import type { AgfsCall } from "./call.ts";
import type { FormQuery } from "./form.ts";
import type { Service } from "./service.ts";

/** How long the store may take to answer a question about its health, in milliseconds. */
const HEALTH_MS = 2_000;

/** What AGFS servers are built from; not known of this one. */
const UNKNOWN = "unknown";

/** `/health`: whether the store answers, and the server is not about to stop. Always 200, since the server itself does. */
export async function health(_call: AgfsCall, _query: FormQuery, service: Service): Promise<Response> {
  return jsonAnswer(await healthOf(service));
}

/** `/ready`: the same, and 503 when the store does not answer, or the server is about to stop. */
export async function ready(_call: AgfsCall, _query: FormQuery, service: Service): Promise<Response> {
  const answer = await healthOf(service);
  return answer.ready ? jsonAnswer(answer) : jsonAnswer(answer, 503, { "retry-after": "1" });
}

async function healthOf({ backend, clock, version, polls }: Service): Promise<{ readonly ready: boolean }> {
  const answers = await new Promise<boolean>((resolve) => {
    const timer = clock.setTimer(() => resolve(false), HEALTH_MS);
    backend
      .listQueues({ limit: 1 })
      .then(
        () => resolve(true),
        () => resolve(false),
      )
      .finally(() => timer.cancel());
  });
  // One that stops takes no new work, whatever its store does.
  const isUp = answers && !polls.drained.aborted;
  return {
    ...{ status: isUp ? "healthy" : "degraded", version, gitCommit: UNKNOWN, buildTime: UNKNOWN, ready: isUp, degraded: !isUp },
    ...{ mounts: { total: 1, pending: 0, mounted: answers ? 1 : 0, failed: answers ? 0 : 1 } },
  };
}

/** `/version`. */
export async function version(_call: AgfsCall, _query: FormQuery, service: Service): Promise<Response> {
  return jsonAnswer({ version: service.version, gitCommit: UNKNOWN, buildTime: UNKNOWN });
}

/** `/capabilities`: no handles, so that agfs-fuse reads and writes files as a whole. */
export async function capabilities(_call: AgfsCall, _query: FormQuery, service: Service): Promise<Response> {
  return jsonAnswer({ version: service.version, features: ["grep", "digest", "stream", "touch"] });
}

/** `/mounts`. */
export async function mounts(_call: AgfsCall, _query: FormQuery, { tree }: Service): Promise<Response> {
  return jsonAnswer({ mounts: [{ path: tree.mount.path, pluginName: "queuefs", instance: "queuefs", status: "mounted", config: {} }] });
}

/** `/plugins`. */
export async function plugins(_call: AgfsCall, _query: FormQuery, { tree }: Service): Promise<Response> {
  return jsonAnswer({
    plugins: [{ name: "queuefs", is_external: false, mounted_paths: [{ path: tree.mount.path, config: {} }], config_params: [] }],
  });
}

/** `/` outside the API, for people and probes. */
export function rootAnswer(version: string): Response {
  return jsonAnswer({ service: "AGFS Server", version, status: "running" });
}
