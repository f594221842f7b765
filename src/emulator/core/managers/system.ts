import { statfs } from 'node:fs/promises'
import { cpus, freemem, hostname, loadavg, tmpdir, totalmem } from 'node:os'
import * as v from 'valibot'
import { type Endpoints, endpoint } from '../endpoint.ts'

export const SYSTEM = {
  ping: endpoint('GET /ping', 'nothing', {
    accepts: { id: v.optional(v.string()) },
    run: (core, { id }) => (id ?? core.id) === core.id,
  }).doc('Needs no key. The headers X-Homey-ID and X-Homey-Version identify the hub, except for the kind `reference`.'),
  getInfo: endpoint('GET /', 'homey.system.readonly', {
    run: ({ version, uptime, flavour }) => ({
      homeyVersion: version,
      homeyModelName: 'Emulated hub',
      hostname: hostname(),
      platform: 'local',
      uptime: Math.round(uptime() / 1000),
      loadavg: loadavg(),
      cpus: cpus().map(({ model, speed }) => ({ model, speed })),
      totalmem: totalmem(),
      freemem: freemem(),
      ...((flavour === 'older' || flavour === 'newer') && {
        videoCoreTemperature: 50 + 5 * Math.sin(uptime() / 600_000),
        videoCoreUndervoltage: false,
        videoCoreThrottled: false,
      }),
    }),
  }).doc('The type and the health of the hub. Only hubs with their own hardware report a temperature.'),
  getMemoryInfo: endpoint('GET /memory', 'homey.system.readonly', {
    run: ({ apps }) => ({
      total: totalmem(),
      free: freemem(),
      types: Object.fromEntries(
        [...apps.records].map(([id, { name, usage }]) => [id, { name, type: 'app', size: usage.mem }]),
      ),
    }),
  }).doc('The memory of the machine, and the memory use of each app.'),
  getStorageInfo: endpoint('GET /storage', 'homey.system.readonly', {
    async run() {
      const { bsize, blocks, bavail } = await statfs(tmpdir())
      return { total: bsize * blocks, free: bsize * bavail }
    },
  }).doc('The total and the free disk space of the machine.'),
} as const satisfies Endpoints

export const SESSIONS = {
  getSessionMe: endpoint('GET /session/me', 'key', {
    only: ['older', 'newer', 'self-hosted'],
    run: (_core, _input, { scopes }) => ({ type: 'pat', scopes, intersectedScopes: scopes }),
  }).doc('The permissions of the key.'),
} as const satisfies Endpoints

/** The owner of the stored time of the last backup. It cannot be an app, because app ids contain no colon. */
const BACKUP_OWNER = 'manager:backup'
const LAST_BACKUP = 'lastSuccessfulBackup'

export const BACKUP = {
  scheduleBackup: endpoint('POST /backup', 'homey.system', {
    run({ store, clock }) {
      store.setSetting(BACKUP_OWNER, LAST_BACKUP, new Date(clock.now()).toISOString())
      return { id: 'backup-1' }
    },
  }).doc('Starts a backup.'),
  getOptionLastSuccessfulBackup: endpoint('GET /option/lastSuccessfulBackup', 'homey.system.readonly', {
    only: ['older', 'newer', 'self-hosted'],
    run: ({ store }) => store.settings(BACKUP_OWNER).get(LAST_BACKUP) ?? null,
  }).doc('The time of the last backup; `null` before the first one.'),
} as const satisfies Endpoints
