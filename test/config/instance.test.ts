import { spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { claimInstance } from '../../src/config/broker.ts'
import { temporaryFolder } from '../support/at-end.ts'

afterEach(() => void vi.unstubAllEnvs())

/** Starts another process that claims a number, and keeps the number until it is killed. */
async function elsewhere(name: string, platform: NodeJS.Platform) {
  const program = `
    import { claimInstance } from './src/config/broker.ts'
    const { number } = await claimInstance(${JSON.stringify(name)}, ${JSON.stringify(platform)})
    console.log(number)
    setInterval(() => {}, 60_000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [line] = await once(child.stdout, 'data')
  return { number: Number(line), kill: () => child.kill('SIGKILL') && once(child, 'exit') }
}

// Linux has abstract sockets, which disappear with the process. On macOS, a socket file remains after a crash.
test.each(['linux', 'darwin'] as const)(
  'each process has its own number, and keeps it when it is restarted (%s)',
  async (os) => {
    const name = randomUUID()
    await using first = await claimInstance(name, os)
    expect(first.number).toBe(0)
    const second = await elsewhere(name, os)
    expect(second.number).toBe(1)
    await using third = await claimInstance(name, os)
    expect(third.number).toBe(2)
    await second.kill()
    expect((await elsewhere(name, os)).number).toBe(1)
    await using another = await claimInstance(randomUUID(), os)
    expect(another.number).toBe(0)
  },
)

test('a number is free again when it is released', async () => {
  const name = randomUUID()
  for (let times = 0; times < 2; times += 1) {
    await using instance = await claimInstance(name)
    expect(instance.number).toBe(0)
  }
})

test("a file of another user in a number's place does not stop the process, which takes the next number", async () => {
  const inside = temporaryFolder()
  vi.stubEnv('TMPDIR', inside)
  const name = randomUUID()
  const mark = createHash('sha256').update(name).digest('hex').slice(0, 24)
  // Use a folder, because root could unlink another user's file, but not even root can unlink a folder.
  mkdirSync(join(inside, `hub2mqtt-${mark}-0.sock`))
  await using instance = await claimInstance(name, 'darwin')
  expect(instance.number).toBe(1)
})

test('every process gets the first number on a system that refuses such sockets', async () => {
  const name = 'x'
  vi.stubEnv('TMPDIR', '/nonexistent')
  await using one = await claimInstance(name, 'darwin')
  await using other = await claimInstance(name, 'darwin')
  expect([one.number, other.number]).toEqual([0, 0])
})
