/**
 * Records the messages that subscribers receive, or compares two recordings.
 *
 *     node test/recording/main.ts --write                      replaces the golden file and the exceptions
 *     node test/recording/main.ts --out FILE [--broker NAME]   records to FILE (default: Mosquitto if it is installed)
 *     node test/recording/main.ts --compare A B                prints the differences; exit code 1 if there are any
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { BROKERS, type BrokerKind } from '../support/brokers.ts'
import { differences } from './compare.ts'
import { EXCEPTIONS, GOLDEN, readRecording } from './golden.ts'
import { exceptionsOf } from './mqtt3.ts'
import { print } from './pack.ts'
import { record } from './scenario.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    write: { type: 'boolean', default: false },
    out: { type: 'string' },
    broker: { type: 'string' },
    compare: { type: 'boolean', default: false },
  },
})

const say = (text: string) => process.stdout.write(`${text}\n`)

async function write(kind: BrokerKind, file: string | URL): Promise<void> {
  const started = performance.now()
  writeFileSync(file, print(await record(kind)))
  say(`${kind}: recorded in ${((performance.now() - started) / 1000).toFixed(1)} s`)
}

if (values.compare) {
  const [before = '', after = ''] = positionals
  const found = differences(readRecording(before), readRecording(after))
  for (const difference of found) say(difference)
  say(found.length === 0 ? 'no difference' : `${found.length} differences`)
  process.exitCode = found.length === 0 ? 0 : 1
} else if (values.out !== undefined) {
  const kind = BROKERS.find((name) => values.broker === undefined || name === values.broker)
  if (kind === undefined) throw new Error(`unknown broker "${values.broker}"; expected one of ${BROKERS.join(', ')}`)
  await write(kind, values.out)
} else if (values.write) {
  if (!BROKERS.some((kind) => kind === 'mosquitto')) throw new Error('Mosquitto is not installed')
  await write('mosquitto', GOLDEN)
  const exceptions = exceptionsOf(readRecording(GOLDEN), await record('aedes'))
  writeFileSync(EXCEPTIONS, `${JSON.stringify(exceptions, null, 2)}\n`)
} else {
  say(
    readFileSync(new URL(import.meta.url), 'utf8')
      .split('*/')[0]
      ?.replaceAll(/^\/?\s?\*+ ?/gm, '') ?? '',
  )
  process.exitCode = 2
}
