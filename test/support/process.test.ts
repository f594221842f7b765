import { describe, expect, test } from 'vitest'
import { execute, Process, runProgram } from './process.ts'

const node = (script: string, options?: ConstructorParameters<typeof Process>[2]) =>
  new Process(process.execPath, ['--eval', script], options)

describe('a process', () => {
  test('that ends early rejects the wait immediately, with its last lines', async () => {
    await using child = node('console.error("a bad day"); process.exit(4)')
    await expect(child.untilLine('ready')).rejects.toThrow(/\(code 4\) ended before "ready"\na bad day/)
  })

  test('that does not exist fails immediately', async () => {
    await using child = new Process('/no/such/program', [])
    await expect(child.untilPort(1)).rejects.toThrow('ENOENT')
    await expect(runProgram('/no/such/program', [])).rejects.toThrow('ENOENT')
  })

  test('that does not end is killed', async () => {
    await using child = node('process.on("SIGTERM", () => {}); console.log("ready"); setInterval(() => {}, 1000)')
    await child.untilLine('ready')
    await child.stop('SIGTERM', 20)
    expect(child.end).toBe('signal SIGKILL')
  })

  test('that hangs can be killed too', async () => {
    await using child = node('console.log("ready"); setInterval(() => {}, 1000)')
    await child.untilLine('ready')
    child.signal('SIGSTOP')
    await child.stop('SIGKILL')
    expect(child.end).toBe('signal SIGKILL')
  })

  test('answers over its channel until it ends', async () => {
    await using child = node('process.on("message", (n) => n.n === 0 ? process.exit(5) : process.send(n.n + 1))', {
      channel: true,
    })
    expect(await child.request({ n: 1 })).toBe(2)
    await expect(child.request({ n: 0 })).rejects.toThrow('(code 5) does not answer')
  })
})

test('a program that is executed must exit with 0', async () => {
  expect(await execute(process.execPath, ['--eval', 'console.log("fine")'])).toBe('fine\n')
  await expect(execute(process.execPath, ['--eval', 'console.log("why"); process.exit(1)'])).rejects.toThrow(/1\nwhy/)
})
