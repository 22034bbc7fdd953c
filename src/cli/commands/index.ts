/** All commands by name, in the order in which the help lists them. Each is loaded when it is needed, so that the others cost no time. */

import type { CommandGroup, CommandRow } from "../command.ts";

const LOADERS: Readonly<Record<string, () => Promise<CommandRow | CommandGroup>>> = {
  mkdir: async () => (await import("./make.ts")).make,
  ls: async () => (await import("./list.ts")).list,
  rm: async () => (await import("./remove.ts")).remove,
  enqueue: async () => (await import("./enqueue.ts")).enqueue,
  dequeue: async () => (await import("./dequeue.ts")).dequeue,
  peek: async () => (await import("./peek.ts")).peek,
  ack: async () => (await import("./settle.ts")).ack,
  nack: async () => (await import("./settle.ts")).nack,
  release: async () => (await import("./settle.ts")).release,
  extend: async () => (await import("./settle.ts")).extend,
  status: async () => (await import("./status.ts")).status,
  size: async () => (await import("./size.ts")).size,
  messages: async () => (await import("./messages.ts")).messages,
  clear: async () => (await import("./clear.ts")).clear,
  dead: async () => (await import("./dead.ts")).dead,
  wait: async () => (await import("./wait.ts")).wait,
  task: async () => (await import("./task.ts")).task,
  work: async () => (await import("./work.ts")).work,
  cat: async () => (await import("./cat.ts")).cat,
  write: async () => (await import("./write.ts")).write,
  serve: async () => (await import("./serve.ts")).serve,
  doctor: async () => (await import("./doctor.ts")).doctor,
  migrate: async () => (await import("./migrate.ts")).migrate,
};

/** The names of all commands. */
export const COMMAND_NAMES: readonly string[] = Object.keys(LOADERS);

/**
 * The commands that these arguments may mean: those they name, which may be one too many where a message reads like a command, or all
 * where they name none or ask for help.
 */
export async function loadCommands(commandArguments: readonly string[]): Promise<(CommandRow | CommandGroup)[]> {
  const given = new Set(commandArguments);
  const named = COMMAND_NAMES.filter((name) => given.has(name));
  const wantsAll = named.length === 0 || given.has("--help") || given.has("-h");
  return Promise.all((wantsAll ? COMMAND_NAMES : named).map((name) => (LOADERS[name] as () => Promise<CommandRow | CommandGroup>)()));
}
