/** Turns packets into messages. */
import type { IPublishPacket } from 'mqtt'
import type { Message } from './types.ts'

/** `receivedAt`: when the packet may have arrived, at the earliest. */
export function decodeMessage(packet: IPublishPacket, connection: number, receivedAt: number): Message {
  const { topic, payload, qos, dup, retain } = packet
  const { responseTopic, correlationData, messageExpiryInterval } = packet.properties ?? {}
  return {
    topic,
    payload: Buffer.isBuffer(payload) ? payload : Buffer.from(payload),
    retain,
    dup,
    qos,
    ...(responseTopic === undefined ? {} : { responseTopic }),
    // A copy: a view would keep the whole network buffer in memory while the answer waits.
    ...(correlationData === undefined ? {} : { correlationData: Buffer.from(correlationData) }),
    ...(messageExpiryInterval === undefined ? {} : { expiresInMs: messageExpiryInterval * 1000 }),
    receivedAt,
    connection,
  }
}
