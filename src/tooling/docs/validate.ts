/** Checks the interface documents with public validators, without a network. */
import { readFileSync } from 'node:fs'
import { Parser } from '@asyncapi/parser'
import { Validator } from '@seriousme/openapi-schema-validator'
import { ROOT } from '../../base/root.ts'

const path = 'config/asyncapi.yaml'

// Ignore the advice to use AsyncAPI 3.1: hub2mqtt needs none of its new features, and fewer tools support it.
const accepted: readonly (string | number)[] = ['asyncapi-latest-version']

const text = readFileSync(new URL(path, ROOT), 'utf8')
const { diagnostics } = await new Parser().parse(text)
for (const { code, message, range } of diagnostics) {
  if (accepted.includes(code)) continue
  console.error(`${path}:${range.start.line + 1}: ${code}: ${message}`)
  process.exitCode = 1
}

const openapi = 'config/openapi.json'
const { valid, errors } = await new Validator().validate(readFileSync(new URL(openapi, ROOT), 'utf8'))
if (!valid) {
  console.error(`${openapi}: ${JSON.stringify(errors, null, 2)}`)
  process.exitCode = 1
}
