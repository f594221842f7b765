import { execFileSync } from 'node:child_process'
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Mosquitto } from '../support/brokers.ts'
import { freePort } from '../support/ports.ts'
import { hasProgram } from '../support/skipped.ts'
import { until } from '../support/until.ts'
import { settled, startLink, withoutMosquitto } from './support.ts'

const openssl = hasProgram('openssl', ['version'], 'the tests over TLS', 'apt-get install openssl')

describe.skipIf(withoutMosquitto || !openssl)('over TLS', () => {
  const { path: folder, remove } = mkdtempDisposableSync(join(tmpdir(), 'tls-'))
  const file = (name: string) => join(folder, name)
  const pem = (name: string) => readFileSync(file(name), 'utf8')

  beforeAll(() => {
    const run = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    run('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=test authority', '-days', '2')
    for (const name of ['server', 'client']) {
      writeFileSync(file(`${name}.ext`), 'subjectAltName=IP:127.0.0.1,DNS:localhost\n')
      run('req', ...key, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`)
      run(
        'x509',
        '-req',
        '-in',
        `${name}.csr`,
        '-CA',
        'ca.pem',
        '-CAkey',
        'ca.key',
        '-CAcreateserial',
        '-days',
        '2',
        '-extfile',
        `${name}.ext`,
        '-out',
        `${name}.pem`,
      )
    }
  })

  afterAll(remove)

  const listener = async (...more: string[]) => {
    const port = await freePort()
    const files = [`cafile ${file('ca.pem')}`, `certfile ${file('server.pem')}`, `keyfile ${file('server.key')}`]
    return { port, config: [`listener ${port} 127.0.0.1`, ...files, ...more] }
  }

  test.each(['mqtts', 'wss'])(
    '%s: is online when the authority is known, and says so when it is not',
    async (scheme) => {
      const { port, config } = await listener(...(scheme === 'wss' ? ['protocol websockets'] : []))
      await using _broker = await Mosquitto.start({ config })
      const url = `${scheme}://127.0.0.1:${port}`
      await using known = startLink({ url, ca: pem('ca.pem') })
      await settled(known)
      await using blind = startLink({
        url: url.replace('127.0.0.1', 'localhost'),
        rejectUnauthorized: false,
        clientId: 'blind',
      })
      await settled(blind)
      await using stranger = startLink({ url, clientId: 'stranger' })
      await until('the refusal', () => stranger.link.status().reason)
      expect(stranger.link.status().reason).toBe('tls')
      expect(stranger.log.loud).toEqual([expect.stringMatching(/certificate/)])
    },
  )

  test('a client certificate opens the door', async () => {
    const { port, config } = await listener('require_certificate true')
    await using _broker = await Mosquitto.start({ config })
    const url = `mqtts://127.0.0.1:${port}`
    await using bridge = startLink({
      url,
      ca: pem('ca.pem'),
      cert: pem('client.pem'),
      key: Buffer.from(pem('client.key')),
    })
    await settled(bridge)
    await using stranger = startLink({ url, ca: pem('ca.pem'), clientId: 'stranger' })
    await until('the refusal', () => stranger.link.status().reason)
  })
})
