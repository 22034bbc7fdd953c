/** The remembered answer of a dequeue, as bytes: a JSON head, then the payloads one after the other. */

import type { DeliveredMessage } from "../../core/message.ts";

/** The answer as bytes. */
export function encodeAnswer(deliveries: readonly DeliveredMessage[]): Buffer {
  const head = Buffer.from(JSON.stringify(deliveries.map(({ data, ...rest }) => ({ ...rest, size: data.byteLength }))));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(head.byteLength);
  return Buffer.concat([length, head, ...deliveries.map((delivery) => delivery.data)]);
}

/** The answer from its bytes. */
export function decodeAnswer(bytes: Buffer): DeliveredMessage[] {
  let offset = 4 + bytes.readUInt32LE(0);
  const heads = JSON.parse(bytes.toString("utf8", 4, offset)) as (Omit<DeliveredMessage, "data"> & { size: number })[];
  return heads.map(({ size, ...rest }) => {
    offset += size;
    return { ...rest, data: Buffer.from(bytes.subarray(offset - size, offset)) };
  });
}
