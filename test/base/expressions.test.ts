import { globSync, readFileSync } from 'node:fs'
import { check } from 'recheck'
import { parseSync } from 'vite'
import { describe, expect, test } from 'vitest'

/** Returns `file expression` for every regular expression in the program. */
function written(): string[] {
  const found = new Set<string>()
  for (const file of globSync('src/**/*.{ts,tsx,js}', { exclude: ['src/web/ui/dist/**'] }).sort()) {
    const source = readFileSync(file, 'utf8')
    const add = (node: object) => {
      const made = Reflect.get(node, 'type') === 'NewExpression' || Reflect.get(node, 'type') === 'CallExpression'
      const isMade = made && Reflect.get(Reflect.get(node, 'callee'), 'name') === 'RegExp'
      if (!isMade && !('regex' in node)) return
      found.add(`${file.slice('src/'.length)} ${source.slice(Reflect.get(node, 'start'), Reflect.get(node, 'end'))}`)
    }
    const walk = (node: unknown): void => {
      if (typeof node !== 'object' || node === null) return
      add(node)
      Object.values(node).forEach(walk)
    }
    walk(parseSync(file, source).program)
  }
  return [...found]
}

/** Returns the content of `expressions.txt`. */
function listed(): { rows: string[]; samples: Map<string, string> } {
  const rows: string[] = []
  const samples = new Map<string, string>()
  let file = ''
  for (const line of readFileSync('test/base/expressions.txt', 'utf8').split('\n')) {
    if (line.startsWith('    ')) samples.set(rows.at(-1) ?? '', line.trim())
    else if (line.startsWith('  ')) rows.push(`${file} ${line.trim()}`)
    else if (!line.startsWith('#')) file = line
  }
  return { rows, samples }
}

const { rows, samples } = listed()
const found = written()

test('expressions.txt lists every regular expression below the input that it reads, with the maximum length of the input', () => {
  expect(rows.toSorted()).toEqual(found.toSorted())
})

/** Returns the expression of a row, or a sample if the expression is built at run time. */
const expressionOf = (row: string) => samples.get(row) ?? row.slice(row.indexOf(' ') + 1)
const expressions = [...new Set(found.map(expressionOf))]

/** Replaces repetitions with limits, such as `{2,5}`, with `+` or `*`, so that the expression matches more inputs. */
const unlimited = (source: string) =>
  source.replace(/(?<!\\)\{(\d+),\d*\}/g, (_, least: string) => (least === '0' ? '*' : '+'))

describe('no input makes a regular expression backtrack', () => {
  test.each(expressions)('%s', async (expression) => {
    const end = expression.lastIndexOf('/')
    const source = expression.slice(1, end)
    // Disable the time limits of the check, because a busy machine would exceed them.
    const limits = { timeout: null, attackTimeout: null, randomSeed: 1 }
    const verdictOn = (text: string) => check(text, expression.slice(end + 1), limits)
    // First check the expression without large limits, which slow the check down and are rarely needed for safety.
    const { status } = await verdictOn(unlimited(source))
    expect(status === 'safe' ? status : (await verdictOn(source)).status).toBe('safe')
  })
})
