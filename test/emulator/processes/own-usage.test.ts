import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { AppProcess } from '../../../src/emulator/processes/app-process.ts'
import { Output } from '../../../src/emulator/processes/output.ts'
import { written } from './support.ts'

test('a process reports its own usage if the system does not', async () => {
  const folder = written('export default () => {}')
  const launch = { id: 'com.example.app', version: '1.0.0', folder, main: 'app.js', memoryLimit: 2 ** 28 }
  const handlers = { answer: () => null, notice: () => {} }
  const app = await AppProcess.start(launch, systemClock, new Output(), handlers)
  onTestFinished(async () => void (await app.stop()))
  expect(await app.ready).toBe(true)
  expect(await app.request({ type: 'usage' })).toEqual({ cpuMs: expect.any(Number), mem: expect.any(Number) })
  expect(await app.stop()).toMatchObject({ requested: true, code: 0 })
  await expect(app.request({ type: 'usage' })).rejects.toMatchObject({ status: 503 })
})
