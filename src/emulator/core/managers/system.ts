import { statfs } from 'node:fs/promises'
import { cpus, freemem, hostname, loadavg, tmpdir, totalmem } from 'node:os'
import * as v from 'valibot'
import { type Endpoints, endpoint } from '../endpoint.ts'

export const SYSTEM = {
  ping: endpoint(
    'GET /ping',
    'nothing',
    'Needs no key. The headers X-Homey-ID and X-Homey-Version identify the hub, except for the kind `reference`.',
    { accepts: { id: v.optional(v.string()) }, run: (core, { id }) => (id ?? core.id) === core.id },
  ),
  getInfo: endpoint(
    'GET /',
    'homey.system.readonly',
    'The type and the health of the hub. Only hubs with their own hardware report a temperature.',
    {
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
    },
  ),
  getMemoryInfo: endpoint(
    'GET /memory',
    'homey.system.readonly',
    'The memory of the machine, and the memory use of each app.',
    {
      run: ({ apps }) => ({
        total: totalmem(),
        free: freemem(),
        types: Object.fromEntries(
          [...apps.records].map(([id, { name, usage }]) => [id, { name, type: 'app', size: usage.mem }]),
        ),
      }),
    },
  ),
  getStorageInfo: endpoint(
    'GET /storage',
    'homey.system.readonly',
    'The total and the free disk space of the machine.',
    {
      async run() {
        const { bsize, blocks, bavail } = await statfs(tmpdir())
        return { total: bsize * blocks, free: bsize * bavail }
      },
    },
  ),
} as const satisfies Endpoints

export const SESSIONS = {
  getSessionMe: endpoint('GET /session/me', 'key', 'The permissions of the key.', {
    only: ['older', 'newer', 'self-hosted'],
    run: (_core, _input, { scopes }) => ({ type: 'pat', scopes, intersectedScopes: scopes }),
  }),
} as const satisfies Endpoints

/** The owner of the stored time of the last backup. It cannot be an app, because app ids contain no colon. */
const BACKUP_OWNER = 'manager:backup'
const LAST_BACKUP = 'lastSuccessfulBackup'

export const BACKUP = {
  createBackup: endpoint('POST /backup', 'homey.system', 'Starts a backup.', {
    run({ store, clock }) {
      store.setSetting(BACKUP_OWNER, LAST_BACKUP, new Date(clock.now()).toISOString())
      return { id: 'backup-1' }
    },
  }),
  getOptionLastSuccessfulBackup: endpoint(
    'GET /option/lastSuccessfulBackup',
    'homey.system.readonly',
    'The time of the last backup; `null` before the first one.',
    {
      only: ['older', 'newer', 'self-hosted'],
      run: ({ store }) => store.settings(BACKUP_OWNER).get(LAST_BACKUP) ?? null,
    },
  ),
} as const satisfies Endpoints
