/** Prints the functions of `src` that the daemon runs for an event and for a command, by file. */
import { takeWalks } from './walk.ts'

const say = (text: string) => process.stdout.write(`${text}\n`)

for (const [name, { ran, named, all }] of Object.entries(await takeWalks())) {
  say(`\n${name}: ${named.functions} named functions in ${named.files} files, ${all.functions} in ${all.files} in all`)
  for (const [file, functions] of [...Map.groupBy(ran, (one) => one.file)].sort()) {
    say(`  ${file}: ${functions.map((one) => one.name || `(at ${one.at})`).join(', ')}`)
  }
}
