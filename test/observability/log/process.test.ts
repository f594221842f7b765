import { describe, expect, it } from 'vitest'
import { Process } from '../../support/process.ts'

const module = new URL('../../../src/observability/log.ts', import.meta.url).href
const program = (format: string, body: string) =>
  `import { createLog } from ${JSON.stringify(module)}
   const log = createLog({ level: 'info', format: '${format}', secrets: ['top-secret'] })
   ${body}`

const run = (source: string) =>
  new Process(process.execPath, ['--input-type=module', '--eval', source], { output: 'keep' })

describe('a process that logs', () => {
  it.each(['json', 'pretty'])('has written its last line as %s when it exits', async (format) => {
    await using child = run(
      program(format, `for (let i = 0; i < 500; i++) log.info('line'); log.fatal('last top-secret'); process.exit(3)`),
    )
    expect(await child.closed).toBe('code 3')
    expect(child.lines.at(-1)).toContain('last ***')
  })

  it('survives the reader of its log', async () => {
    const body = `process.on('SIGUSR2', () => { for (let i = 0; i < 500; i++) log.info('nobody reads this'); process.exit(7) })
      setInterval(() => {}, 1000); log.info('ready')`
    await using child = run(program('json', body))
    await child.untilLine('ready')
    child.output('break')
    child.signal('SIGUSR2')
    expect(await child.closed).toBe('code 7')
  })
})
