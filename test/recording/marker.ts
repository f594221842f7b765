/** The recorder's own messages, which show that all earlier ones have arrived; they are not recorded. */

export const MARKER = 'recorder/marker'
export const PING = 'hub2mqtt/bridge/cmd/ping'
const PONG = 'hub2mqtt/bridge/result/ping'
const SIGN = '"recorder-'

/** Returns a text that no other message contains. */
export const markerOf = (number: number) => `${SIGN}${number}"`

export function isMarker({ topic, payload }: { readonly topic: string; readonly payload: string | Buffer }): boolean {
  return topic === MARKER || ((topic === PING || topic === PONG) && payload.toString().includes(SIGN))
}
