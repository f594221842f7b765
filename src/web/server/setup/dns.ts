/** The part of DNS that a search by mDNS needs (RFC 1035, RFC 6762). The records are untrusted. */

export type DnsRecord =
  | { readonly type: 'PTR'; readonly name: string; readonly target: string }
  | { readonly type: 'SRV'; readonly name: string; readonly target: string; readonly port: number }
  | { readonly type: 'TXT'; readonly name: string; readonly texts: readonly string[] }
  | { readonly type: 'A'; readonly name: string; readonly address: string }

const PTR = 12
const IN = 1
const HEADER_BYTES = 12
const MAX_NAME_BYTES = 255
/** Maximum number of records to read from a packet. Packets of real devices contain fewer records. */
const MAX_RECORDS = 64
const IS_RESPONSE = 0x8000

/** Encodes a question for the instances of services such as `_http._tcp.local`. */
export function question(services: readonly string[]): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt16BE(services.length, 4)
  const questions = services.map((service) => {
    const labels = service.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]))
    return Buffer.concat([...labels, Buffer.from([0, 0, PTR, 0, IN])])
  })
  return Buffer.concat([header, ...questions])
}

/** Returns the supported records, with names in lower case. Stops at the first malformed record. */
export function readRecords(packet: Buffer): DnsRecord[] {
  const records: DnsRecord[] = []
  try {
    if ((packet.readUInt16BE(2) & IS_RESPONSE) === 0) return []
    const [questions, ...sections] = [4, 6, 8, 10].map((at) => packet.readUInt16BE(at))
    let at = HEADER_BYTES
    for (let left = Math.min(questions ?? 0, MAX_RECORDS); left > 0; left -= 1) at = readName(packet, at).end + 4
    const count = sections.reduce((sum, one) => sum + one, 0)
    for (let left = Math.min(count, MAX_RECORDS); left > 0; left -= 1) {
      const { name, end } = readName(packet, at)
      const start = end + 10
      const next = start + packet.readUInt16BE(end + 8)
      if (next > packet.length) break
      const record = recordOf(packet, packet.readUInt16BE(end), name.toLowerCase(), start, next)
      if (record !== undefined) records.push(record)
      at = next
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  return records
}

function recordOf(packet: Buffer, type: number, name: string, start: number, next: number): DnsRecord | undefined {
  switch (type) {
    case PTR:
      return { type: 'PTR', name, target: readName(packet, start).name }
    case 33:
      return { type: 'SRV', name, target: readName(packet, start + 6).name, port: packet.readUInt16BE(start + 4) }
    case 16:
      return { type: 'TXT', name, texts: [...textsOf(packet.subarray(start, next))] }
    case 1:
      return next - start === 4 ? { type: 'A', name, address: [...packet.subarray(start, next)].join('.') } : undefined
    default:
      return undefined
  }
}

function* textsOf(data: Buffer): Generator<string> {
  for (let at = 0; at < data.length; at += 1 + data.readUInt8(at)) {
    yield data.toString('utf8', at + 1, at + 1 + data.readUInt8(at))
  }
}

/** Reads a name. `end` is the offset after the name. Pointers must point backwards, which prevents loops. */
function readName(packet: Buffer, start: number): { readonly name: string; readonly end: number } {
  const labels: string[] = []
  let end: number | undefined
  let at = start
  let earliest = start
  let bytes = 0
  for (;;) {
    const length = packet.readUInt8(at)
    if (length === 0) return { name: labels.join('.'), end: end ?? at + 1 }
    if (length >= 0xc0) {
      end ??= at + 2
      at = packet.readUInt16BE(at) & 0x3fff
      if (at >= earliest) throw new RangeError('a pointer points forwards')
      earliest = at
      continue
    }
    bytes += length + 1
    if (length > 63 || bytes > MAX_NAME_BYTES || at + length >= packet.length) throw new RangeError('no name')
    labels.push(packet.toString('utf8', at + 1, at + 1 + length))
    at += 1 + length
  }
}
