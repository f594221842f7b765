/** The managers of the hub itself: system, sessions and backups. */

import { statfs } from 'node:fs/promises'
import { freemem, hostname, tmpdir, totalmem } from 'node:os'
import * as v from 'valibot'
import { type Endpoints, endpoint } from '../endpoint.ts'

/** The system. */
export const SYSTEM = {
  ping: endpoint({
    doc: 'Answers without a key. Hubs name themselves in the headers X-Homey-ID and X-Homey-Version; one of the reference does not.',
    request: 'GET /ping',
    needs: 'nothing',
    takes: { id: v.optional(v.string()) },
    run: (core, { id }) => (id ?? core.id) === core.id,
  }),
  getInfo: endpoint({
    doc: 'What the hub is.',
    request: 'GET /',
    needs: 'homey.system.readonly',
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
    request: 'GET /memory',
    needs: 'homey.system.readonly',
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
    request: 'GET /storage',
    needs: 'homey.system.readonly',
    async run() {
      const { bsize, blocks, bavail } = await statfs(tmpdir())
      return { total: bsize * blocks, free: bsize * bavail }
    },
  }),
} as const satisfies Endpoints

/** Sessions. */
export const SESSIONS = {
  getSessionMe: endpoint({
    doc: 'The permissions of the key.',
    request: 'GET /session/me',
    needs: 'key',
    only: ['older', 'newer', 'self-hosted'],
    run: (_core, _input, { scopes }) => ({ type: 'pat', scopes, intersectedScopes: scopes }),
  }),
} as const satisfies Endpoints

/** Backups, which are only simulated. */
export const BACKUP = {
  createBackup: endpoint({
    doc: 'Begins a backup.',
    request: 'POST /backup',
    needs: 'homey.system',
    run: () => ({ id: 'backup-1' }),
  }),
} as const satisfies Endpoints
