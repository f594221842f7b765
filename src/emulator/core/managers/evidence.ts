/** Devices, flows, logs and updates. All data is derived from the apps' records. */
import * as v from 'valibot'
import { HubError } from '../../hub-error.ts'
import type { AppRecord, Flavour } from '../../records.ts'
import { type Core, type Endpoints, endpoint } from '../endpoint.ts'

/** Derives a number below `end` from an app's id. */
const numberOf = (id: string, end: number) =>
  [...Buffer.from(id)].reduce((sum, byte) => (sum * 31 + byte) % 9973, 7) % end

/** The flavours with these managers: those that emulate real hubs. */
const REAL_FLAVOURS: readonly Flavour[] = ['older', 'newer', 'self-hosted']

const byId = ({ apps }: Core, thingsOf: (record: AppRecord) => readonly { readonly id: string }[]) =>
  Object.fromEntries([...apps.records.values()].flatMap(thingsOf).map((thing) => [thing.id, thing]))

/** Returns the one to three devices of an app with drivers. They are available only while the app is running. */
function devicesOf({ flavour, away }: Core, { id: app, state, hasDrivers }: AppRecord) {
  const driver =
    flavour === 'older' ? { driverUri: `homey:app:${app}`, driverId: 'thing' } : { driverId: `homey:app:${app}:thing` }
  const available = state === 'running' && !away.has(app)
  return Array.from({ length: hasDrivers === false ? 0 : 1 + numberOf(app, 3) }, (_, at) => ({
    id: `device-${app}-${at}`,
    name: `Thing ${at + 1}`,
    ...driver,
    zone: 'zone-1',
    class: 'sensor',
    capabilities: ['onoff'],
    capabilitiesObj: { onoff: { id: 'onoff', type: 'boolean', value: true } },
    available,
    unavailableMessage: available ? null : 'The app does not answer',
  }))
}

export const DEVICES = {
  getDevices: endpoint('GET /device', 'homey.device.readonly', {
    only: REAL_FLAVOURS,
    run: (core) => byId(core, (record) => devicesOf(core, record)),
  }).doc('All devices by id. A device is unavailable while its app is not running.'),
} as const satisfies Endpoints

const flowOf = (app: string, enabled: boolean) => ({ name: `With ${app}`, enabled: true, broken: enabled !== true })

export const FLOWS = {
  getFlows: endpoint('GET /flow', 'homey.flow.readonly', {
    only: REAL_FLAVOURS,
    run: (core) =>
      byId(core, ({ id, enabled }) => {
        const uri = `homey:app:${id}`
        const cards = { trigger: { uri, id: 'changed' }, conditions: [], actions: [{ uri, id: 'act', args: {} }] }
        return [{ id: `flow-${id}`, ...flowOf(id, enabled), ...cards }]
      }),
  }).doc('All flows by id. Each app has one flow.'),
  getAdvancedFlows: endpoint('GET /advancedflow', 'homey.flow.readonly', {
    only: REAL_FLAVOURS,
    run: (core) =>
      byId(core, ({ id, enabled }) => {
        const cards = { one: { type: 'trigger', id: `homey:app:${id}:changed` }, two: { type: 'delay' } }
        return numberOf(id, 2) === 1 ? [{ id: `advanced-${id}`, ...flowOf(id, enabled), cards }] : []
      }),
  }).doc('All advanced flows by id.'),
} as const satisfies Endpoints

const HOUR_MS = 3_600_000
/** Resolution of a log → the period that it covers, and the time between its values. */
const RESOLUTIONS = {
  lastHour: { span: HOUR_MS, step: 60_000 },
  last24Hours: { span: 24 * HOUR_MS, step: 300_000 },
  last7Days: { span: 168 * HOUR_MS, step: HOUR_MS },
} as const

const FIGURES = { cpu: '%', memory: 'B' } as const

export const INSIGHTS = {
  getLogs: endpoint('GET /log', 'homey.insights.readonly', {
    only: REAL_FLAVOURS,
    run: ({ apps, flavour }) =>
      [...apps.records.keys()].flatMap((app) => {
        const uri = `homey:app:${app}`
        return Object.entries(FIGURES).map(([name, units]) =>
          flavour === 'older'
            ? { id: name, uri, type: 'number', units }
            : { id: `${uri}:${name}`, uri, ownerUri: uri, type: 'number', units },
        )
      }),
  }).doc('The logs of CPU and memory of each app. On newer hubs the id contains the owner.'),
  getLogEntries: endpoint('GET /log/:uri/:id/entry', 'homey.insights.readonly', {
    only: REAL_FLAVOURS,
    accepts: { resolution: v.optional(v.picklist(['lastHour', 'last24Hours', 'last7Days'])) },
    run({ apps, clock }, { uri, id, resolution = 'lastHour' }) {
      const usage = apps.records.get(uri.replace('homey:app:', ''))?.usage
      const name = id.replace(`${uri}:`, '')
      if (usage === undefined || !Object.hasOwn(FIGURES, name)) throw new HubError(404, 'not_found', 'Log Not Found')
      const { span, step } = RESOLUTIONS[resolution]
      const latest = name === 'cpu' ? usage.cpu * 100 : usage.mem
      const count = span / step
      const end = Math.floor(clock.now() / step) * step
      const values = Array.from({ length: count }, (_, at) => {
        const back = count - 1 - at
        return { t: new Date(end - back * step).toISOString(), v: latest * (1 - 0.1 * Math.sin(back / 3)) }
      })
      return { id, uri, step, values }
    },
  }).doc('The values of a log. The latest value is the current usage.'),
} as const satisfies Endpoints

export const UPDATES = {
  getUpdates: endpoint('GET /update', 'homey.updates.readonly', { only: REAL_FLAVOURS, run: () => [] }).doc(
    "The available updates of the hub's firmware; the list is always empty.",
  ),
} as const satisfies Endpoints
