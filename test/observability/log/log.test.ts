import { describe, expect, it } from 'vitest'
import { createLog, type LogOptions } from '../../../src/observability/log.ts'
import { createOutput } from '../../../src/observability/output.ts'
import { Scrubber } from '../../../src/observability/scrub.ts'

function recorded(options: Partial<LogOptions> & { secrets?: string[] } = {}) {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const log = createLog({ level: 'info', format: 'json', secrets: [], isTTY: false, destination, ...options })
  return { log, lines, text: () => lines.join('') }
}

const AWKWARD = 'to"k\\en/ü +?&\t=%41'

function logEverywhere(log: ReturnType<typeof recorded>['log'], secret: string) {
  const cause = new Error(`cause ${secret}`)
  const error = Object.assign(new Error(`failed with ${secret}`, { cause }), { config: { headers: [secret] } })
  log.info(`message ${secret}`)
  log.info({ a: { b: [{ c: secret }] }, [`key ${secret}`]: 1, deep: { [secret]: true } }, 'nested')
  log.error({ err: error }, 'error')
  log.error({ error }, 'error by another name')
  log.error(error)
  log.info('formatted %s %j', secret, { secret })
  log.info(`json ${JSON.stringify({ secret })} ${JSON.stringify(JSON.stringify({ secret }))}`)
  log.info(`url http://x/?key=${encodeURIComponent(secret)}&${new URLSearchParams({ secret })}`)
  log.info(encodeURIComponent(secret).toLowerCase())
  log.child({ bound: secret }).info('child')
}

describe('secrets in the log', () => {
  describe.each(['json', 'pretty'] as const)('as %s', (format) => {
    // `spellings.test.ts` tests the other spellings of a secret.
    it.each(['plain-api-key', AWKWARD])('are masked at any position if the secret is %j', (secret) => {
      const { log, lines, text } = recorded({ format, secrets: [secret] })
      logEverywhere(log, secret)
      expect(lines.length).toBeGreaterThanOrEqual(10)
      for (const spelling of [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)])
        expect(text().toLowerCase()).not.toContain(spelling.toLowerCase())
      expect(text()).toContain('message ***')
    })
  })

  it.each(['1767', '2026', 'null', 'true', 'level', 'time', '","m', '":"x', '{"le', '\\n\\n'])(
    'leave valid JSON if the secret is %j',
    (secret) => {
      const { log, lines } = recorded({ secrets: [secret] })
      log.info({ number: 917_671, list: [null, true], text: `x${secret}x` }, `m ${secret}`)
      const line: unknown = JSON.parse(lines[0] ?? '')
      expect(line).toMatchObject({ level: 'info', msg: 'm ***', text: 'x***x', list: [null, true] })
      expect(lines[0]?.endsWith('}\n')).toBe(true)
    },
  )

  it('are masked from the moment they are added, in child loggers too', () => {
    const { log, lines } = recorded()
    const child = log.child({ hub: 'home' })
    child.info('key rotated-key')
    log.addSecret('rotated-key')
    child.info('key rotated-key')
    expect(lines.map((line) => line.includes('rotated-key'))).toEqual([true, false])
  })

  it('of fewer than four characters stay, because they are part of many texts', () => {
    expect(new Scrubber(['a', 'inf']).text('a info line')).toBe('a info line')
  })

  it('are searched as text if a line is not JSON', () => {
    expect(new Scrubber(['abcd']).line('no json abcd')).toBe('no json ***')
  })

  it('do not change lines without them', () => {
    const line = '{"a":1,"a":2}\n'
    expect(new Scrubber(['abcd']).line(line)).toBe(line)
  })
})

describe('lines', () => {
  it('are JSON with a level by name, a readable time, and no host name', () => {
    const { log, lines } = recorded()
    log.warn({ hub: 'home' }, 'connection lost')
    expect(JSON.parse(lines[0] ?? '')).toEqual({
      level: 'warn',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      hub: 'home',
      msg: 'connection lost',
    })
  })

  it('have the stack and cause of an error under err and error', () => {
    const { log, text } = recorded()
    log.error({ error: new Error('outer', { cause: new Error('inner') }) })
    expect(text()).toMatch(/"message":"outer: inner".*"stack":"Error: outer/)
  })

  it.each([
    ['auto', true, false],
    ['auto', false, true],
    ['json', true, true],
    ['pretty', false, false],
  ] as const)('with format %s and terminal %s are JSON: %s', (format, isTTY, isJson) => {
    const { log, text } = recorded({ format, isTTY })
    log.info('hello')
    expect(text()).toContain('hello')
    expect(text().startsWith('{')).toBe(isJson)
  })

  it('below the level are not written, and the level of all loggers changes at run time', () => {
    const { log, lines } = recorded({ level: 'warn' })
    const child = log.child({ part: 'mqtt' })
    child.info('hidden')
    log.setLevel('debug')
    child.debug('shown')
    log.debug('shown')
    log.setLevel('error')
    child.warn('hidden')
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['shown', 'shown'])
  })

  it.each(['info', 'warn', 'fatal'] as const)('of the audit are written at any level, from %s on', (level) => {
    const { log, lines } = recorded({ level })
    for (const wanted of ['error', 'info', 'fatal', 'debug', 'trace'] as const) {
      log.setLevel(wanted)
      log.audit.info(wanted)
    }
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['error', 'info', 'fatal', 'debug', 'trace'])
  })
})

describe('text from a hub', () => {
  const NASTY = '\u001b]0;title\u0007 \u009b31m \u007f \u0085 \r\n[00:00:00] INFO: forged \u2028 \u202e \u0000 \t'
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the log must not contain these.
  const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e]/

  it.each(['json', 'pretty'] as const)('cannot control the terminal that shows the log as %s', (format) => {
    const { log, lines, text } = recorded({ format, isTTY: false })
    log.info(NASTY)
    log.info({ app: NASTY, [NASTY]: [{ deep: NASTY }], stack: NASTY }, 'fields')
    log.error({ err: new Error(NASTY, { cause: new Error(NASTY) }) }, 'error')
    log.child({ hub: NASTY }).info('child')
    expect(text()).not.toMatch(CONTROL)
    // Only a new entry starts at the beginning of a line, because a stack is indented.
    expect(text()).not.toMatch(/^\[00:00:00\]/m)
    expect(text()).toContain('\\u009b31m')
    expect(lines).toHaveLength(4)
  })

  it('is unchanged for a program that parses the log', () => {
    const { log, lines } = recorded({ format: 'json' })
    log.info({ app: NASTY }, NASTY)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ app: NASTY, msg: NASTY })
  })

  it('stays readable in every language', () => {
    const { log, text } = recorded({ format: 'pretty', isTTY: false })
    log.info('Ünïcode and 😀 stay')
    expect(text()).toContain('Ünïcode and 😀 stay')
  })
})

describe('a destination that fails', () => {
  const broken = (code: string) => Object.assign(new Error(code), { code })

  it('loses lines, not the daemon', () => {
    for (const format of ['json', 'pretty'] as const) {
      const destination = {
        write() {
          throw broken('ENOSPC')
        },
      }
      const { log } = recorded({ format, destination })
      expect(() => log.error(new Error('x'))).not.toThrow()
    }
  })

  it('gets the log again when the disk has free space', () => {
    let full = true
    const written: string[] = []
    const output = createOutput((chunk) => {
      if (full) throw broken('ENOSPC')
      written.push(chunk.toString())
      return chunk.length
    })
    output.write('lost\n')
    full = false
    output.write('kept\n')
    expect(written).toEqual(['kept\n'])
  })

  it('gets the rest of a line that was written in part', () => {
    let written = ''
    const output = createOutput((chunk) => {
      written += chunk.subarray(0, 3).toString()
      return Math.min(3, chunk.length)
    })
    output.write('a whole line\n')
    expect(written).toBe('a whole line\n')
  })

  it('that is busy gets the last lines before an exit, which waits for it with a time limit', () => {
    let refusals = 0
    let written = ''
    const output = createOutput((chunk) => {
      if (refusals++ < 4) throw broken('EAGAIN')
      written += chunk.toString()
      return chunk.length
    })
    output.write('last words\n')
    output.drain(10_000)
    expect(written).toBe('last words\n')
    const stuck = createOutput(() => {
      throw broken('EAGAIN')
    })
    stuck.write('never\n')
    stuck.drain(10)
  })

  it('that is busy gets its lines later, complete and in order, from a limited buffer', async () => {
    let busy = true
    let written = ''
    const { promise, resolve } = Promise.withResolvers<void>()
    const output = createOutput((chunk) => {
      if (busy) throw broken('EAGAIN')
      written += chunk.toString()
      resolve()
      return chunk.length
    })
    output.write('one\n')
    output.write('two\n')
    output.write('x'.repeat(2_000_000))
    busy = false
    const keepAlive = setTimeout(() => {}, 10_000)
    await promise
    clearTimeout(keepAlive)
    expect(written).toBe('one\ntwo\n')
  })
})
