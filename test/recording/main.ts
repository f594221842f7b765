/** `node test/recording/main.ts --write` replaces the golden file and the exceptions. */
import { writeFileSync } from 'node:fs'
import { BROKERS } from '../support/brokers.ts'
import { EXCEPTIONS, GOLDEN } from './golden.ts'
import { exceptionsOf } from './mqtt3.ts'
import { print } from './pack.ts'
import { record } from './scenario.ts'

if (process.argv[2] !== '--write') throw new Error('expected --write')
if (!BROKERS.some((kind) => kind === 'mosquitto')) throw new Error('Mosquitto is not installed')
const stages = await record('mosquitto')
writeFileSync(GOLDEN, print(stages))
writeFileSync(EXCEPTIONS, `${JSON.stringify(exceptionsOf(stages, await record('aedes')), null, 2)}\n`)
