import { expect, test } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { HttpGateway } from '../../support/http-gateway.ts'
import { Process } from '../../support/process.ts'
import { PROGRAM } from '../../support/program.ts'
import { until } from '../../support/until.ts'
import { APP, closeAtEnd, emulate, hasty, KEY, open, outcome, reportOn } from './support.ts'

closeAtEnd()

/** The number of writes that the examination sends if the hub executes all of them. */
const WRITES = 12
const numbers = Array.from({ length: WRITES }, (_, at) => at + 1)

type Hub = Awaited<ReturnType<typeof emulate>>

/** @param at the number of the write at which `happen` is called */
async function hubWith(at: number, happen: (hub: Hub) => 'cut' | undefined = () => undefined) {
  const hub = await emulate({ flavour: 'older' })
  const gateway = await HttpGateway.to(hub.port)
  open.use(gateway)
  let writes = 0
  gateway.rule(({ method, upgrade }) => {
    if (upgrade || method === 'GET') return undefined
    writes += 1
    return writes === at ? happen(hub) : undefined
  })
  const standing = () => {
    const { enabled, autoupdate, channel, version, state } = hub.apps.get(APP) ?? {}
    return { enabled, autoupdate, channel, version, state, settings: hub.settings(APP) }
  }
  return { hub, url: `http://127.0.0.1:${gateway.port}`, standing, writes: () => writes }
}

const all = { app: APP, writes: true, downgrade: '9.9.9' }

// Start these tests first, because the real program pauses, so they take longest.
test.concurrent.for(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s restores the app, and the restoration is reported',
  async (signal) => {
    const { hub, url, standing } = await hubWith(-1)
    const before = standing()
    const args = [PROGRAM, 'conformance', '--url', url, '--writes', '--app', APP]
    const env = { PATH: process.env['PATH'], HUB2MQTT_HUB_API_KEY: KEY }
    await using running = new Process(process.execPath, args, { env })
    await until('the app to be disabled', () => hub.apps.get(APP)?.enabled === false, 50_000)
    running.signal(signal)
    expect(await running.closed).toBe('code 1')
    expect(standing()).toEqual(before)
    expect(running.lines[0]).toBe('hub2mqtt can work with this hub and key. But: the examination was stopped early.')
    expect(running.lines).toContain('Left changed  nothing')
    expect(running.errors).toEqual(['hub2mqtt: stopping; restoring the app first'])
  },
)

test.concurrent.for(numbers)('an app is restored when the examination is stopped at write %i', async (at) => {
  const ending = new AbortController()
  const { url, standing, writes } = await hubWith(at, () => {
    ending.abort()
    return undefined
  })
  const before = standing()
  const report = await reportOn(url, { ...all, stops: () => ending.signal })
  expect(standing()).toEqual(before)
  expect(report).toMatchObject({ left: [], unseen: [] })
  const isStopped = writes() >= at
  expect(report.problems).toEqual(isStopped ? ['the examination was stopped early'] : [])
})

test.concurrent.for(numbers)('an app is restored when the hub reboots at write %i', async (at) => {
  const { url, standing } = await hubWith(at, (hub) => {
    void hub.reboot({ downMs: 500 })
    return 'cut'
  })
  const before = standing()
  const report = await reportOn(url, all)
  expect(standing()).toEqual(before)
  expect(report).toMatchObject({ left: [], unseen: [], problems: [] })
  expect(report.expectations.filter(({ result, mark }) => result === 'differs' && mark !== 'I')).toEqual([])
})

test.concurrent('a write that the hub executes without an answer is undone', async () => {
  const { hub, url, standing } = await hubWith(-1)
  const before = standing()
  for (const operation of ['setAppSetting', 'disableApp'] as const) {
    hub.behave('execute-then-reset', { operation, times: 1 })
  }
  expect(await reportOn(url, all)).toMatchObject({ left: [], unseen: [] })
  expect(standing()).toEqual(before)
})

test.concurrent('a state that can no longer be checked is reported', async () => {
  const { hub, url } = await hubWith(2, (one) => {
    one.setKeys({})
    return undefined
  })
  expect(await reportOn(url, all)).toMatchObject({
    usable: true,
    left: [],
    unseen: ['setting hub2mqtt-conformance'],
    problems: ['the app may not be restored: setting hub2mqtt-conformance'],
  })
  expect(hub.settings(APP)).toHaveProperty('hub2mqtt-conformance')
})

test.concurrent('a hub that takes over the address gets a single request with the key', async () => {
  const { hub, url } = await hubWith(5, (one) => {
    one.behave('other-identity', { id: 'other' })
    one.forgetRequests()
    return undefined
  })
  const report = await reportOn(url, all)
  expect(hub.requests.filter(({ via, key }) => via === 'rest' && key === KEY)).toHaveLength(1)
  expect(report.problems).toEqual([expect.stringContaining('the app may not be restored')])
})

test.concurrent('an install that never reached the hub leaves no doubt about the version', async () => {
  const hub = await emulate({ flavour: 'older' })
  const clock = hasty(200)
  let reboot: Promise<void> | undefined
  const rebooting: Clock = {
    ...clock,
    after(ms, task) {
      // The install is the first request after the speech.
      if (hub.spoken.length > 0) reboot ??= hub.reboot({ downMs: 500 })
      return clock.after(ms, task)
    },
  }
  const report = await reportOn(hub.url, { app: APP, writes: true, clock: rebooting })
  expect(outcome(report, 'installFromAppStore')).toBe('no_answer')
  expect(report).toMatchObject({ left: [], unseen: [], problems: [] })
  await reboot
})

test.concurrent('an app that is still starting after a long outage gets time to start', async () => {
  const hub = await emulate({ flavour: 'older' })
  const gateway = await HttpGateway.to(hub.port)
  open.use(gateway)
  const clock = hasty()
  const ending = new AbortController()
  let [outages, starts] = [0, 0]
  gateway.rule(({ method, path, upgrade }) => {
    if (path.endsWith('disable')) ending.abort()
    if (!ending.signal.aborted || upgrade || method !== 'GET' || path.endsWith('ping')) return undefined
    // Each failed read takes 20 s. Then the app starts.
    if (outages < 6) {
      outages += 1
      return { status: 503, headers: {}, text: '' }
    }
    return {
      change: (answer) => {
        const isApp = path.includes(APP) && answer.text.includes('"state"')
        if (!isApp || starts === 3) return answer
        starts += 1
        return { ...answer, text: answer.text.replace(/"state":"\w+"/, '"state":"starting"') }
      },
    }
  })
  const slow: Clock = { ...clock, elapsed: () => clock.elapsed() + outages * 20_000 }
  const options = { app: APP, writes: true, clock: slow, stops: () => ending.signal }
  const report = await reportOn(`http://127.0.0.1:${gateway.port}`, options)
  expect([outages, starts]).toEqual([6, 3])
  expect(report).toMatchObject({ left: [], unseen: [] })
})

test.concurrent('the newest version is installed again if the hub refuses this once', async () => {
  const hub = await emulate({ flavour: 'older' })
  const gateway = await HttpGateway.to(hub.port)
  open.use(gateway)
  let installs = 0
  gateway.rule(({ method, path }) => {
    if (method !== 'POST' || !path.endsWith('/store')) return undefined
    installs += 1
    // The first install is the downgrade, which the emulated hub would ignore.
    if (installs === 1) hub.change(APP, { version: '1.0.0' })
    if (installs === 3) hub.change(APP, { version: '2.1.0' })
    const status = installs === 2 ? 500 : 200
    return { status, headers: { 'content-type': 'application/json', 'x-homey-id': hub.id }, text: '{}' }
  })
  const report = await reportOn(`http://127.0.0.1:${gateway.port}`, { app: APP, writes: true })
  expect(installs).toBe(3)
  expect(report).toMatchObject({ left: [], unseen: [] })
})
