import { readFileSync } from 'node:fs'
import { parseSync } from 'vite'
import { describe, expect, test } from 'vitest'

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly name?: unknown
  readonly id?: unknown
  readonly params?: unknown
  readonly left?: unknown
  readonly value?: unknown
  readonly object?: unknown
  readonly property?: unknown
  readonly computed?: unknown
}

/** A constant, parameter or field. */
interface Named {
  readonly name: string
  /** The position from which the name has a value, or at which it is used. */
  readonly at: number
  /** The start positions of the enclosing functions, from the outermost to the innermost. */
  readonly functions: readonly number[]
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof Reflect.get(value, 'type') === 'string'
const isFunction = ({ type }: Node) => /^(Arrow)?Function(Declaration|Expression)?/.test(type)
const isType = ({ type }: Node) => type.startsWith('TS') && !/^TS(As|NonNull|Satisfies)/.test(type)

/** Returns the child nodes, except the names of properties, which do not refer to variables. */
function partsOf(node: Node): Node[] {
  const parts = Object.entries(node).filter(([key]) => (key !== 'property' && key !== 'key') || node.computed === true)
  return parts.flatMap(([, value]) => [value].flat().filter(isNode))
}

function namesIn(pattern: unknown): string[] {
  if (!isNode(pattern)) return []
  if (pattern.type === 'Identifier') return [String(pattern.name)]
  if (pattern.type === 'Property') return namesIn(pattern.value)
  if (pattern.type === 'AssignmentPattern') return namesIn(pattern.left)
  return Object.values(pattern).flat().flatMap(namesIn)
}

/** Returns `#x` for `this.#x`. */
function fieldOf(node: unknown): string[] {
  if (!isNode(node) || node.type !== 'MemberExpression') return []
  const { object, property } = node
  return isNode(object) && object.type === 'ThisExpression' && isNode(property) ? [`#${property.name}`] : []
}

/** Returns the constants, and the fields of constructors, that a closure captures before they have values. */
function captured(source: string): string[] {
  const declared: Named[] = []
  const used: Named[] = []
  const visit = (node: Node, outer: readonly number[]) => {
    if (isType(node)) return
    const functions = isFunction(node) ? [...outer, node.start] : outer
    const declare = (names: readonly string[], at: number) =>
      declared.push(...names.map((name) => ({ name, at, functions })))
    // Parameters have their values from the start.
    if (isFunction(node)) declare([node.params].flat().flatMap(namesIn), 0)
    if (node.type === 'VariableDeclarator') declare(namesIn(node.id), node.end)
    if (node.type === 'AssignmentExpression') declare(fieldOf(node.left), node.end)
    const names = node.type === 'Identifier' ? [String(node.name)] : fieldOf(node)
    used.push(...names.map((name) => ({ name, at: node.start, functions })))
    for (const part of partsOf(node)) visit(part, functions)
  }
  const program: unknown = parseSync('source.ts', source).program
  if (!isNode(program)) throw new TypeError('no program')
  visit(program, [])
  const late = used.filter(({ name, functions }) => {
    const depthOf = (one: Named) => functions.indexOf(one.functions.at(-1) ?? -1)
    const known = declared.filter((one) => one.name === name && depthOf(one) >= 0)
    const [nearest] = known.sort((one, other) => depthOf(other) - depthOf(one))
    return nearest !== undefined && nearest.at > (functions[depthOf(nearest) + 1] ?? Number.POSITIVE_INFINITY)
  })
  return [...new Set(late.map(({ name }) => name))].sort()
}

const COMPOSED = [
  'src/app.ts',
  'src/config/broker.ts',
  'src/cluster/fleet-member.ts',
  'src/config/open-hubs.ts',
  'src/bridge/bridge.ts',
]

describe('no closure captures a constant or field before it has its value', () => {
  test.each(COMPOSED)('%s', (file) => {
    expect(captured(readFileSync(file, 'utf8'))).toEqual([])
  })

  test.each([
    ['a constant below', 'function f() { const a = () => b; const b = 1 }', ['b']],
    [
      'a use in a method or a property',
      'function f() { const a = { c: () => b.x, d() { return c } }; const b = 1; const c = 1 }',
      ['b', 'c'],
    ],
    ['a use in its own initializer', 'function f() { const a = g({ on: () => a.x }) }', ['a']],
    ['a destructured constant', 'async function f() { const a = () => b; const { x: [b] } = await g() }', ['b']],
    ['a field', 'class C { constructor() { this.#a = g(() => this.#b); this.#b = 1 } }', ['#b']],
    ['a use two functions deep', 'function f() { const a = () => () => b; const b = 1 }', ['b']],
  ])('detects %s', (_, source, names) => {
    expect(captured(source)).toEqual(names)
  })
})
