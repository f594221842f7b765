import { spawnSync } from 'node:child_process'
import {
  accessSync,
  constants,
  copyFileSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../support/at-end.ts'
import { Process } from '../support/process.ts'
import { available } from '../support/skipped.ts'
import { nodesInPath } from './support.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

const [, old] = [...nodesInPath()].find(([version]) => version < 24) ?? []
const folder = temporaryFolder(afterAll)

const MAIN = `
const [what, value] = process.argv.slice(2)
if (what === 'exit') process.exit(Number(value))
if (what === 'die') process.kill(process.pid, value)
if (what === 'run' && value?.startsWith('SIG')) {
  process.kill(process.pid, value)
  if (value !== 'SIGHUP') setTimeout(() => process.exit(7), 3000)
}
if (what === 'wait') {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => { console.log('got ' + signal); process.exit(5) })
  setInterval(() => {}, 1000)
}
console.log(JSON.stringify({ node: Number(process.versions.node.split('.')[0]), args: process.argv.slice(2), from: FROM }))
`

/** Creates a small checkout whose program prints how it was started. */
function checkout(name: string, { source = true, compiled = false, modules = true } = {}): string {
  const at = join(folder, name)
  mkdirSync(join(at, 'src'), { recursive: true })
  mkdirSync(join(at, 'dist'))
  copyFileSync(join(root, 'src/bin.js'), join(at, 'src/bin.js'))
  copyFileSync(join(root, 'package.json'), join(at, 'package.json'))
  if (modules) symlinkSync(join(root, 'node_modules'), join(at, 'node_modules'))
  if (source) writeFileSync(join(at, 'src/main.ts'), MAIN.replace('FROM', `'source' as string`))
  if (compiled) writeFileSync(join(at, 'dist/main.js'), MAIN.replace('FROM', `'compiled'`))
  return join(at, 'src/bin.js')
}

let bin: string
beforeAll(() => {
  bin = checkout('checkout')
})

const run = (node: string, file: string, ...args: string[]) => spawnSync(node, [file, ...args], { encoding: 'utf8' })

describe('the launcher under a Node that is new enough', () => {
  it('starts the sources of a checkout', () => {
    expect(JSON.parse(run(process.execPath, bin, 'a', '--b').stdout)).toEqual({
      node: Number(process.versions.node.split('.')[0]),
      args: ['a', '--b'],
      from: 'source',
    })
  })

  it('starts the sources of a package, where Node itself strips no types, and again after they have changed', () => {
    // This checkout does not link to the shared `node_modules`, so it has a compile cache of its own.
    const file = checkout('node_modules/hub2mqtt', { modules: false })
    const main = join(dirname(file), 'main.ts')
    for (const from of ['first', 'first', 'second']) {
      if (!readFileSync(main, 'utf8').includes(from)) writeFileSync(main, MAIN.replace('FROM', `'${from}' as string`))
      // Set the date that npm gives to the files of every package.
      utimesSync(main, new Date('1985-10-26'), new Date('1985-10-26'))
      const { stdout, stderr } = run(process.execPath, file)
      expect({ ...JSON.parse(stdout), stderr }).toMatchObject({ from, stderr: '' })
    }
  })

  it('starts the sources of a package that it may not write to', () => {
    const file = checkout('locked/node_modules/hub2mqtt', { modules: false })
    writeFileSync(join(dirname(file), '../node_modules'), 'a file where a folder would be made')
    expect(JSON.parse(run(process.execPath, file).stdout)).toMatchObject({ from: 'source' })
  })

  it.each(['SIGINT', 'SIGTERM'])('stops the daemon with 0 on %s before the daemon has its own handler', (signal) => {
    expect(run(process.execPath, bin, 'run', signal)).toMatchObject({ status: 0, signal: null })
    expect(run(process.execPath, bin, 'die', signal)).toMatchObject({ status: null, signal })
  })

  it('starts the bundle of an image and of a package that has one, and never that of a checkout, which may be outdated', () => {
    const started = (name: string, source = true) =>
      JSON.parse(run(process.execPath, checkout(name, { source, compiled: true })).stdout)
    expect(started('bundled/node_modules/hub2mqtt')).toMatchObject({ from: 'compiled' })
    expect(started('built')).toMatchObject({ from: 'source' })
    expect(started('image', false)).toMatchObject({ from: 'compiled' })
  })
})

describe.runIf(available(old !== undefined, 'the launcher under an older Node', 'no Node below 24 is in the PATH'))(
  'the launcher under an older Node',
  () => {
    const node = old ?? ''

    it('starts the Node of the package, with all arguments', () => {
      const { stdout, stderr } = run(node, bin, 'run', '--config', 'a b')
      expect(stderr).toBe('')
      expect(JSON.parse(stdout)).toEqual({ node: 24, args: ['run', '--config', 'a b'], from: 'source' })
    })

    it('exits with the code of the program', () => expect(run(node, bin, 'exit', '2').status).toBe(2))

    it('is terminated by the signal that terminated the program', () => {
      expect(run(node, bin, 'die', 'SIGKILL')).toMatchObject({ status: null, signal: 'SIGKILL' })
    })

    it('survives SIGHUP before the daemon has its own handler, and other commands do not', () => {
      expect(run(node, bin, 'run', 'SIGHUP')).toMatchObject({ status: 0, signal: null })
      expect(run(node, bin, 'die', 'SIGHUP')).toMatchObject({ status: null, signal: 'SIGHUP' })
    })

    it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('forwards %s and waits for the end', async (signal) => {
      await using child = new Process(node, [bin, 'wait'])
      await child.untilLine('from')
      child.signal(signal)
      expect(await child.closed).toBe('code 5')
      expect(child.lines).toContain(`got ${signal}`)
    })

    it('ends the program when it is killed', async () => {
      await using child = new Process(node, [bin, 'wait'])
      await child.untilLine('from')
      child.signal('SIGKILL')
      // `closed` resolves when all processes, including the program, have closed the output.
      expect(await child.closed).toBe('signal SIGKILL')
      expect(child.lines).toContain('got SIGTERM')
    })

    it('works through a symbolic link, as npm installs it', () => {
      const link = join(folder, 'hub2mqtt')
      symlinkSync(bin, link)
      expect(JSON.parse(run(node, link).stdout)).toMatchObject({ node: 24 })
    })

    it('names the missing Node in one line', () => {
      const { status, stderr } = run(node, checkout('bare', { modules: false }))
      expect(status).toBe(1)
      expect(stderr).toMatch(/^hub2mqtt: needs Node 24 or newer, and this is \d+\.\d+\.\d+; .*npm ci.*\n$/)
    })
  },
)

it('the file itself is executable', () => {
  expect(() => accessSync(join(root, 'src/bin.js'), constants.X_OK)).not.toThrow()
  expect(dirname(bin)).toContain('checkout')
})
