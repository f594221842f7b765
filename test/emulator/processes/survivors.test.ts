import { readdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import { Process } from '../../support/process.ts'
import { PROGRAM } from '../../support/program.ts'
import { available } from '../../support/skipped.ts'
import { until } from '../../support/until.ts'
import { isAlive, written } from './support.ts'

const hasProc = available(process.platform === 'linux', 'the end of apps with their hub', 'that looks into /proc')

/** Returns the ids of the processes whose command line contains this text. */
function processesWith(text: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text)
      } catch {
        return false
      }
    })
    .map(Number)
}

const IDLE = 'export default () => {}'
const BUSY_APP = "export default ({ log }) => setImmediate(() => { log('is busy'); for (;;) {} })"

test.runIf(hasProc).each([
  ['an idle app and a busy app', 'SIGKILL', [IDLE, BUSY_APP]],
  ['a busy app', 'SIGTERM', [BUSY_APP]],
] as const)('no app outlives its hub: %s, after %s', async (_name, signal, codes) => {
  const apps = codes.map((code) => {
    const id = `com.example.a${Math.random().toString(36).slice(2)}`
    return { id, folder: written(code, { id }) }
  })
  // Use the test's folder, because a killed hub leaves its temporary folder behind.
  const env = { ...process.env, TMPDIR: dirname(apps[0]?.folder ?? '') }
  const folders = apps.flatMap(({ folder }) => ['--app', folder])
  await using hub = new Process(process.execPath, [PROGRAM, 'emulate', '--port', '0', ...folders], { env })
  await hub.untilLine('emulated hub listening on')
  await hub.untilLine('is busy')
  const pids = apps.flatMap(({ id }) => processesWith(`\0${id}\0`))
  expect(pids).toHaveLength(apps.length)
  hub.signal(signal)
  await until('the end of the apps', () => !pids.some(isAlive), 5000)
  await hub.closed
  expect(apps.flatMap(({ id }) => processesWith(`\0${id}\0`))).toEqual([])
})
