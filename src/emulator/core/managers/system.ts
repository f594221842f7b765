/** The managers of the hub itself: what it is, who asks, and its backups. */

import { statfs } from 'node:fs/promises'
import { freemem, hostname, tmpdir, totalmem } from 'node:os'
import * as v from 'valibot'
import { described, endpoint, type Item, NONE, optional } from '../endpoint.ts'

const bytes = (text: string) => described(v.number(), `Bytes ${text}.`)
const SPACE = v.object({ total: bytes('in all'), free: bytes('free') })

export const SYSTEM = {
  doc: 'The hub as a machine.',
  endpoints: {
    ping: endpoint({
      doc: 'Answers without a key. Hubs name themselves in the headers X-Homey-ID and X-Homey-Version; one of the reference does not.',
      method: 'GET',
      path: '/ping',
      needs: 'nothing',
      input: v.object({ id: optional(v.string(), 'The id of the hub that is looked for.') }),
      output: described(v.boolean(), '`false` where another hub is looked for.'),
      run: (core, { id }) => (id ?? core.id) === core.id,
    }),
    getInfo: endpoint({
      doc: 'What the hub is.',
      method: 'GET',
      path: '/',
      needs: 'homey.system.readonly',
      input: NONE,
      output: v.looseObject({
        homeyVersion: described(v.string(), 'The firmware.'),
        hostname: v.string(),
        platform: v.literal('local'),
        uptime: described(v.number(), 'Seconds.'),
      }),
      run: ({ version, uptime }) => ({
        homeyVersion: version,
        homeyModelName: 'Emulated hub',
        hostname: hostname(),
        platform: 'local',
        uptime: Math.round(uptime() / 1000),
      }),
    }),
    getMemoryInfo: endpoint({
      doc: 'The memory of the machine, and what each app uses of it.',
      method: 'GET',
      path: '/memory',
      needs: 'homey.system.readonly',
      input: NONE,
      output: v.object({
        ...SPACE.entries,
        types: described(
          v.record(v.string(), v.object({ name: v.string(), type: v.literal('app'), size: bytes('in use') })),
          'By the id of the app.',
        ),
      }),
      run: ({ apps }) => ({
        total: totalmem(),
        free: freemem(),
        types: Object.fromEntries(
          [...apps.records].map(([id, { name, usage }]) => [id, { name, type: 'app', size: usage.mem }]),
        ),
      }),
    }),
    getStorageInfo: endpoint({
      doc: 'The disk of the machine.',
      method: 'GET',
      path: '/storage',
      needs: 'homey.system.readonly',
      input: NONE,
      output: SPACE,
      async run() {
        const { bsize, blocks, bavail } = await statfs(tmpdir())
        return { total: bsize * blocks, free: bsize * bavail }
      },
    }),
  },
} as const satisfies Item

export const SESSIONS = {
  doc: 'Who asks.',
  endpoints: {
    getSessionMe: endpoint({
      doc: 'The permissions of the key.',
      method: 'GET',
      path: '/session/me',
      needs: 'key',
      only: ['older', 'newer', 'self-hosted'],
      input: NONE,
      output: v.object({
        type: v.literal('pat'),
        scopes: v.array(v.string()),
        intersectedScopes: described(v.array(v.string()), 'The ones that count.'),
      }),
      run: (_core, _input, { scopes }) => ({ type: 'pat', scopes, intersectedScopes: scopes }),
    }),
  },
} as const satisfies Item

export const BACKUP = {
  doc: 'Backups, which are only pretended.',
  endpoints: {
    createBackup: endpoint({
      doc: 'Begins a backup.',
      method: 'POST',
      path: '/backup',
      needs: 'homey.system',
      input: NONE,
      output: v.object({ id: v.string() }),
      run: () => ({ id: 'backup-1' }),
    }),
  },
} as const satisfies Item
