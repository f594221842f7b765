import { existsSync, mkdirSync, mkdtempDisposableSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { takeWritten } from './coverage.ts'

function folder(): string {
  const made = mkdtempDisposableSync(join(tmpdir(), 'hub2mqtt-coverage-'))
  onTestFinished(made.remove)
  return join(made.path, 'raw')
}

test('incomplete files of killed children are left out, and later files are not mixed in', async () => {
  const raw = folder()
  mkdirSync(raw)
  writeFileSync(join(raw, 'whole.json'), '{"result":[]}')
  writeFileSync(join(raw, 'half.json'), '{"result":[')
  writeFileSync(join(raw, 'none.json'), '')
  const taken = await takeWritten(raw)
  expect(readdirSync(taken)).toEqual(['whole.json'])
  expect(existsSync(raw)).toBe(false)
})

test('without children there are no files', async () => {
  const raw = folder()
  expect(await takeWritten(raw)).toBe(raw)
})
