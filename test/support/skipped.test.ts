import { globSync, readFileSync } from 'node:fs'
import { expect, it, test } from 'vitest'
import { runProgram } from './process.ts'

/** Matches imports of modules that print why tests are skipped, or that export the results of such modules. */
const REPORTING = /from '.*\/(skipped|brokers|nats|nginx|browser|engine|versions|installation)\.ts'|withoutMosquitto/

const skipping = globSync('test/**/*.{test,e2e}.ts').filter((path) =>
  /\.(skipIf|runIf|skip)\(/.test(readFileSync(path, 'utf8')),
)

test.each(skipping)('%s skips nothing without a reason', (path) => {
  expect(readFileSync(path, 'utf8')).toMatch(REPORTING)
})

it('prints what is skipped, why, and what would help', async () => {
  const module = new URL('skipped.ts', import.meta.url).href
  const source = `import { hasProgram } from ${JSON.stringify(module)}
    console.log(hasProgram('no-such-program', [], 'the tests of nothing', 'npm install nothing'))
    console.log(hasProgram(process.execPath, ['--version'], 'the others', 'here'))`
  expect(await runProgram(process.execPath, ['--input-type=module', '--eval', source])).toEqual({
    status: 0,
    stdout: 'false\ntrue\n',
    stderr: 'skipped: the tests of nothing, as no-such-program is not installed (npm install nothing)\n',
  })
})
