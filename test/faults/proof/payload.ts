/** Payloads that tell their value and can be checked byte for byte. */

/** A small scatter of a text. */
function scatter(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}

/** The bytes of a value: itself, a NUL, and up to 300 bytes, now and then 5,000, that follow from it. */
export function payloadOf(value: string): Uint8Array {
  const hash = scatter(value);
  const paddingBytes = hash % 50 === 0 ? 5_000 : hash % 300;
  const bytes = new Uint8Array(value.length + 1 + paddingBytes);
  new TextEncoder().encodeInto(value, bytes);
  for (let index = value.length + 1; index < bytes.length; index += 1) bytes[index] = (hash + index * 31) & 0xff;
  return bytes;
}

/** The value of a payload, and whether its bytes are those of that value. */
export function readPayload(bytes: Uint8Array): { readonly value: string; readonly intact: boolean } {
  const end = bytes.indexOf(0);
  const value = new TextDecoder().decode(bytes.subarray(0, Math.max(0, end)));
  return { value, intact: Buffer.compare(payloadOf(value), bytes) === 0 };
}
