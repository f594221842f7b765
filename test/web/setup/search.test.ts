import { createServer } from 'node:http'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
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
      candidatesOf(answerPacket([{ service: '_http._tcp', instance: 'a', port: 81, address }]), '10.0.0.9')
    expect(at('192.168.1.20').map(({ url }) => url)).toEqual(['http://192.168.1.20:81'])
    for (const away of ['203.0.113.7', '127.0.0.1', '172.32.0.1', '0.0.0.0']) {
      expect(at(away).map(({ url }) => url)).toEqual(['http://10.0.0.9:81'])
    }
  })

  test('uses the port of the API if a hub announces another one', () => {
    const packet = answerPacket([{ service: '_homey._tcp', instance: 'Pro', port: 9999 }])
    expect(candidatesOf(packet, '10.0.0.9').map(({ url }) => url)).toEqual(['http://10.0.0.9:9999', 'http://10.0.0.9'])
  })
})

describe('packets', () => {
  const whole = answerPacket([
    { service: '_homey._tcp', instance: 'Villa', port: 80, address: '10.1.2.3', texts: ['name=Villa'] },
  ])
  const found = (packet: Buffer) => candidatesOf(packet, '10.0.0.9')

  test('are read with names in any case that point back to others', () => {
    // A compressed answer: the name of the record is a pointer to the name in the question.
    const header = Buffer.from('000084000001000200000000', 'hex')
    const question = Buffer.from('055f68545470045f746370056c6f63616c00000c0001', 'hex')
    const pointer = Buffer.from('c00c000c00010000000a0004016ec00c', 'hex')
    const service = Buffer.from('c02e002100010000000a00080000000000510000', 'hex')
    expect(found(Buffer.concat([header, question, pointer, service]))).toEqual([
      { url: 'http://10.0.0.9:81', name: 'n', isHub: false },
    ])
  })

  test('that are cut off contain no wrong address', () => {
    expect(found(whole)).toEqual([{ url: 'http://10.1.2.3', name: 'Villa', isHub: true }])
    const urls = Array.from(whole, (_, length) => found(whole.subarray(0, length)).map(({ url }) => url))
    expect(new Set(urls.flat())).toEqual(new Set(['http://10.0.0.9']))
  })

  test('whose names point in a circle contain nothing, and neither does a question', () => {
    expect(found(Buffer.from('00008400000000010000000061c00c000c00010000000a0002c00c', 'hex'))).toEqual([])
    const asked = Buffer.from(whole)
    asked.writeUInt16BE(0, 2)
    expect(found(asked)).toEqual([])
  })

  test('of any bytes are read without an exception', () => {
    const bytes = fc.uint8Array({ maxLength: 600 })
    void fc.assert(
      fc.property(bytes, fc.nat(whole.length - 1), (noise, at) => {
        const broken = Buffer.from(whole)
        broken.set(noise.subarray(0, whole.length - at), at)
        const head = Buffer.from('000084000001000900090009', 'hex')
        for (const packet of [Buffer.from(noise), broken, Buffer.concat([head, noise])])
          expect(found(packet).length).toBeLessThanOrEqual(128)
      }),
      { numRuns: 500 },
    )
  })
})
