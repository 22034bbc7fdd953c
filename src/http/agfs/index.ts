/** The AGFS file API: what AGFS clients speak, over any store. */

export { rootAnswer } from "./about.ts";
export { AGFS_OPTIONS, Agfs, type AgfsAnswer, type AgfsOptions, type AgfsSurroundings } from "./agfs.ts";
export { errorAnswer } from "./answers.ts";
export type { AgfsCall } from "./call.ts";
export { isAgfsPath, mountAgfs } from "./mounting.ts";
