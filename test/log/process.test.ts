import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const module = new URL('../../src/log/log.ts', import.meta.url).href
const program = (format: string, body: string) =>
  `import { createLog } from ${JSON.stringify(module)}
   const log = createLog({ level: 'info', format: '${format}', secrets: ['top-secret'] })
   ${body}`

const run = (source: string, stdout: 'pipe' | number) =>
  spawn(process.execPath, ['--input-type=module', '--eval', source], { stdio: ['ignore', stdout, 'pipe', 'pipe'] })

describe.each(['json', 'pretty'])('a process that logs as %s', (format) => {
  it('has written its last line when it exits', async () => {
    const child = run(
      program(format, `for (let i = 0; i < 500; i++) log.info('line'); log.fatal('last top-secret'); process.exit(3)`),
      'pipe',
    )
    let text = ''
    child.stdout?.on('data', (chunk) => {
      text += chunk
    })
    const [code] = await once(child, 'close')
    expect(code).toBe(3)
    expect(text).toContain('last ***')
  })

  it('outlives the reader of its log', async () => {
    const body = `process.on('SIGUSR2', () => { for (let i = 0; i < 500; i++) log.info('nobody reads this'); process.exit(7) })
      setInterval(() => {}, 1000); log.info('ready')`
    const child = run(program(format, body), 'pipe')
    if (child.stdout === null) throw new Error('no pipe')
    await once(child.stdout, 'data')
    child.stdout.destroy()
    await once(child.stdout, 'close')
    child.kill('SIGUSR2')
    const [code] = await once(child, 'close')
    expect(code).toBe(7)
  })

  it.skipIf(!existsSync('/dev/full'))('outlives a full disk', async () => {
    const child = run(
      program(format, `for (let i = 0; i < 500; i++) log.info('no room'); process.exit(7)`),
      openSync('/dev/full', 'w'),
    )
    const [code] = await once(child, 'close')
    expect(code).toBe(7)
  })
})
