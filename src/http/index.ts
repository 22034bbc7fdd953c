/** An HTTP server for any store: published as `queuefs/http`. */

export { type App, type AppOptions, createApp } from "./app.ts";
export { parseTokens, type Token } from "./auth.ts";
export type { RequestBegin, RequestEnd, RequestObserver } from "./exchange.ts";
export { type DrainReport, type HttpServer, type ListenOptions, listen } from "./listen.ts";
export type { Logger } from "./observe/request-log.ts";
