import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { runProgram } from '../support/process.ts'
import { SOURCES } from '../support/program.ts'

const SIGNALS = new URL('cli/signals.ts', pathToFileURL(SOURCES)).href

test('a SIGHUP that arrives before the daemon can reload its configuration reloads it as soon as it can, once', async () => {
  const script = `
    import { setTimeout as delay } from 'node:timers/promises'
    const { daemonSignals } = await import(${JSON.stringify(SIGNALS)})
    const { onReload } = daemonSignals()
    const received = new Promise((resolve) => process.once('SIGHUP', resolve))
    process.kill(process.pid, 'SIGHUP')
    while (!(await Promise.race([received.then(() => true), delay(10)])));
    for (const name of ['first', 'second']) onReload(() => console.log(name))
    process.exit()`
  const args = ['--input-type=module', '--eval', script]
  expect(await runProgram(process.execPath, args)).toEqual({ status: 0, stdout: 'first\n', stderr: '' })
})
