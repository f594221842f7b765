import { Validator } from '@seriousme/openapi-schema-validator'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { hubOpenapi } from '../../../src/tooling/docs/hub-openapi.ts'
import { ask, hubOf } from '../../emulator/support.ts'

const OPERATION = v.object({
  operationId: v.string(),
  security: v.array(v.object({ key: v.array(v.string()) })),
  'x-flavours': v.optional(v.array(v.string())),
})
const DOCUMENT = v.object({ paths: v.record(v.string(), v.record(v.string(), OPERATION)) })

const operations = Object.entries(v.parse(DOCUMENT, JSON.parse(hubOpenapi())).paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ line: `${method.toUpperCase()} /api${path}`, ...operation })),
)

test('the document of the emulated hub is valid OpenAPI 3.1', async () => {
  expect(await new Validator().validate(hubOpenapi())).toMatchObject({ valid: true })
})

test.each(operations.filter(({ line }) => line.includes(' /api/manager/')))(
  '$operationId wants the permission that the document names, and no other',
  async ({ line, security, 'x-flavours': flavours }) => {
    const flavour = flavours?.includes('older') === false ? 'newer' : 'older'
    const wanted = security[0]?.key ?? []
    const hub = await hubOf({ flavour, keys: { none: [], enough: wanted } })
    const filled = line.replace('{id}', 'nobody').replace('{name}', 'nothing')
    expect((await ask(hub, filled, { key: null })).status).toBe(security.length === 0 ? 200 : 401)
    expect((await ask(hub, filled, { key: 'none' })).status === 403).toBe(wanted.length > 0)
    expect((await ask(hub, filled, { key: 'enough' })).status).not.toBe(403)
  },
)
