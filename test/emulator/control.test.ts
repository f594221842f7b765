import { request } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { emulateProcesses } from '../../src/emulator/command.ts'
import { CONTROL, openControl } from '../../src/emulator/control.ts'
import type { EmulatedHubOptions } from '../../src/emulator/hub.ts'
import { BEHAVIOURS } from '../../src/emulator/misbehaviour.ts'
import { until } from '../support/until.ts'
import { APP, written } from './processes/support.ts'
import { ask, HUE, hubOf, KEY, subscribed } from './support.ts'

async function controlled(options: EmulatedHubOptions = {}) {
  const hub = await hubOf(options)
  const control = await openControl(hub, 0)
  onTestFinished(() => control[Symbol.asyncDispose]())
  const command = async (line: string, body?: unknown, headers: Record<string, string> = {}) => {
    const [method = '', path = ''] = line.split(' ')
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const answer = await fetch(`${control.url}${path}`, { method, headers, ...sent })
    return { status: answer.status, json: await answer.json() }
  }
  return { hub, control, command }
}

describe('over the control port', () => {
  test('a behaviour is set with its options, listed while it is active, and cleared', async () => {
    const { hub, command } = await controlled()
    const options = { status: 503, operation: ['getApps'], times: 2 }
    expect(await command('PUT /behaviours/answer-status', options)).toEqual({ status: 200, json: null })
    expect((await ask(hub, 'GET /apps/app')).status).toBe(503)
    expect((await command('GET /behaviours')).json).toEqual([{ name: 'answer-status', options, left: 1 }])
    await command('PUT /behaviours/realtime-silent')
    await command('DELETE /behaviours/answer-status')
    expect((await ask(hub, 'GET /apps/app')).status).toBe(200)
    expect((await command('GET /behaviours')).json).toEqual([{ name: 'realtime-silent', options: {}, left: null }])
    await command('DELETE /behaviours')
    expect((await command('GET /behaviours')).json).toEqual([])
  })

  test('every behaviour can be set without options', async () => {
    const { hub, command } = await controlled()
    const names = Object.keys(BEHAVIOURS)
    for (const name of names) expect([name, (await command(`PUT /behaviours/${name}`, {})).status]).toEqual([name, 200])
    expect(hub.behaviours.map(({ name }) => name)).toEqual(names)
  })

  test.each([
    ['PUT /behaviours/answer-politely', {}, 404, 'There is no behaviour answer-politely'],
    ['PUT /behaviours/answer-status', { status: '503' }, 400, /^status: /],
    ['PUT /behaviours/answer-status', { operation: 'getNothing' }, 400, /^operation: /],
    ['PUT /behaviours/lose-events', { operation: 'getApps' }, 400, /^operation: /],
    ['PUT /behaviours/realtime-hung', { times: 1 }, 400, /^times: /],
    ['PUT /behaviours/gateway-answer', { type: 'a\r\nb: c' }, 400, 'type: cannot be sent in a header'],
    ['PUT /behaviours/redirect', { location: 'a\nb' }, 400, 'location: cannot be sent in a header'],
    ['PUT /behaviours/other-identity', { id: 'ü€' }, 400, 'id: cannot be sent in a header'],
    ['PUT /behaviours/pretend', [], 400, 'The body must be a JSON object'],
    ['POST /apps/nobody/crash', {}, 404, 'App Not Found'],
    ['PUT /apps/nobody/devices', { state: 'away' }, 404, 'App Not Found'],
    ['PUT /behaviours/slow-headers', { ms: 2 ** 31 }, 400, /^ms: /],
    ['POST /reboot', { downMs: -1 }, 400, 'Invalid Parameter: downMs'],
    ['POST /reboot', { id: 'a\nb' }, 400, 'Invalid Parameter: id'],
    ['POST /reboot', { version: '' }, 400, 'Invalid Parameter: version'],
    ['GET /nothing', undefined, 404, 'Not Found'],
    ['POST /behaviours', undefined, 404, 'Not Found'],
  ])('%s with %j is refused with a reason', async (line, body, status, reason) => {
    const { command } = await controlled()
    const wanted = typeof reason === 'string' ? reason : expect.stringMatching(reason)
    expect(await command(line, body)).toMatchObject({ status, json: { error_description: wanted } })
  })

  test('requests and spoken texts are listed, without keys, and cleared', async () => {
    const { hub, command } = await controlled({ flavour: 'older' })
    await ask(hub, 'POST /speech-output/say', { body: { text: 'Hello' } })
    expect((await command('GET /spoken')).json).toEqual(['Hello'])
    const { json } = await command('GET /requests')
    expect(json).toMatchObject([{ via: 'rest', operation: 'say', body: { text: 'Hello' }, status: 200 }])
    expect(JSON.stringify(json)).not.toContain('secret')
    await command('DELETE /requests')
    expect((await command('GET /requests')).json).toEqual([])
  })

  test.each(['older', 'newer'] as const)('only a running app can be made to crash, %s', async (flavour) => {
    const { hub, command } = await controlled({ flavour })
    const crash = async () => await command(`POST /apps/${HUE}/crash`)
    const refusal = { status: 503, json: { error: 'not_running' } }
    expect((await crash()).status).toBe(200)
    const crashed = hub.apps.get(HUE)
    expect(await crash()).toMatchObject(refusal)
    expect(hub.apps.get(HUE)).toEqual(crashed)
    hub.disable(HUE)
    expect(await crash()).toMatchObject(refusal)
    hub.enable(HUE)
    expect((await crash()).status).toBe(200)
  })

  test('an app crashes, sessions end, and the hub reboots with another version', async () => {
    const { hub, command } = await controlled()
    await command(`POST /apps/${HUE}/crash`, { message: 'Error: told to' })
    expect(hub.apps.get(HUE)).toMatchObject({ crashed: true, crashedMessage: 'Error: told to' })
    const session = await subscribed(hub)
    expect((await command('GET /connections')).json).toMatchObject({ sessions: 1, subscribers: 1 })
    await command('POST /realtime/drop', { how: 'goodbye' })
    await until('the session to end', () => session.gone.length > 0)
    expect((await command('POST /reboot', { version: '9.9.9' })).status).toBe(200)
    expect((await ask(hub, 'GET /system/ping')).headers['x-homey-version']).toBe('9.9.9')
  })
})

test('an app that is a process really crashes, and a reboot starts it again', async () => {
  const folder = written('export default () => {}')
  await using running = await emulateProcesses({ keys: { [KEY]: ['hub'] } }, { appFolders: [folder] })
  const { hub } = running
  await using control = await openControl(hub, 0)
  const state = () => hub.apps.get(APP)?.state
  await until('the app to run', () => state() === 'running')
  await fetch(`${control.url}/apps/${APP}/crash`, { method: 'POST' })
  await until('the crash', () => state() === 'crashed')
  expect(hub.apps.get(APP)?.crashedMessage).toMatch(/^Error: crashed on demand\n {4}at /)
  await fetch(`${control.url}/reboot`, { method: 'POST' })
  await until('the app to run again', () => state() === 'running')
})

describe('the control port', () => {
  test('is closed to web pages: with another host name, and from any origin', async () => {
    const { hub, control, command } = await controlled()
    const { port } = new URL(control.url)
    const named = new Promise((resolve, reject) => {
      const headers = { host: `evil.example:${port}` }
      request({ port, method: 'DELETE', path: '/requests', headers }, ({ statusCode }) => resolve(statusCode))
        .on('error', reject)
        .end()
    })
    expect(await named).toBe(421)
    const headers = { origin: 'http://evil.example', 'content-type': 'text/plain' }
    expect((await command('PUT /behaviours/never-answer', {}, headers)).status).toBe(403)
    expect(hub.behaviours).toEqual([])
  })

  test('lists no endpoint twice', () => {
    const lines = CONTROL.map(({ method, path }) => `${method} ${path}`)
    expect(new Set(lines).size).toBe(lines.length)
  })
})
