import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** Matches imports of modules that print why tests are skipped, or that export the results of such modules. */
const REPORTING = /from '.*\/(skipped|brokers|nats|nginx|browser|engine|versions|installation)\.ts'|withoutMosquitto/

const skipping = globSync('test/**/*.{test,e2e}.ts').filter((path) =>
  /\.(skipIf|runIf|skip)\(/.test(readFileSync(path, 'utf8')),
)

test.each(skipping)('%s skips nothing without a reason', (path) => {
  expect(readFileSync(path, 'utf8')).toMatch(REPORTING)
})
