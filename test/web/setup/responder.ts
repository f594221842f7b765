/** An mDNS responder on a separate socket. It builds its packets without code of the program. */
import { createSocket } from 'node:dgram'
import { onTestFinished } from 'vitest'

export interface Service {
  readonly service: '_homey._tcp' | '_http._tcp'
  readonly instance: string
  readonly port: number
  readonly address?: string
  readonly texts?: readonly string[]
}

const name = (text: string): Buffer =>
  Buffer.concat([
    ...text.split('.').map((label) => Buffer.concat([Buffer.of(Buffer.byteLength(label)), Buffer.from(label)])),
    Buffer.of(0),
  ])

const record = (owner: string, type: number, data: Buffer): Buffer => {
  const fixed = Buffer.alloc(10)
  fixed.writeUInt16BE(type, 0)
  fixed.writeUInt16BE(1, 2)
  fixed.writeUInt32BE(10, 4)
  fixed.writeUInt16BE(data.length, 8)
  return Buffer.concat([name(owner), fixed, data])
}

const srv = (port: number, host: string): Buffer => {
  const fixed = Buffer.alloc(6)
  fixed.writeUInt16BE(port, 4)
  return Buffer.concat([fixed, name(host)])
}

export function answerPacket(services: readonly Service[]): Buffer {
  const records = services.flatMap(({ service, instance, port, address, texts = [] }, index) => {
    const full = `${instance}.${service}.local`
    const host = `host-${index}.local`
    const text = Buffer.concat(texts.map((one) => Buffer.concat([Buffer.of(Buffer.byteLength(one)), Buffer.from(one)])))
    return [
      record(`${service}.local`, 12, name(full)),
      record(full, 33, srv(port, host)),
      ...(texts.length > 0 ? [record(full, 16, text)] : []),
      ...(address === undefined ? [] : [record(host, 1, Buffer.from(address.split('.').map(Number)))]),
    ]
  })
  const header = Buffer.alloc(12)
  header.writeUInt16BE(0x8400, 2)
  header.writeUInt16BE(records.length, 6)
  return Buffer.concat([header, ...records])
}

export async function startResponder(packets: readonly Buffer[]) {
  const socket = createSocket('udp4')
  const questions: Buffer[] = []
  socket.on('message', (question, { port, address }) => {
    questions.push(question)
    for (const packet of packets) socket.send(packet, port, address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  onTestFinished(() => void socket.close())
  return { at: { address: '127.0.0.1', port: socket.address().port }, questions }
}
