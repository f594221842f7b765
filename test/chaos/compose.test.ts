import { expect, test } from 'vitest'
import { nameOf, parseScript, scriptsOf, shrink } from './compose.ts'

test('the same seed gives the same scripts, of two or three faults each', () => {
  const scripts = scriptsOf(7, 50).map(({ script }) => script)
  expect(scripts).toEqual(scriptsOf(7, 50).map(({ script }) => script))
  expect(scripts).not.toEqual(scriptsOf(8, 50).map(({ script }) => script))
  expect(new Set(scripts.map(({ length }) => length))).toEqual(new Set([2, 3]))
  expect(new Set(scripts.map(nameOf)).size).toBeGreaterThan(40)
})

test('a script that fails is shrunk to the smallest script that still fails', async () => {
  const [first] = scriptsOf(3, 1)
  if (first === undefined) throw new Error('no script')
  const culprit = first.script.at(-1)?.fault
  const shrunk = await shrink(3, first.index, async (script) => script.some(({ fault }) => fault === culprit), 10_000)
  expect(shrunk?.script).toEqual([{ at: 0, fault: culprit, seed: first.script.at(-1)?.seed }])
})

test('a script that does not fail again is not shrunk', async () => {
  const [first] = scriptsOf(3, 1)
  expect(await shrink(3, first?.index ?? 0, async () => false, 10_000)).toBeUndefined()
})

test('a serialized script can be parsed again, and anything else is refused', () => {
  for (const { script } of scriptsOf(5, 20)) expect(parseScript(JSON.stringify(script))).toEqual(script)
  expect(() => parseScript('[]')).toThrow('list of')
  expect(() => parseScript('[{"at":0,"fault":"boredom","seed":1}]')).toThrow('unknown fault "boredom"')
})
