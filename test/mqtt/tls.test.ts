import { copyFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../support/at-end.ts'
import { startBridge } from '../support/bridge.ts'
import { Mosquitto } from '../support/brokers.ts'
import { Authority, openssl } from '../support/certificates.ts'
import { Observer } from '../support/observer.ts'
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

  test('renewed certificates and keys are used for the next connection, without a restart', async () => {
    const { port, config } = await listener('require_certificate true')
    const renewed = new Authority(temporaryFolder())
    for (const name of ['server', 'client']) renewed.issue(name)
    const own = temporaryFolder()
    const renew = (from: Authority) => {
      for (const name of ['ca.pem', 'client.pem', 'client.key']) copyFileSync(from.file(name), join(own, name))
    }
    renew(authority)
    const first = await Mosquitto.start({ config })
    const hub = { HUB_URL: 'http://127.0.0.1:1', HUB_API_KEY: 'key', MQTT_URL: `mqtts://127.0.0.1:${port}` }
    await using bridge = startBridge({
      ...hub,
      MQTT_CA_FILE: join(own, 'ca.pem'),
      MQTT_CERT_FILE: join(own, 'client.pem'),
      MQTT_KEY_FILE: join(own, 'client.key'),
    })
    await until('the connection', () => bridge.lines.some((line) => line.includes('connected to the MQTT broker (')))
    await first[Symbol.asyncDispose]()
    const folders = (text: string) => text.replaceAll(folder, dirname(renewed.file('ca.pem')))
    await using _second = await Mosquitto.start({ config: config.map(folders) })
    // The link must not give up when the key file is missing, because the file may be about to be replaced.
    rmSync(join(own, 'client.key'))
    await until('the refusal', () => bridge.lines.some((line) => line.includes('"reason":"tls"')))
    const unreadable = () => bridge.lines.filter((line) => line.includes('its former content stays in use'))
    expect(unreadable()).toEqual([expect.stringMatching(/client\.key.*ENOENT/)])
    renew(renewed)
    await until('the new connection', () =>
      bridge.lines.some((line) => line.includes('connected to the MQTT broker again')),
    )
    expect(unreadable()).toHaveLength(1)
  })

  test('a rollout connects although a certificate is missing at the moment', async () => {
    const { port, config } = await listener()
    await using broker = await Mosquitto.start({ config })
    const own = join(temporaryFolder(), 'ca.pem')
    copyFileSync(authority.file('ca.pem'), own)
    const hub = { HUB_URL: 'http://127.0.0.1:1', HUB_API_KEY: 'key', MQTT_URL: `mqtts://127.0.0.1:${port}` }
    await using bridge = startBridge({ ...hub, MQTT_CA_FILE: own, COMMANDS_ALLOW: 'bridge/rollout' })
    await until('the connection', () => bridge.lines.some((line) => line.includes('connected to the MQTT broker (')))
    await using observer = await Observer.on(broker.port, { filter: 'hub2mqtt/bridge/result/rollout' })
    rmSync(own)
    const order = { command: 'restart', app: 'com.example.lights', transaction: 't' }
    await observer.publish('hub2mqtt/bridge/cmd/rollout', JSON.stringify(order))
    await until('the answer', () => observer.seen.length === 1)
    expect(observer.seen[0]?.text).toContain('No app on any hub matches')
  })
})
