/** The emulated hubs, in a separate process that is controlled over its IPC channel. */
import { setImmediate, setTimeout } from 'node:timers/promises'
import * as v from 'valibot'
import { EmulatedHub } from '../../src/emulator/hub.ts'
import { population } from '../../src/emulator/population.ts'
import { HUB_REQUEST, type HubAnswer, type HubRequest, keyOf } from './protocol.ts'

/** The number of events that are sent in one turn of the event loop. */
const BATCH = 50

const hubs: EmulatedHub[] = []
let ids: string[] = []

const SCOPES = ['hub.app', 'hub.speech']
const EVIDENCE = ['system', 'updates', 'device', 'flow', 'insights'].map((name) => `hub.${name}.readonly`)
const STACK = `TypeError: Cannot read properties of undefined (reading 'lamp')${'\n    at Lamp.onInit (/app/drivers/lamp.js:12:5)'.repeat(9)}`

async function open(count: number, apps: number, evidence: boolean): Promise<string[]> {
  const seeds = population(apps).map(({ crashed: _, update: __, ...seed }) => ({ ...seed, enabled: true }))
  ids = seeds.map(({ id }) => id)
  for (let i = 0; i < count; i += 1) {
    const hub = await EmulatedHub.start({
      // Like real ids, these ids have 24 hexadecimal digits.
      id: `5f0c8a1b2d3e4f5061${i.toString(16).padStart(6, '0')}`,
      flavour: 'older',
      keys: { [keyOf(i)]: evidence ? [...SCOPES, ...EVIDENCE] : SCOPES },
      apps: seeds,
      settleMs: 0,
    })
    hubs.push(hub)
  }
  return hubs.map(({ url }) => url)
}

const now = () => Number(process.hrtime.bigint()) / 1e6

/** Returns a change of the usage, which the bridge publishes in the app's state but not as an event. */
const usage = (value: number) => ({ usage: { cpu: (value % 90) / 100, mem: value } })

const eventful = (value: number) => ({ autoupdate: value % 2 === 0, ...usage(value) })

async function inTime(started: number, events: number, perSecond: number): Promise<void> {
  await setTimeout(Math.max(0, started + (events * 1000) / perSecond - now()))
}

async function burst({
  events,
  from,
  eventful: withEvents,
  perSecond,
}: Extract<HubRequest, { do: 'burst' }>): Promise<number> {
  const started = now()
  const patch = withEvents ? eventful : usage
  for (let i = 0; i < events; i += 1) {
    const hub = hubs[Math.floor(i / ids.length) % hubs.length]
    hub?.change(ids[i % ids.length] ?? '', patch(from + i))
    if (i % BATCH < BATCH - 1) continue
    if (perSecond === undefined) await setImmediate()
    else await inTime(started, i + 1, perSecond)
  }
  return started
}

function execute(request: HubRequest): unknown {
  switch (request.do) {
    case 'open':
      return open(request.hubs, request.apps, request.evidence)
    case 'requests':
      return hubs.reduce((sum, { requests }) => sum + requests.length, 0)
    case 'crash':
      hubs[0]?.crash(ids[0] ?? '', STACK)
      return null
    case 'subscribers':
      return hubs.reduce((sum, { connections }) => sum + connections.subscribers, 0)
    case 'burst':
      return burst(request)
  }
}

process.on('message', async (message) => {
  const request = v.parse(HUB_REQUEST, message)
  const answer: HubAnswer = { result: await execute(request) }
  process.send?.(answer)
})
process.on('disconnect', () => process.exit())
