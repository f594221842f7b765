import { createServer } from 'node:http'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { readRecords } from '../../../src/web/server/setup/dns.ts'
import { candidatesOf, findHubs } from '../../../src/web/server/setup/search.ts'
import { listening } from '../../support/at-end.ts'
import { emulate } from './house.ts'
import { answerPacket, type Service, startResponder } from './responder.ts'

const portOf = (url: string) => Number(new URL(url).port)
const serve = async (body: string, headers: Readonly<Record<string, string>>) => {
  const asked: { readonly path: string | undefined; readonly key: string | undefined }[] = []
  const server = createServer((request, response) => {
    asked.push({ path: request.url, key: request.headers.authorization })
    response.writeHead(200, headers).end(body)
  })
  return { port: await listening(server), asked }
}
const find = async (...packets: readonly Buffer[]) => {
  const { at, questions } = await startResponder(packets)
  const found = await findHubs({ clock: systemClock, to: at })
  return { found, questions }
}

describe('the search for hubs', () => {
  test('offers hubs that announce themselves, and others that answer like hubs, each once and by its name', async () => {
    const [pro, server] = [await emulate('5f0c8a1b2d3e4f5061728311'), await emulate('5f0c8a1b2d3e4f5061728312')]
    const services: Service[] = [
      { service: '_homey._tcp', instance: 'x', port: portOf(pro.url), texts: ['id=1', 'name=Villa \u0007'] },
      { service: '_http._tcp', instance: 'Homey', port: portOf(pro.url), address: '127.0.0.1' },
      { service: '_http._tcp', instance: 'Self-Hosted', port: portOf(server.url), address: '127.0.0.1' },
    ]
    const { found, questions } = await find(answerPacket(services))
    expect(found.toSorted((one, other) => one.name.localeCompare(other.name))).toEqual([
      { name: 'Self-Hosted', url: server.url },
      { name: 'Villa \\u0007', url: pro.url },
    ])
    expect(questions.length).toBeGreaterThan(0)
    // The user has not entered a key yet, so no key may be sent.
    for (const { path, ...asked } of [...pro.requests, ...server.requests]) {
      expect(path).toMatch(/\/system\/ping$/)
      expect(asked).not.toHaveProperty('key')
    }
  })

  test('offers no web server that answers everything, and nothing if there is no answer', async () => {
    const web = await serve('{"ok":true}', { 'content-type': 'application/json' })
    const services: Service[] = [
      { service: '_http._tcp', instance: 'Printer', port: web.port },
      { service: '_homey._tcp', instance: 'gone', port: 1 },
    ]
    const { found } = await find(answerPacket(services))
    expect(found).toEqual([])
    expect(web.asked.map(({ key }) => key)).toEqual([undefined, undefined])
  })

  test('sends requests to at most sixteen addresses, whatever a responder announces', async () => {
    const web = await serve('<p>', { 'content-type': 'text/html' })
    // Nothing listens on these ports, and the system does not assign them to other tests.
    const ports = Array.from({ length: 20 }, (_, i) => 1 + i)
    const services = ports.map((port): Service => ({ service: '_http._tcp', instance: `n${port}`, port }))
    const own: Service = { service: '_http._tcp', instance: 'seventeenth', port: web.port }
    const { found } = await find(
      ...services.slice(0, 16).map((one) => answerPacket([one])),
      answerPacket([own, ...services.slice(16)]),
    )
    expect(found).toEqual([])
    expect(web.asked).toEqual([])
  })

  test('follows no answer to an address outside of the home network', () => {
    const at = (address: string) =>
      candidatesOf(readRecords(answerPacket([{ service: '_http._tcp', instance: 'a', port: 81, address }])), '10.0.0.9')
    expect(at('192.168.1.20').map(({ url }) => url)).toEqual(['http://192.168.1.20:81'])
    for (const away of ['203.0.113.7', '127.0.0.1', '172.32.0.1', '0.0.0.0']) {
      expect(at(away).map(({ url }) => url)).toEqual(['http://10.0.0.9:81'])
    }
  })

  test('uses the port of the API if a hub announces another one', () => {
    const records = readRecords(answerPacket([{ service: '_homey._tcp', instance: 'Pro', port: 9999 }]))
    expect(candidatesOf(records, '10.0.0.9').map(({ url }) => url)).toEqual(['http://10.0.0.9:9999', 'http://10.0.0.9'])
  })
})

describe('packets', () => {
  const whole = answerPacket([
    { service: '_homey._tcp', instance: 'Villa', port: 80, address: '10.1.2.3', texts: ['name=Villa'] },
  ])

  test('are read with names that point back to others', () => {
    // A compressed answer: the name of the record is a pointer to the name in the question.
    const question = Buffer.from('055f68747470045f746370056c6f63616c00000c0001', 'hex')
    const header = Buffer.from('000084000001000100000000', 'hex')
    const answer = Buffer.from('c00c000c00010000000a0004016ec00c', 'hex')
    expect(readRecords(Buffer.concat([header, question, answer]))).toEqual([
      { type: 'PTR', name: '_http._tcp.local', target: 'n._http._tcp.local' },
    ])
  })

  test('end where they are cut off or point in a circle, and a question is not an answer', () => {
    expect(readRecords(whole)).toHaveLength(4)
    for (let length = 0; length < whole.length; length += 1) {
      expect(readRecords(whole.subarray(0, length)).length).toBeLessThan(4)
    }
    const circle = Buffer.from('00008400000000010000000001 61c00c000c00010000000a0002c00c'.replaceAll(' ', ''), 'hex')
    expect(readRecords(circle)).toEqual([])
    const asked = Buffer.from(whole)
    asked.writeUInt16BE(0, 2)
    expect(readRecords(asked)).toEqual([])
  })

  test('of any bytes are read without an exception', () => {
    const bytes = fc.uint8Array({ maxLength: 600 })
    void fc.assert(
      fc.property(bytes, fc.nat(whole.length - 1), (noise, at) => {
        const broken = Buffer.from(whole)
        broken.set(noise.subarray(0, whole.length - at), at)
        const head = Buffer.from('000084000001000900090009', 'hex')
        for (const packet of [Buffer.from(noise), broken, Buffer.concat([head, noise])]) {
          expect(candidatesOf(readRecords(packet), '10.0.0.9').length).toBeLessThanOrEqual(128)
        }
      }),
      { numRuns: 500 },
    )
  })
})
