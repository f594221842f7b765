/** The client library's WebSocket, with a check of what comes in: some packets make the library throw where nobody catches. */
import { WebSocket } from 'socket.io-client'
import { isRecord } from '../base/json.ts'

export class GuardedWebSocket extends WebSocket {
  protected override onData(data: unknown): void {
    if (typeof data === 'string' && !isSound(data)) {
      this.onError('the server speaks no Socket.IO', new Error('malformed packet'))
      return
    }
    super.onData(data)
  }
}

/** Engine.IO's `open`, and within a message Socket.IO's `CONNECT_ERROR`: those whose content the library relies on. */
function isSound(packet: string): boolean {
  if (packet.startsWith('0')) {
    const opening = parse(packet.slice(1))
    return isRecord(opening) && typeof opening['sid'] === 'string' && Array.isArray(opening['upgrades'])
  }
  if (packet.startsWith('44')) {
    const refusal = parse(packet.slice(2).replace(/^\/[^,]*,/, ''))
    return isRecord(refusal) && ['string', 'undefined'].includes(typeof refusal['message'])
  }
  return true
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
