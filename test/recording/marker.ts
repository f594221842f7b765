/** A marker is a message that shows that all earlier messages have arrived. It is not recorded. */

export const MARKER = 'recorder/marker'
export const PING = 'hub2mqtt/bridge/cmd/ping'
const PONG = 'hub2mqtt/bridge/result/ping'
const SIGN = '"recorder-'

export const markerOf = (number: number) => `${SIGN}${number}"`

export function isMarker({ topic, payload }: { readonly topic: string; readonly payload: string | Buffer }): boolean {
  return topic === MARKER || ((topic === PING || topic === PONG) && payload.toString().includes(SIGN))
}
