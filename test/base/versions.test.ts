import { expect, test } from 'vitest'
import { severityOf } from '../../src/base/versions.ts'

test.each<[from: string | null, to: string | null, severity: ReturnType<typeof severityOf>]>([
  ['1.2.3', '1.2.3', 'none'],
  ['1.2.3', '1.2.2', 'none'],
  ['2.0', '2.0.0+7', 'none'],
  ['1.2.3', '1.2.4', 'patch'],
  ['1.2', '1.2.1', 'patch'],
  ['1.2.3.4', '1.2.3.5', 'patch'],
  ['1.2.3-beta.1', '1.2.3', 'patch'],
  ['1.9.0', '1.10.0', 'minor'],
  ['1', '1.0.1', 'patch'],
  ['1', '1.1', 'minor'],
  ['9.0.0', '10.0.0', 'major'],
  ['1.9.9', '2.0.0-rc.1', 'major'],
  ['1.0.0-9007199254740993', '1.0.0-9007199254740992', 'none'],
  ['1.0.0-9007199254740992', '1.0.0-9007199254740993', 'patch'],
  [null, '1.0.0', null],
  ['1.0.0', null, null],
  ['1.0.0', 'newest', null],
  ['', '1.0.0', null],
])('the step from %s to %s is %s', (from, to, severity) => {
  expect(severityOf(from, to)).toBe(severity)
})

test('numbers that are too large for floating point are compared too', () => {
  expect(severityOf(`1.0.0-${'9'.repeat(400)}`, `1.0.0-${'8'.repeat(400)}`)).toBe('none')
})
