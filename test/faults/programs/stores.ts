/** Stores that a child keeps open for its parent, which calls their methods from outside. */

import type { Backend } from "../../../src/backend/contract.ts";
import { reportFault } from "../../support/child-process-main.ts";
import { openStore, type StoreSpec } from "../store-spec.ts";

const open = new Map<number, Backend>();
let numbers = 0;

/** Opens a store; answers with the number by which it is called. */
export async function openShared(spec: StoreSpec): Promise<number> {
  const backend = await openStore(spec, reportFault);
  numbers += 1;
  open.set(numbers, backend);
  return numbers;
}

/** Calls a method of a store. */
export async function callStore(number: number, method: string, values: readonly unknown[]): Promise<unknown> {
  const backend = open.get(number);
  if (backend === undefined) throw new Error(`no store ${number} is open here`);
  return (Reflect.get(backend, method) as (...values: unknown[]) => unknown).apply(backend, [...values]);
}

/** Closes a store. */
export async function closeStore(number: number): Promise<void> {
  await open.get(number)?.close();
  open.delete(number);
}

/** Opens and closes a store so many times; every other time it looks for work in a queue that has none to give. Answers what it was given. */
export async function openAndClose(spec: StoreSpec, times: number, queue: Parameters<Backend["dequeue"]>[0]): Promise<number> {
  let given = 0;
  for (let time = 0; time < times; time += 1) {
    const backend = await openStore(spec, reportFault);
    await backend.recover();
    if (time % 2 === 0) given += (await backend.dequeue(queue)).length;
    await backend.close();
  }
  return given;
}
