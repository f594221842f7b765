/** The English texts of the page, read from its sources. */
import { globSync, readFileSync } from 'node:fs'
import { parseSync } from 'vite'
import { ERROR_CODES } from '../../src/contract/errors.ts'
import { SENTENCES, type Text } from '../../src/web/ui/app/terms.ts'

export type Node = Readonly<Record<string, unknown>>
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null

export function* nodesOf(file: string): Generator<Node> {
  const open: unknown[] = [parseSync(file, readFileSync(file, 'utf8')).program]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (!isNode(node)) continue
    if (typeof node['type'] === 'string') yield node
    open.push(...Object.values(node).filter(isNode))
  }
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
export const fieldOf = (node: unknown, key: string): unknown => (isNode(node) ? node[key] : undefined)
const isPluralCategory = (key: string) => ['zero', 'one', 'two', 'few', 'many', 'other'].includes(key)

/** Tables that are passed to `defineStrings` by name. */
const SHARED: Readonly<Record<string, Readonly<Record<string, string>>>> = { ERROR_CODES, SENTENCES }

/** @throws Error if the node is not plain data */
function textsOf(node: unknown, path: string): [key: string, text: Text][] {
  const shared = fieldOf(node, 'type') === 'Identifier' ? SHARED[String(fieldOf(node, 'name'))] : undefined
  if (shared !== undefined) return Object.entries(shared).map(([key, text]) => [`${path}.${key}`, text])
  const value = fieldOf(node, 'value')
  if (fieldOf(node, 'type') === 'Literal' && typeof value === 'string') return [[path, value]]
  if (fieldOf(node, 'type') !== 'ObjectExpression') throw new Error(`${path} is not plain data`)
  const parts = listOf(fieldOf(node, 'properties')).map((property) => {
    const key = fieldOf(property, 'key')
    return [String(fieldOf(key, 'name') ?? fieldOf(key, 'value')), fieldOf(property, 'value')] as const
  })
  if (parts.some(([key]) => key === 'other')) {
    const forms = parts.flatMap(([key, form]) => textsOf(form, key))
    if (!forms.every(([key]) => isPluralCategory(key)))
      throw new Error(`${path} has keys that are not plural categories`)
    return [[path, { other: '', ...Object.fromEntries(forms) }]]
  }
  return parts.flatMap(([key, part]) => textsOf(part, `${path}.${key}`))
}

export const files = globSync('src/web/ui/app/**/*.{ts,tsx}')
const calls = files.flatMap((file) =>
  [...nodesOf(file)].filter(
    (node) => node['type'] === 'CallExpression' && fieldOf(node['callee'], 'name') === 'defineStrings',
  ),
)
/** The first part of each key, in the order of the calls. */
export const parts = calls.map((call) => String(fieldOf(listOf(call['arguments'])[0], 'value')))
export const english = calls.flatMap((call, i) => textsOf(listOf(call['arguments'])[1], parts[i] ?? ''))
export const namesIn = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([name]) => name).sort()
