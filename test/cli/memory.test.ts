import { expect, test } from 'vitest'
import { execute } from '../support/process.ts'

const { href } = new URL('../../src/cli/memory.ts', import.meta.url)
const RUN = `const { limitHeap, limitHeapAtRest, reduceMemory } = await import(${JSON.stringify(href)})
limitHeap(1000)
limitHeapAtRest(1000)
reduceMemory()
console.log('done')`

test('the program sets only options that the V8 of this Node.js knows', async () => {
  // V8 would report an unknown option on standard error.
  expect(await execute(process.execPath, ['--input-type=module', '--eval', RUN])).toBe('done\n')
})
