/**
 * `npm run mutation [-- NAME…]` mutates the safety modules in every way that StrykerJS supports, and counts the mutants
 * that their quick tests detect. Run manually, because each of thousands of mutants takes at least a second. NAME is a
 * module, such as `limiter`.
 */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import * as v from 'valibot'
import { execute, exitOnSignals } from '../support/process.ts'

/** Not in package.json, because the tools would install 180 packages for everyone who runs the tests. */
const TOOLS = ['@stryker-mutator/core@10.1.1', '@stryker-mutator/vitest-runner@10.1.1']
const LEAST_SCORE = 85

/** The quick tests of each module, without brokers and processes, because a surviving mutant runs all of them. */
const MODULES: Readonly<Record<string, readonly string[]>> = {
  'src/base/limiter.ts': ['base/limiter'],
  'src/bridge/answers.ts': ['bridge/dispatcher', 'bridge/senders'],
  'src/bridge/dispatcher.ts': ['bridge/dispatcher', 'bridge/execution', 'bridge/senders'],
  'src/bridge/ownership.ts': ['bridge/ownership'],
  'src/bridge/replay.ts': ['bridge/replay'],
  'src/contract/calls.ts': ['contract/calls'],
  'src/contract/command.ts': ['contract/commands', 'contract/permissions'],
  'src/contract/commands.ts': ['contract/commands', 'contract/permissions'],
  'src/contract/installs.ts': ['contract/installs'],
  'src/contract/payload.ts': ['contract/payload'],
  'src/contract/permissions.ts': ['contract/calls', 'contract/permissions'],
  'src/contract/templates.ts': ['contract/templates', 'contract/topics'],
  'src/contract/writes.ts': ['contract/writes'],
  'src/hub/client.ts': ['bridge/execution', 'hub/client', 'hub/endpoints'],
  'src/hub/decode.ts': ['hub/decode'],
  'src/hub/endpoints.ts': ['hub/endpoints'],
  'src/hub/refusal.ts': ['hub/refusal'],
  'src/hub/written.ts': ['contract/answers', 'contract/writes', 'hub/written'],
  'src/mqtt/poison-messages.ts': ['mqtt/sender'],
  'src/mqtt/retained.ts': ['mqtt/bookkeeping', 'mqtt/retained-set'],
  'src/mqtt/sender.ts': ['mqtt/sender'],
  'src/mqtt/sequence.ts': ['mqtt/sender'],
}

const REPORT = v.object({
  files: v.record(v.string(), v.object({ mutants: v.array(v.object({ status: v.string() })) })),
})

interface Score {
  readonly name: string
  readonly noticed: number
  readonly missed: number
}

/** Prints the tool's report on the mutants that the tests miss. */
async function mutate(module: string, tests: readonly string[]): Promise<Score> {
  const env = { ...process.env, MUTATION_TESTS: JSON.stringify(tests.map((name) => `test/${name}.test.ts`)) }
  console.log(await execute('npx', ['stryker', 'run', 'test/mutation/stryker.json', '--mutate', module], { env }))
  const { files } = v.parse(REPORT, JSON.parse(readFileSync('coverage/mutation.json', 'utf8')))
  const statuses = Object.values(files).flatMap(({ mutants }) => mutants.map(({ status }) => status))
  const count = (...some: string[]) => statuses.filter((status) => some.includes(status)).length
  return { name: module, noticed: count('Killed', 'Timeout'), missed: count('Survived', 'NoCoverage') }
}

function percent({ noticed, missed }: Score): number {
  return Math.round((1000 * noticed) / (noticed + missed)) / 10
}

exitOnSignals()
const { positionals } = parseArgs({ allowPositionals: true })
const chosen = Object.entries(MODULES).filter(
  ([module]) => positionals.length === 0 || positionals.includes(basename(module, '.ts')),
)
await execute('npm', ['install', '--no-save', '--no-audit', '--no-fund', ...TOOLS])
const scores: Score[] = []
for (const [module, tests] of chosen) scores.push(await mutate(module, tests))
const sum = (key: 'noticed' | 'missed') => scores.reduce((total, score) => total + score[key], 0)
const all = { name: 'all', noticed: sum('noticed'), missed: sum('missed') }
for (const score of [...scores, all])
  console.log(`${score.name}: ${percent(score)} % of ${score.noticed + score.missed} mutants are noticed`)
process.exitCode = percent(all) >= LEAST_SCORE ? 0 : 1
