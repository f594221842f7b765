import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLog } from '../../../src/observability/log.ts'
import { RecentLines } from '../../../src/observability/output.ts'

function kept(
  options: { readonly secrets?: string[]; readonly keep?: boolean; readonly format?: 'json' | 'pretty' } = {},
) {
  const written: string[] = []
  const destination = { write: (line: string) => void written.push(line) }
  const log = createLog({
    level: 'info',
    format: 'json',
    secrets: [],
    keep: true,
    isTTY: false,
    destination,
    ...options,
  })
  return { log, written, lines: () => log.recent.after('').lines }
}

describe('the latest lines of the log', () => {
  it('are those that were written, without line ends', () => {
    const { log, written, lines } = kept()
    log.info('one')
    log.debug('not written')
    log.child({ part: 'apps', hub: 'home' }).warn({ app: 'com.x' }, 'two')
    log.print('for the reader of the output alone')
    expect(lines().map((line) => `${line}\n`)).toEqual(written.slice(0, 2))
    expect(lines().map((line) => JSON.parse(line).msg)).toEqual(['one', 'two'])
  })

  it('are JSON on a terminal too', () => {
    const { log, lines } = kept({ format: 'pretty' })
    log.info('one')
    expect(lines().map((line) => JSON.parse(line).msg)).toEqual(['one'])
  })

  it('are empty if they are not kept', () => {
    const { log, lines } = kept({ keep: false })
    log.info('one')
    expect(lines()).toEqual([])
  })

  it('contain no secret, also if a long line was shortened in the middle of one', () => {
    const secret = 'correct-horse-battery'
    for (let before = 900; before < 1_100; before += 1) {
      const { log, lines } = kept({ secrets: [secret] })
      log.info(`${'x'.repeat(before)}${secret}${'y'.repeat(5_000)}`)
      expect(lines()[0]).not.toContain('correct')
    }
  })

  it('contain no control character, whatever was logged', () => {
    const { log, lines } = kept()
    log.info({ app: '\u001b[31mred\u202e', name: '<b>\n</b>' }, 'line\nbreak\u0007\u2028')
    expect(lines()[0]).toMatch(/^[\x20-\x7e]+$/)
    expect(JSON.parse(lines()[0] ?? '')).toMatchObject({ app: '\u001b[31mred\u202e', msg: 'line\nbreak\u0007\u2028' })
  })

  it('are limited to 2,000, and the next answer contains the number of dropped lines', () => {
    const recent = new RecentLines()
    recent.add('{"n":-1}\n')
    const { next } = recent.after('')
    for (let n = 0; n < 2_500; n += 1) recent.add(`{"n":${n}}\n`)
    const { lines, missed, next: last } = recent.after(next)
    expect([lines.length, lines[0], lines.at(-1), missed]).toEqual([2_000, '{"n":500}', '{"n":2499}', 500])
    expect(recent.after(last)).toEqual({ lines: [], missed: 0, next: last })
    recent.add('{"n":2500}\n')
    expect(recent.after(last)).toMatchObject({ lines: ['{"n":2500}'], missed: 0 })
  })

  it('are complete for an unknown cursor, such as one of an earlier process', () => {
    const recent = new RecentLines()
    recent.add('{"n":0}\n')
    const { next } = recent.after('')
    const run = next.slice(0, next.indexOf('.'))
    for (const cursor of ['', 'x', '0.1', `${run}.`, `${run}.-1`, `${run}.x`, `${run}.${'9'.repeat(99)}`, `y${next}`]) {
      expect(recent.after(cursor), cursor).toEqual({ lines: ['{"n":0}'], missed: 0, next })
    }
    expect(recent.after(`${run}.999`)).toEqual({ lines: [], missed: 0, next })
  })

  it('use at most a million characters, and two consecutive answers contain each line once', () => {
    const lengths = fc.array(fc.integer({ min: 0, max: 20_000 }), { maxLength: 600 })
    fc.assert(
      fc.property(lengths, fc.nat(600), (all, pause) => {
        const recent = new RecentLines()
        const line = (n: number) =>
          JSON.stringify({ level: 'info', time: 't', n, msg: `${n} ${'"'.repeat(all[n] ?? 0)}` })
        const read = () => {
          const answer = recent.after(cursor)
          cursor = answer.next
          return answer
        }
        let cursor = recent.after('').next
        for (const n of all.keys()) if (n < pause) recent.add(line(n))
        const first = read()
        for (const n of all.keys()) if (n >= pause) recent.add(line(n))
        const second = read()
        expect(recent.after('').lines.join('').length).toBeLessThanOrEqual(1_048_576)
        const found = [first, second].reduce((sum, { lines, missed }) => sum + lines.length + missed, 0)
        expect(found).toBe(all.length)
        const numbers = [...first.lines, ...second.lines].map((one) => Number.parseInt(JSON.parse(one).msg, 10))
        expect(numbers).toEqual([...new Set(numbers)].toSorted((one, other) => one - other))
      }),
      { numRuns: 30 },
    )
  })

  it('are shortened if they are long, to JSON with the most important fields', () => {
    const { log, lines } = kept()
    log.child({ part: 'apps', hub: 'home' }).error({ app: 'com.x', extra: 'y'.repeat(100_000) }, 'm'.repeat(100_000))
    const [line = ''] = lines()
    expect(line.length).toBeLessThan(4_096)
    const fields = { level: 'error', part: 'apps', hub: 'home', app: 'com.x', shortened_from: expect.any(Number) }
    expect(JSON.parse(line)).toMatchObject({
      ...fields,
      msg: 'm'.repeat(1_000),
      time: expect.stringMatching(/^20\d\d-/),
    })
  })

  it('are shortened too if masking a secret has broken their JSON', () => {
    const recent = new RecentLines()
    recent.add(`{"level":***${'x'.repeat(9_000)}`)
    expect(JSON.parse(recent.after('').lines[0] ?? '')).toMatchObject({
      beginning: expect.stringMatching(/^\{"level":\*/),
    })
  })
})
