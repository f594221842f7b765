import * as v from 'valibot'
import { expect, it } from 'vitest'
import { LOG_LINES } from '../../../src/web/server/api/protocol.ts'
import { openDoor } from './door.ts'

it('the log over HTTP continues from one answer to the next, separately for each client, with the number of missing lines', async () => {
  const { askAsOwner, recent } = await openDoor()
  const read = async (after = '') => {
    const { status, headers, body } = await askAsOwner(`/api/log${after && `?after=${encodeURIComponent(after)}`}`)
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([200, 'application/json', 'no-store'])
    return v.parse(LOG_LINES, JSON.parse(body))
  }
  recent.add('{"msg":"one"}\n')
  const first = await read()
  expect(first).toMatchObject({ lines: ['{"msg":"one"}'], missed: 0, level: 'info', fallback: null })
  recent.add('{"msg":"two"}\n')
  const second = await read(first.next)
  expect(second.lines).toEqual(['{"msg":"two"}'])
  expect((await read(second.next)).lines).toEqual([])
  expect((await read()).lines).toHaveLength(2)
  for (let i = 0; i < 10_000; i += 1) recent.add(`{"msg":"${i}"}\n`)
  expect(await read(second.next)).toMatchObject({ lines: { length: 2_000 }, missed: 8_000 })
})
