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
  readonly kind?: unknown
}

/** The names that one block declares, each with the position from which the name has a value. */
interface Scope {
  readonly names: ReadonlyMap<string, number>
  /** The number of functions that contain the block. */
  readonly depth: number
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof Reflect.get(value, 'type') === 'string'
const isFunction = ({ type }: Node) => /^(Arrow)?Function(Declaration|Expression)?/.test(type)
const isType = ({ type }: Node) => type.startsWith('TS') && !/^TS(As|NonNull|Satisfies)/.test(type)
const childrenOf = (node: Node): Node[] => Object.values(node).flat().filter(isNode)

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
  return childrenOf(pattern).flatMap(namesIn)
}

/** Returns the position from which each name has a value. Parameters have their values from the start. */
function declaredIn(block: Node): Map<string, number> {
  if (isFunction(block)) return new Map([block.params].flat().flatMap((one) => namesIn(one).map((name) => [name, 0])))
  const declarations = childrenOf(block).filter(({ type }) => type === 'VariableDeclaration')
  return new Map(
    declarations.flatMap(childrenOf).flatMap(({ id, end }) => namesIn(id).map((name): [string, number] => [name, end])),
  )
}

/** Returns `#x` for `this.#x`. */
function fieldOf(node: unknown): string | undefined {
  if (!isNode(node) || node.type !== 'MemberExpression') return undefined
  const { object, property } = node
  return isNode(object) && object.type === 'ThisExpression' && isNode(property) ? `#${property.name}` : undefined
}

function assignedIn(node: Node): [string, number][] {
  const field = node.type === 'AssignmentExpression' ? fieldOf(node.left) : undefined
  const further = isFunction(node) ? [] : childrenOf(node).flatMap(assignedIn)
  return field === undefined ? further : [[field, node.end], ...further]
}

interface Place {
  readonly scopes: readonly Scope[]
  /** The start positions of the enclosing functions, from the outermost to the innermost. */
  readonly functions: readonly number[]
  /** The positions at which the fields of the enclosing constructor get their values. */
  readonly fields: ReadonlyMap<string, number>
}

const NEVER = Number.POSITIVE_INFINITY

/** Returns the constant or field that a node uses, if it gets its value only after the start of the node's closure. */
function lateIn(node: Node, { scopes, functions, fields }: Place): string[] {
  const field = fieldOf(node)
  if (field !== undefined) return (fields.get(field) ?? 0) > (functions[1] ?? NEVER) ? [field] : []
  if (node.type !== 'Identifier') return []
  const name = String(node.name)
  const scope = scopes.findLast(({ names }) => names.has(name))
  if (scope === undefined || scope.depth === 0) return []
  return (scope.names.get(name) ?? 0) > (functions[scope.depth] ?? NEVER) ? [name] : []
}

function within(node: Node, { scopes, functions, fields }: Place): Place {
  const deeper = isFunction(node) ? [...functions, node.start] : functions
  const isConstructor = node.type === 'MethodDefinition' && node.kind === 'constructor' && isNode(node.value)
  return {
    scopes: [...scopes, { names: declaredIn(node), depth: deeper.length }],
    functions: deeper,
    fields: isConstructor && isNode(node.value) ? new Map(childrenOf(node.value).flatMap(assignedIn)) : fields,
  }
}

/** Returns the constants, and the fields of constructors, that a closure captures before they have values. */
function captured(source: string): string[] {
  const visit = (node: Node, place: Place): string[] =>
    isType(node) ? [] : [...lateIn(node, place), ...partsOf(node).flatMap((part) => visit(part, within(node, place)))]
  const program: unknown = parseSync('source.ts', source).program
  if (!isNode(program)) throw new TypeError('no program')
  return [...new Set(visit(program, { scopes: [], functions: [], fields: new Map() }))].sort()
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
