import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../support/at-end.ts'
import { Mosquitto } from '../support/brokers.ts'
import { Authority, openssl } from '../support/certificates.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { settled, startLink, withoutMosquitto } from './support.ts'

describe.skipIf(withoutMosquitto || !openssl)('over TLS', () => {
  const folder = temporaryFolder(afterAll)
  let authority: Authority
  const pem = (name: string) => authority.pem(name)

  beforeAll(() => {
    authority = new Authority(folder)
    for (const name of ['server', 'client']) authority.issue(name)
  })

  const listener = async (...more: string[]) => {
    const port = await freePort()
    const file = (name: string) => authority.file(name)
    const files = [`cafile ${file('ca.pem')}`, `certfile ${file('server.pem')}`, `keyfile ${file('server.key')}`]
    return { port, config: [`listener ${port} 127.0.0.1`, ...files, ...more] }
  }

  test.each(['mqtts', 'wss'])(
    '%s: is online if the certificate authority is known, and otherwise reports that it is not',
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

  test('a client certificate is accepted', async () => {
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
