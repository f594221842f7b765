import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, onTestFinished, vi } from 'vitest'
import { full, it, openDoor, owner, rawAnswer, TOKENS } from './door.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const send = (body: string) => ({ method: 'POST', headers: JSON_TYPE, body })

describe('the API', () => {
  it.each([
    ['home/refresh', 'b/home/cmd/refresh'],
    ['bridge/ping', 'b/bridge/cmd/ping'],
    ['home/app/com.x/restart', 'b/home/app/com.x/cmd/restart'],
    ['home/app/com.x/set-setting/night_mode', 'b/home/app/com.x/cmd/set-setting/night_mode'],
    // The bridge encodes the topic level in its own way, regardless of the client's encoding.
    ['home/app/a%20b/restart', 'b/home/app/a%20b/cmd/restart'],
    ['home/app/%C3%BC~/restart', 'b/home/app/%C3%BC%7E/cmd/restart'],
    ['home/app/%c3%bc/restart', 'b/home/app/%C3%BC/cmd/restart'],
    ['home/app/a%2Fb/restart', 'b/home/app/a%2Fb/cmd/restart'],
    ['home/app/a%2B/restart', 'b/home/app/a%2B/cmd/restart'],
    ['home/refresh?x=y', 'b/home/cmd/refresh'],
  ])('maps %s to the command %s', async (path, topic) => {
    const { askAsOwner: ask, told } = await openDoor()
    expect((await ask(`/api/commands/${path}`, { method: 'POST' })).status).toBe(200)
    expect(told.map((one) => one.topic)).toEqual([topic])
  })

  it.each(['', 'home', 'home/app', 'home/app/x', 'home/%ff/x', '%2'])('finds no command for %s', async (path) => {
    const { askAsOwner: ask, told } = await openDoor()
    expect((await ask(`/api/commands/${path}`, { method: 'POST' })).status).toBe(404)
    expect(told).toEqual([])
  })

  it.each([
    ['home/app/x/enabled', '"true"', 'true'],
    ['home/app/x/enabled', 'true', 'true'],
    ['home/speak', '"Good \\"morning\\""', 'Good "morning"'],
    ['home/app/x/set-setting/y', '"quoted"', '"quoted"'],
    ['home/install', '{"id":"x"}', '{"id":"x"}'],
    ['home/speak', '"half', '"half'],
  ])('passes on a payload in the form of the command: %s %s', async (path, body, payload) => {
    const { askAsOwner: ask, told } = await openDoor()
    await ask(`/api/commands/${path}`, send(body))
    expect(told).toMatchObject([{ payload }])
  })

  it('accepts bodies up to the largest payload, with or without a length', async ({
    door: { askAsOwner: ask, told, port },
  }) => {
    const most = 64 * 1024
    expect((await ask('/api/commands/home/speak', send('x'.repeat(most)))).status).toBe(200)
    const refused = await ask('/api/commands/home/speak', send('x'.repeat(most + 2000)))
    expect(refused).toMatchObject({ status: 413, code: 'too_large' })
    expect(JSON.parse(refused.body)).toMatchObject({ error: { message: `Expected at most ${most + 1024} bytes.` } })
    expect(told).toHaveLength(1)
    const head = 'POST /api/commands/home/speak HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
    const chunk = `Transfer-Encoding: chunked\r\n\r\n20000\r\n${'x'.repeat(0x20000)}\r\n`
    const answer = await rawAnswer(port, `${head}Authorization: ${owner.authorization}\r\n${chunk}`)
    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    expect(told).toHaveLength(1)
  })

  it.each(['Content-Length: 100\r\n\r\n{', 'Transfer-Encoding: chunked\r\n\r\n5\r\n{'])(
    'logs no warning if a client disconnects during its body: %j',
    async (rest) => {
      const { ask, port, warnings } = await openDoor()
      // Send a request first, so that the code of the page and the API is loaded.
      await ask('/api/session')
      const socket = connect(port, '127.0.0.1')
      socket.write(`POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${rest}`)
      await ask('/api/session')
      socket.destroy()
      await once(socket, 'close')
      await ask('/api/session')
      expect(warnings).toEqual([])
    },
  )

  it('answers 500 without details if a route fails, and warns once', async () => {
    const clean = () => {
      throw new Error('secret detail')
    }
    const { askAsOwner: ask, warnings } = await openDoor({ clean })
    const answer = await ask('/api/commands/home/refresh', { method: 'POST' })
    expect(answer).toMatchObject({ status: 500, body: 'internal error\n' })
    expect(warnings).toHaveLength(1)
  })

  it('answers 500 without details if an answer cannot be written, and logs the details', async () => {
    const printed: unknown[] = []
    vi.spyOn(console, 'error').mockImplementation((text) => void printed.push(text))
    onTestFinished(() => void vi.restoreAllMocks())
    const { ask, warnings } = await openDoor({ reply: { status: 200, body: 'x', headers: { 'x-secret': 'a\nb' } } })
    expect(await ask('/')).toMatchObject({ status: 500, body: 'internal error\n' })
    expect(warnings).toHaveLength(1)
    expect(printed).toEqual([])
  })

  it('finds a route by its path as it was sent, neither decoded nor shortened', async ({
    door: { ask, askAsOwner, told },
  }) => {
    for (const path of ['/%61pi/session', '/x/../api/session', '//api/session', '/api/./session', '/api/session/']) {
      expect((await ask(path)).status, path).toBe(404)
    }
    expect((await askAsOwner('/api/hubs/../commands/home/refresh', { method: 'POST' })).status).toBe(404)
    expect(told).toEqual([])
  })

  it.each(['standby', 'undecided'] as const)(
    'answers 503 to commands while this bridge is in the role %s',
    async (role) => {
      const { askAsOwner: ask } = await openDoor({ role })
      expect(await ask('/api/commands/home/refresh', { method: 'POST' })).toMatchObject({
        status: 503,
        code: 'standby',
      })
    },
  )

  it('reports the methods of a path, and unknown paths', async ({ door: { ask } }) => {
    const wrong = await ask('/api/state', { method: 'POST' })
    expect(wrong.status).toBe(405)
    expect(wrong.headers['allow']).toBe('GET')
    expect((await ask('/api/commands/home/refresh')).headers['allow']).toBe('POST')
    expect(await ask('/api/nothing')).toMatchObject({ status: 404, code: 'unknown_path' })
    expect((await ask('/api/live')).status).toBe(426)
    expect((await ask('/api/session', { method: 'HEAD' })).body).toBe('')
  })

  it('shows the configuration without a secret', async () => {
    const { ask } = await openDoor({ env: { HTTP_TOKENS: TOKENS, HTTP_PASSWORD: 'page password' } })
    const { body } = await ask('/api/config', { headers: full })
    expect(body).toContain('api_key: ')
    for (const secret of ['token-that-may-everything', 'page password', 'key-of-the-hub'])
      expect(body).not.toContain(secret)
  })

  it('serves its own description', async ({ door: { ask } }) => {
    expect(JSON.parse((await ask('/api/openapi.json')).body)).toMatchObject({ openapi: '3.1.0' })
  })
})
