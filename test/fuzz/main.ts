/**
 * Feeds bad input to every entry point and measures how long the input blocks the event loop:
 * `node test/fuzz/main.ts --count 100000 --seed 1 --only HTTP --broker mosquitto`.
 */
import { parseArgs } from 'node:util'
import { fuzz, isGood, render } from '../bridge/fuzz.ts'
import { BROKERS } from '../support/brokers.ts'
import { ENTRIES } from './entries.ts'
import { LIMIT_MS, type Row } from './run.ts'

const text = { type: 'string' } as const
const { values } = parseArgs({ options: { count: text, seed: text, only: text, broker: text } })
const { only = '' } = values
const [count, seed] = [Number(values.count ?? 100_000), Number(values.seed ?? 1)]
const broker = BROKERS.find((one) => one === values.broker) ?? BROKERS[0]

const show = ({ entry, inputs, longestMs, seconds }: Omit<Row, 'slow'>, details: readonly string[] = []) => {
  console.log([`| ${entry} | ${inputs} | ${longestMs.toFixed(1)} | ${seconds.toFixed(0)} |`, ...details].join('\n'))
  if (longestMs > LIMIT_MS) process.exitCode = 1
}

console.log(`| entry | inputs | longest block, ms (limit ${LIMIT_MS}) | seconds |\n|---|---|---|---|`)
for (const { name, run } of ENTRIES) {
  if (!name.includes(only)) continue
  const row = await run(count, seed)
  show(row, row.slow.slice(0, 10))
}
const COMMANDS = 'broker: commands'
if (COMMANDS.includes(only)) {
  const report = await fuzz({ count, seed, broker })
  show({ entry: COMMANDS, inputs: count, ...report }, [render(report)])
  if (!isGood(report)) process.exitCode = 1
}
