/**
 * Tests the result of a write for each operation and each answer, with and without the hub's identity, executed or not.
 * Checks that each write is sent only once.
 */
import { describe, expect, test } from 'vitest'
import { CommandError, fromHubError } from '../../src/contract/errors.ts'
import { HubError } from '../../src/hub/errors.ts'
import { hold, listed } from '../hub/support.ts'
import { APP, aimAt, carryOut } from './aim.ts'
import { OddHub, type Plan, type Sign, type Signs, type WriteAnswer } from './odd-hub.ts'

interface Write {
  readonly command: string
  readonly payload?: string
  /** Whether the hub's state shows the effect, so that a check of the hub can confirm the write. */
  readonly shown?: true
  /** Whether the hub may answer with the app's record. */
  readonly ofApp?: true
  /** The value of `enabled` in the app's record. */
  readonly enables?: boolean
  /** Whether only an empty answer or the written value itself confirms the write. */
  readonly sets?: true
}

const call = (method: string, path: string, more = {}) =>
  JSON.stringify({ item: 'apps', method, path: `/app/${APP}${path}`, ...more })
const VALUE = { deep: [7] }

const WRITES: readonly Write[] = [
  { command: 'app enable', shown: true, ofApp: true, enables: true },
  { command: 'app disable', shown: true, ofApp: true, enables: false },
  { command: 'app autoupdate', payload: 'OFF', shown: true, ofApp: true },
  { command: 'app update', payload: '{"autoupdate":false}', shown: true, ofApp: true },
  { command: 'app set-setting/x', payload: JSON.stringify(VALUE), shown: true, sets: true },
  { command: 'app unset-setting/x', shown: true, ofApp: true },
  { command: 'app uninstall', payload: JSON.stringify({ confirm: APP }), shown: true, ofApp: true },
  { command: 'app install', shown: true, ofApp: true },
  { command: 'app restart', ofApp: true },
  { command: 'app garbage-collect', ofApp: true },
  { command: 'app get-std' },
  { command: 'hub speak', payload: 'hello' },
  { command: 'hub call', payload: call('PUT', '/enable'), shown: true, ofApp: true, enables: true },
  { command: 'hub call', payload: call('PUT', '/disable'), shown: true, ofApp: true, enables: false },
  { command: 'hub call', payload: call('PUT', '', { body: { autoupdate: false } }), shown: true, ofApp: true },
  { command: 'hub call', payload: call('PUT', '/setting/x', { body: { value: VALUE } }), shown: true, sets: true },
  { command: 'hub call', payload: call('DELETE', '/setting/x'), shown: true, ofApp: true },
  { command: 'hub call', payload: call('DELETE', ''), shown: true, ofApp: true },
  { command: 'hub call', payload: call('POST', '/restart'), ofApp: true },
  { command: 'hub call', payload: JSON.stringify({ item: 'backup', method: 'POST', path: '/backup' }) },
  { command: 'hub call', payload: JSON.stringify({ item: 'flow', method: 'POST', path: '/unheard-of' }) },
]

type Says = 'nothing' | 'done' | 'no' | 'another app' | 'not enabled' | 'not disabled'

interface Case {
  readonly answer: WriteAnswer
  readonly says: Says
}

const record = (more = {}) => ({ id: APP, name: 'The app', autoupdate: false, ...more })
const json = (says: Says, ...values: readonly unknown[]): Case[] =>
  values.map((value) => ({ says, answer: { body: JSON.stringify(value) } }))
const raw = (says: Says, ...answers: readonly WriteAnswer[]): Case[] => answers.map((answer) => ({ says, answer }))

/** Responses with a success status that any hub may send. */
const ANSWERS: readonly Case[] = [
  ...json('nothing', null),
  ...raw('nothing', { body: '' }, { body: '', type: '' }, { body: ' \r\n' }, { body: '', status: 201 }),
  ...raw('nothing', { body: '', status: 204 }, { body: '', status: 204, type: '' }),
  ...raw('nothing', { body: '\ufeff' }, { body: '\ufeffnull' }),
  ...raw('nothing', { body: `${'['.repeat(200)}${']'.repeat(200)}` }),
  ...json('done', true, 1, 0, '', 'OK', 'Error: failed', {}, [], { ok: true }, { success: true }, { message: 'no' }),
  ...json('done', record(), [record()], { result: record() }, { result: [{ result: record() }] }),
  ...json('done', record({ error: null }), { result: null }, { result: true, error: '' }, { status: 'ok' }),
  ...raw('done', { body: '{}', status: 202 }, { body: '\ufeff{"ok":true}' }),
  ...json('no', false, { ok: false }, { success: false }, { error: 'starting up' }, { error: { code: 1 } }),
  ...json('no', { status: 'error' }, { result: false }, { result: { result: { ok: false } } }, [{ success: false }]),
  ...json('no', record({ error: 'x' }), record({ success: false }), { status: 'failed' }, { status: 'fail' }),
  ...raw('no', { body: '\ufefffalse' }),
  ...json('another app', { id: 'another.app' }, [{ id: 'another.app' }], { result: { id: 'another.app' } }),
  ...json('not enabled', record({ enabled: false }), [record({ enabled: false })], { enabled: false }),
  ...json('not disabled', { result: record({ enabled: true }) }),
]

const html = 'text/html; charset=utf-8'
/** Answers that count as the hub's answers only if they show its identity. */
const TEXTS: readonly Case[] = raw(
  'done',
  { body: 'OK', type: 'text/plain' },
  { body: '{"half":' },
  { body: '<html>done</html>', type: html },
  { body: '<!doctype html><title>done</title>', type: 'application/json' },
  { body: '\ufeff <p>done', type: '' },
  { body: '{"ok":true}', type: 'TEXT/HTML' },
)
const EMPTY_PAGES: readonly Case[] = raw(
  'nothing',
  { body: '', type: html },
  { body: '', type: 'application/xhtml+xml' },
)

/** Returns the expected result of a write that was or was not `executed`. */
function expected({ shown, ofApp, enables, sets }: Write, says: Says, executed: boolean): string {
  const found = shown === true && executed
  if (says === 'no') return found ? 'ok' : 'hub_failed'
  const contradicts =
    (says === 'another app' && ofApp) ||
    (says === 'not enabled' && enables === true) ||
    (says === 'not disabled' && enables === false) ||
    (says !== 'nothing' && sets)
  return contradicts ? unanswered(found) : 'ok'
}

/** The judgement of a write depends only on these properties, so one write of each kind gets all cases. */
const kindOf = ({ shown, ofApp, enables, sets }: Write) => JSON.stringify([shown, ofApp, enables, sets])
const isFirstOfKind = (write: Write) => WRITES.find((one) => kindOf(one) === kindOf(write)) === write

/** Returns some of the cases, different for each write, for answers whose content should not matter. */
function some(write: Write, cases: readonly Case[]): Case[] {
  const every = isFirstOfKind(write) ? 4 : 12
  return cases.filter((_, i) => (i + WRITES.indexOf(write)) % every === 0)
}

const unanswered = (found: boolean) => (found ? 'ok' : 'outcome_unknown')

async function start(signs: Signs) {
  const hub = await OddHub.start(signs)
  const never = 3_600_000
  const held = hold(hub.url, { realtime: false, pollInterval: never, pollIntervalFallback: never, timeoutMs: 10_000 })
  await listed(held)
  return { hub, held, ...aimAt(held.hub) }
}

type Started = Awaited<ReturnType<typeof start>>

/** Resolves to the command's result, and how often the hub received and executed the write. */
async function run(started: Started, { command, payload, enables }: Write, plan: Plan): Promise<string> {
  const { hub } = started
  hub.reset(plan, enables !== true)
  const outcome = await carryOut(started, command, payload).then(
    () => 'ok',
    (error: unknown) => {
      if (error instanceof CommandError) return error.code
      if (error instanceof HubError) return fromHubError(error, true).code
      throw error
    },
  )
  return `${outcome}: asked ${hub.asked}, executed ${hub.executed}`
}

/** Runs each case, with and without the write being executed. Resolves to the results that are not as expected. */
async function disagreements(
  started: Started,
  write: Write,
  cases: readonly Case[],
  { sign, isHubs, canCheck = true }: { sign: Sign; isHubs: boolean; canCheck?: boolean },
): Promise<string[]> {
  const wrong: string[] = []
  for (const { answer, says } of cases) {
    for (const executes of [true, false]) {
      const found = write.shown === true && executes && canCheck
      const outcome = isHubs ? expected(write, says, executes) : unanswered(found)
      const wanted = `${outcome}: asked 1, executed ${executes ? 1 : 0}`
      const got = await run(started, write, { answer, sign, executes })
      if (got !== wanted) wrong.push(`${JSON.stringify(answer)}: ${got}, and not ${wanted}`)
    }
  }
  return wrong
}

describe.each(WRITES)('$command $payload', (write) => {
  test('is done if the hub confirms it in any form, with its identity', async () => {
    const all = [...ANSWERS, ...TEXTS, ...EMPTY_PAGES]
    const cases = isFirstOfKind(write) ? all : some(write, all)
    expect(await disagreements(await start('everywhere'), write, cases, { sign: 'own', isHubs: true })).toEqual([])
  })

  test.each(['none', 'other'] as const)(
    'is not done if another server answers in place of a hub that shows its identity: %s',
    async (sign) => {
      const failures = raw('done', ...[302, 303, 500, 502, 504].map((status) => ({ body: '{}', status })))
      const cases = some(write, [...ANSWERS, ...TEXTS, ...EMPTY_PAGES, ...failures])
      expect(await disagreements(await start('everywhere'), write, cases, { sign, isHubs: false })).toEqual([])
    },
  )

  test('nor if another server answers the check', async () => {
    const started = await start('everywhere')
    started.hub.signs = 'ping'
    const how = { sign: 'none', isHubs: false, canCheck: false } as const
    expect(await disagreements(started, write, raw('done', { body: '', status: 204 }), how)).toEqual([])
  })

  test.each(['ping', 'nowhere'] as const)(
    'is done if the answer is JSON or empty, and not if it is a page, from a hub without identity: %s',
    async (signs) => {
      const started = await start(signs)
      const every = [...TEXTS, ...EMPTY_PAGES, ...raw('done', { body: '<hr>', status: 502 })]
      const pages = isFirstOfKind(write) ? every : some(write, every)
      const answers = some(write, ANSWERS)
      expect(await disagreements(started, write, answers, { sign: 'none', isHubs: true })).toEqual([])
      expect(await disagreements(started, write, pages, { sign: 'none', isHubs: false })).toEqual([])
    },
  )

  test('is refused if the answer is a refusal, with or without the identity', async () => {
    const started = await start('everywhere')
    const refused = (sign: Sign, status: number) =>
      run(started, write, { answer: { body: '{}', status }, sign, executes: false })
    expect(await refused('own', 400)).toBe('hub_rejected: asked 1, executed 0')
    expect(await refused('none', 400)).toBe('hub_rejected: asked 1, executed 0')
    expect(await refused('own', 503)).toBe('hub_failed: asked 1, executed 0')
  })
})

describe('an answer that is too large to be read', () => {
  const write: Write = { command: 'hub call', payload: call('POST', '/restart') }
  const answer = { body: `"${'x'.repeat(1_500_000)}"` }

  test.each([
    ['everywhere', 'own', 'ok'],
    ['nowhere', 'none', 'outcome_unknown'],
  ] as const)('confirms a write only with the identity of the hub: %s', async (signs, sign, outcome) => {
    const got = await run(await start(signs), write, { answer, sign, executes: true })
    expect(got).toBe(`${outcome}: asked 1, executed 1`)
  })
})

describe("the hub's identity", () => {
  const RESTART: Write = { command: 'app restart' }
  const nothing = { body: '', status: 204 }

  test('is required after the first answer that had it', async () => {
    const started = await start('nowhere')
    const outcomes: string[] = []
    for (const sign of ['none', 'own', 'none'] as const) {
      outcomes.push((await run(started, RESTART, { answer: nothing, sign, executes: true })).split(':')[0] ?? '')
    }
    expect(outcomes).toEqual(['ok', 'ok', 'outcome_unknown'])
  })

  test('is not required after the hub was replaced with one that does not show it', async () => {
    const started = await start('everywhere')
    Object.assign(started.hub, { id: 'the-next-hub', signs: 'ping' })
    await started.held.hub.refresh()
    const got = await run(started, RESTART, { answer: nothing, sign: 'none', executes: true })
    expect(got).toBe('ok: asked 1, executed 1')
  })
})

test.each(['false', '0', '""', '{"ok":false}'])(
  'the echo of the setting %s may be a refusal: a check decides',
  async (body) => {
    const started = await start('everywhere')
    const write: Write = { command: 'app set-setting/x', payload: body, shown: true }
    for (const [executes, outcome] of [
      [true, 'ok'],
      [false, 'outcome_unknown'],
    ] as const) {
      expect(await run(started, write, { answer: { body }, sign: 'own', executes })).toMatch(`${outcome}: asked 1`)
    }
  },
)

test('a setting is confirmed by its value, and an answer of an app is not judged', async () => {
  const started = await start('everywhere')
  const set: Write = { command: 'app set-setting/x', payload: '{"a":1,"b":[2]}' }
  const app: Write = {
    command: 'hub call',
    payload: JSON.stringify({ section: 'app', item: APP, method: 'PUT', path: '/lamp', body: false }),
  }
  const echo: Plan = { answer: { body: '{"b":[2],"a":1}' }, sign: 'own', executes: false }
  expect(await run(started, set, echo)).toBe('ok: asked 1, executed 0')
  const nameless = await start('ping')
  for (const body of ['false', '{"error":"dark"}', 'off', '{"id":"another.app"}']) {
    const got = [await run(started, app, { answer: { body }, sign: 'own', executes: true })]
    got.push(await run(nameless, app, { answer: { body }, sign: 'none', executes: true }))
    got.push(await run(started, app, { answer: { body }, sign: 'none', executes: true }))
    const [yes, unknown] = ['ok', 'outcome_unknown'].map((outcome) => `${outcome}: asked 1, executed 1`)
    expect(got).toEqual([yes, yes, unknown])
  }
})
