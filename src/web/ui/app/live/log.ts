/** The log of hub2mqtt, read on once a second while its view is open and visible. */
import { batch, signal } from '@preact/signals'
import * as v from 'valibot'
import { shownLine } from '../../../../observability/controls.ts'
import type { LogLines } from '../../../server/api/protocol.ts'
import { api } from '../api.ts'
import { read } from './payload.ts'

export type LogLine = Readonly<ReturnType<typeof lineOf>>

/** As many as the daemon keeps. */
const MOST = 2_000
const INTERVAL_MS = 1_000

/** Of a field; `null` counts as missing. */
const optional = (schema: v.GenericSchema<string>) => v.nullish(schema, () => undefined)
const FIELDS = v.looseObject({
  ...v.entriesFromList(['level', 'part', 'hub', 'app', 'msg'], optional(v.string())),
  time: optional(v.pipe(v.string(), v.isoTimestamp())),
})
const ERROR = v.object({ stack: v.string() })

export class LogReader {
  readonly lines = signal<readonly LogLine[]>([])
  /** The level of the log, and what follows it. */
  readonly level = signal<Pick<LogLines, 'level' | 'fallback'> | undefined>(undefined)
  /** Why the last attempt to read failed. */
  readonly failure = signal<string | undefined>(undefined)
  #count = 0
  #next = ''
  #isReading = false
  #hasEnded = false
  #timer: ReturnType<typeof setTimeout> | undefined

  start(): void {
    document.addEventListener('visibilitychange', this.readOn)
    this.readOn()
  }

  readonly end = (): void => {
    this.#hasEnded = true
    document.removeEventListener('visibilitychange', this.readOn)
    clearTimeout(this.#timer)
  }

  /** Reads at once what is new, and again after a while. */
  readonly readOn = (): void => {
    if (this.#isReading || this.#hasEnded || document.hidden) return
    clearTimeout(this.#timer)
    void this.#read()
  }

  async #read(): Promise<void> {
    this.#isReading = true
    const answer = await api.log(this.#next)
    this.#isReading = false
    if (this.#hasEnded) return
    batch(() => {
      this.failure.value = answer.ok ? undefined : answer.message
      if (answer.ok) this.#add(answer.value)
    })
    this.#timer = setTimeout(this.readOn, INTERVAL_MS)
  }

  #add({ lines, missed, next, level, fallback }: LogLines): void {
    this.#next = next
    this.level.value = { level, fallback }
    if (lines.length === 0 && missed === 0) return
    const lineFrom = (json: string) => {
      this.#count += 1
      return lineOf(json, this.#count)
    }
    const gap = missed > 0 ? [{ ...lineFrom(JSON.stringify({ missed })), missed }] : []
    this.lines.value = [...this.lines.value, ...gap, ...lines.map(lineFrom)].slice(-MOST)
  }
}

function lineOf(json: string, number: number) {
  const { level, time, part, hub, app, msg, ...rest } = read(FIELDS, shownLine(json)) ?? v.parse(FIELDS, { msg: json })
  const stack = read(ERROR, rest['err'] ?? rest['error'])?.stack ?? ''
  const further = Object.entries(rest).filter(([name]) => stack === '' || (name !== 'err' && name !== 'error'))
  return {
    /** Counts up; the key in lists. */
    number,
    /** How many lines are missing here; such an entry has no other content. */
    missed: 0,
    ...{ level, time, part, hub, app },
    message: msg ?? '',
    /** The other fields. */
    further: further.map(([name, value]) => `${name}=${textOf(value)}`).join(' '),
    /** The stack of an error, of several lines. */
    stack,
    /** The line as it was logged, as JSON. */
    json,
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))
