/** Tests the time limits of the listener. They take seconds, so the tests run concurrently. */
import { describe, expect, it } from 'vitest'
import { listen } from '../../../src/web/server/server.ts'
import { openDoor, rawAnswer } from './door.ts'

describe.concurrent('the HTTP listener', () => {
  it.for<[what: string, text: string]>([
    ['its request', 'GET /livez HTTP/1.1\r\n'],
    [
      'its body',
      'POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
    ],
  ])('closes the connection of a client that does not complete %s', async ([, text], { onTestFinished: atEnd }) => {
    const { port } = await openDoor({ atEnd })
    expect(await rawAnswer(port, text)).toMatch(/^HTTP\/1\.1 408 /)
  })

  it('closes a connection after ten seconds without data', async () => {
    const routes = { '/never': () => new Promise<never>(() => {}) }
    const options = { host: '127.0.0.1', port: 0, allowedHosts: [], routes, log: { warn() {} } }
    await using listener = await listen(options)
    expect(await rawAnswer(Number(new URL(listener.url).port), 'GET /never HTTP/1.1\r\nHost: localhost\r\n\r\n')).toBe(
      '',
    )
  })

  it('waits longer for a command than for anything else', async ({ onTestFinished: atEnd }) => {
    const { askAsOwner: ask } = await openDoor({ commandMs: 11_000, atEnd })
    expect((await ask('/api/commands/home/refresh', { method: 'POST' })).status).toBe(200)
  })
})
