/** A WebSocket that rejects malformed packets, because the Socket.IO client would throw uncaught errors. */
import { NodeWebSocket } from 'socket.io-client'
import { holdsTooMany, isRecord, parseJson } from '../base/json.ts'

/** Maximum number of values in a packet. The record of an app has a few hundred. */
const MAX_PACKET_VALUES = 20_000

export class GuardedWebSocket extends NodeWebSocket {
  protected override onData(data: unknown): void {
    if (typeof data === 'string' && isSound(data)) super.onData(data)
    else this.onError('the server does not speak Socket.IO', new Error('malformed packet'))
  }
}

/** Returns whether a packet has the content that the library relies on. Hubs send no binary packets. */
function isSound(packet: string): boolean {
  // An Engine.IO `open` packet.
  if (packet.startsWith('0')) {
    const opening = parseJson(packet.slice(1))
    return isRecord(opening) && typeof opening['sid'] === 'string' && Array.isArray(opening['upgrades'])
  }
  // All other Engine.IO packets except messages.
  if (!packet.startsWith('4')) return packet !== ''
  // Socket.IO `connect` and `disconnect` packets.
  if (/^4[01]/.test(packet)) return true
  // Socket.IO event and acknowledgement packets.
  if (/^4[23]/.test(packet)) return /^4[23](\/[^,]*,)?\d*\[/.test(packet) && !holdsTooMany(packet, MAX_PACKET_VALUES)
  // A Socket.IO `connect error` packet.
  if (!packet.startsWith('44')) return false
  const refusal = parseJson(packet.slice(2).replace(/^\/[^,]*,/, ''))
  return isRecord(refusal) && ['string', 'undefined'].includes(typeof refusal['message'])
}
