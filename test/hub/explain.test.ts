import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { HubError, type HubErrorCode } from '../../src/hub/errors.ts'
import { explain } from '../../src/hub/explain.ts'
import { listening } from '../support/at-end.ts'
import { startBridge } from '../support/bridge.ts'
import { startBroker } from '../support/brokers.ts'
import { JumpClock } from '../support/jump-clock.ts'
import { until } from '../support/until.ts'

const failure = (code: HubErrorCode, cause = '') =>
  new HubError(code, 'What was said.', { cause: Object.assign(new Error(cause), { code: cause }) })

test.each([
  ['unreachable', 'ECONNREFUSED', '10.0.0.1:81 refuses the connection', 'port'],
  ['unreachable', 'ENOTFOUND', 'the name 10.0.0.1 cannot be resolved', 'IP address'],
  ['unreachable', 'EHOSTUNREACH', 'nothing answers at 10.0.0.1:81', 'the hub is on'],
  ['unreachable', '', 'nothing answers at 10.0.0.1:81', 'the hub is on'],
  ['unreachable', 'ERR_SSL_WRONG_VERSION_NUMBER', '10.0.0.1:81 does not speak TLS', 'http://'],
  ['unreachable', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'the certificate of 10.0.0.1:81 is not trusted', 'homeylocal.com'],
  [
    'unreachable',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'is not trusted',
    'NODE_EXTRA_CA_CERTS to the file of your own authority and restart',
  ],
  ['no_answer', 'UND_ERR_SOCKET', 'does not answer like a hub: What was said', 'https://'],
  ['unauthorized', '', 'the hub does not accept the API key', 'https://my.homey.app'],
  ['forbidden', '', 'the API key lacks a permission', 'homey.app.readonly'],
  ['subscription', '', 'no valid licence', 'renew'],
  ['nonsense', '', 'is not a hub, or is still starting: What was said', 'a few minutes'],
  ['failed', '', 'the server at 10.0.0.1:81 fails: What was said', 'proxy in front'],
  ['rate_limited', '', 'What was said', 'wait'],
] as const)('%s by %j is explained: %s', (code, system, cause, remedy) => {
  const explained = explain(failure(code, system), 'http://user:canary@10.0.0.1:81/')
  expect(explained.cause).toContain(cause)
  expect(explained.remedy).toContain(remedy)
  expect(JSON.stringify(explained)).not.toContain('canary')
})

test('a user with /api in the address is advised to leave it out, unless the host is unreachable', () => {
  const url = 'http://10.0.0.1/proxy/api'
  expect(explain(failure('unsupported'), url).remedy).toBe('leave /api out of the address: http://10.0.0.1')
  expect(explain(failure('unreachable', 'ECONNREFUSED'), url).cause).toContain('refuses the connection')
})

test('the explanation is logged once, however often the hub is tried', async () => {
  const broker = await startBroker('aedes')
  onTestFinished(() => broker[Symbol.asyncDispose]())
  let tries = 0
  const server = createServer((socket) => {
    tries += 1
    socket.destroy()
  })
  const port = await listening(server)
  const clock = new JumpClock()
  const hub = { HUB_URL: `http://127.0.0.1:${port}`, HUB_API_KEY: 'key-for-tests' }
  await using bridge = startBridge({ ...hub, MQTT_URL: broker.url }, undefined, clock)
  const told = () => bridge.lines.filter((line) => line.includes('hub offline'))
  for (let wanted = 1; wanted <= 5; wanted += 1) {
    await until(`try ${wanted}`, () => {
      clock.jump(1_000)
      return tries >= wanted
    })
  }
  expect(told()).toHaveLength(1)
  expect(JSON.parse(told()[0] ?? '')).toMatchObject({
    msg: expect.stringContaining(
      `hub offline: 127.0.0.1:${port} accepts the connection but does not answer like a hub`,
    ),
    remedy: expect.stringContaining('https://'),
  })
})
