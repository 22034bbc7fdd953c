/** Queues as files, over any backend. */

export { type ParsedPath, parseNewDirectory, parsePath } from "./path.ts";
export type {
  FileChange,
  FileHandle,
  FilePath,
  FileRole,
  FileStat,
  FileSystemPort,
  HandleRead,
  OpenMode,
  OpenOptions,
  ReadOptions,
  RemoveOptions,
  WriteAnswer,
  WriteOptions,
} from "./port.ts";
export { DIRECTORY_MODE, QueueFS, type QueueFSOptions } from "./queue-fs.ts";
