import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { writeWhole } from '../../../src/config/own-file.ts'
import { withChoice } from '../../../src/web/server/setup/choice.ts'
import { findHubs } from '../../../src/web/server/setup/search.ts'
import { Setup, type SetupOptions } from '../../../src/web/server/setup/setup.ts'
import { temporaryFolder } from '../../support/at-end.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { silentLog } from '../../support/silent-log.ts'
import { at, EMBEDDED, emulate, KEY } from './house.ts'
import { answerPacket, startResponder } from './responder.ts'

const setup = (options: Partial<SetupOptions> = {}) =>
  new Setup({
    config: loadConfig({ env: {}, requireHub: false }).config,
    path: null,
    check: () => loadConfig({ env: {}, requireHub: false }),
    search: async () => [],
    tryEmbedded: async () => ({ url: 'mqtt://127.0.0.1:1883' }),
    log: silentLog,
    clock: systemClock,
    onWritten() {},
    ...options,
  })

describe('the setup', () => {
  test('offers the hubs that are found in the network, and can be finished with one of them', async () => {
    const hub = await emulate()
    const port = Number(new URL(hub.url).port)
    const packet = answerPacket([{ service: '_homey._tcp', instance: 'Villa', port, texts: ['name=Villa'] }])
    const { at: to, questions } = await startResponder([packet])
    const path = join(temporaryFolder(), 'hub2mqtt.yaml')
    const door = setup({ path, search: () => findHubs({ clock: systemClock, to }) })
    const [look, again] = await Promise.all([door.read(), door.read()])
    expect(look).toEqual({ path, broker: 'embedded', found: [{ name: 'Villa', url: hub.url }] })
    expect(again).toEqual(look)
    expect(questions.length).toBeLessThanOrEqual(2)
    const url = look.found[0]?.url ?? ''
    expect(await door.testHub(at(url))).toMatchObject({ ok: true })
    expect(await door.apply({ hub: at(url), broker: EMBEDDED })).toMatchObject({ written: path })
    expect(readFileSync(path, 'utf8')).toBe(`hubs:\n  home:\n    url: ${url}\n    api_key: ${KEY}\n`)
  })

  test('starts the bridge after the answer was sent, and accepts one of two tabs that finish at the same time', async () => {
    const begun: string[] = []
    const path = join(temporaryFolder(), 'hub2mqtt.yaml')
    const door = setup({ path, onWritten: () => begun.push('begun') })
    const finish = (name: string) => door.apply({ hub: at('http://127.0.0.1:1', { name }), broker: EMBEDDED })
    door.answered()
    const [first, second] = await Promise.allSettled([finish('one'), finish('other')])
    expect(first).toMatchObject({ status: 'fulfilled', value: { written: path } })
    expect(second).toMatchObject({ status: 'rejected', reason: { message: expect.stringContaining('another tab') } })
    expect(begun).toEqual([])
    door.answered()
    expect(begun).toEqual(['begun'])
    await expect(finish('third')).rejects.toThrow('another tab')
    expect(readFileSync(path, 'utf8').match(/\w+(?=:\n {4}url)/g)).toEqual(['one'])
  })
})

test('tests of addresses are limited to twenty in a minute', async () => {
  const clock = new FakeClock()
  const door = setup({ clock })
  for (let left = 20; left > 0; left -= 1) expect(await door.testBroker(EMBEDDED)).toMatchObject({ ok: true })
  const refused = { reply: { status: 429, headers: { 'retry-after': '60' } } }
  await expect(door.testBroker(EMBEDDED)).rejects.toMatchObject(refused)
  await clock.advance(60_000)
  expect(await door.testBroker(EMBEDDED)).toMatchObject({ ok: true })
})

test('the secrets of a test are masked in the log afterwards', async () => {
  const secrets: string[] = []
  const door = setup({ log: { addSecret: (secret) => void secrets.push(secret), warn() {} } })
  await door.testHub(at('http://127.0.0.1:1'))
  await door.testBroker({ ...EMBEDDED, username: 'x', password: 'password of the broker' })
  expect(secrets).toEqual([KEY, 'password of the broker'])
})

describe('the file', () => {
  test('is written completely or not at all, and no temporary file is left', async () => {
    const inside = temporaryFolder()
    const path = join(inside, 'hub2mqtt.yaml')
    mkdirSync(path)
    await expect(writeWhole(path, 'a: 1\n')).rejects.toThrow()
    expect(readdirSync(inside)).toEqual(['hub2mqtt.yaml'])
    const other = join(inside, 'other.yaml')
    writeFileSync(other, 'before')
    await writeWhole(other, 'after')
    expect(readFileSync(other, 'utf8')).toBe('after')
    expect(readdirSync(inside).sort()).toEqual(['hub2mqtt.yaml', 'other.yaml'])
  })

  test('gets the hub, and a new broker in place of the previous one with its credentials, and a JSON file stays JSON', () => {
    const before = 'mqtt:\n  url: mqtt://old # the old one\n  username: me\n  password_file: /run/x\n  keepalive: 10s\n'
    const broker = { url: ['mqtt://new'], username: null, password: null }
    expect(withChoice(before, { hub: at('http://h'), broker })).toBe(
      `mqtt:\n  url: mqtt://new # the old one\n  keepalive: 10s\nhubs:\n  home:\n    url: http://h\n    api_key: ${KEY}\n`,
    )
    const cluster = { ...broker, url: ['mqtt://one', 'mqtt://two'] }
    expect(withChoice(before, { hub: at('http://h'), broker: cluster })).toContain(
      'mqtt:\n  url:\n    - mqtt://one\n    - mqtt://two\n  keepalive: 10s\n',
    )
    expect(
      JSON.parse(
        withChoice('{"log": {"level": "debug"}}', { hub: at('http://h', { api_key: '0123' }), broker: undefined }),
      ),
    ).toEqual({
      log: { level: 'debug' },
      hubs: { home: { url: 'http://h', api_key: '0123' } },
    })
    const empty = 'hubs: # put yours here\n  # shed: ...\n'
    expect(withChoice(empty, { hub: at('http://h'), broker: undefined })).toMatch(
      /^hubs:\n {2}# put yours here\n {2}# shed: ...\n {2}home:\n/,
    )
    expect(withChoice('hubs_dir: x\nmqtt: # m\n', { hub: at('http://h'), broker })).toContain('mqtt:\n  # m\n  url:')
    expect(withChoice('# nothing\n', { hub: at('http://h'), broker: undefined })).toMatch(/^# nothing\n\nhubs:/)
  })

  test('keeps the line ends of Windows', () => {
    const text = '# nothing\n# else\nlog: {}\n# c\n# hubs:\n#   a: b\n'
    const inWindows = (lines: string) => lines.replaceAll('\n', '\r\n')
    const choice = { hub: at('http://h'), broker: undefined }
    expect(withChoice(inWindows(text), choice)).toBe(inWindows(withChoice(text, choice)))
  })
})
