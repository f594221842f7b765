/** The log of hub2mqtt: polls for new lines once a second while its view is open and visible. */
import { batch, signal } from '@preact/signals'
import * as v from 'valibot'
import { shownLine } from '../../../../observability/controls.ts'
import type { LogLines } from '../../../server/api/protocol.ts'
import { api } from '../api.ts'
import { read } from './payload.ts'
import { poll } from './poll.ts'

export type LogLine = Readonly<ReturnType<typeof lineOf>>

/** How many lines to keep, as many as the daemon does. */
const MAX_LINES = 2_000
const INTERVAL_MS = 1_000

/** The schema of an optional field; `null` counts as missing. */
const optional = (schema: v.GenericSchema<string>) => v.nullish(schema, () => undefined)
const FIELDS = v.looseObject({
  ...v.entriesFromList(['level', 'part', 'hub', 'app', 'msg'], optional(v.string())),
  time: optional(v.pipe(v.string(), v.isoTimestamp())),
})
const ERROR = v.object({ stack: v.string() })

/** Reads the log until `end` is called. */
export function followLog() {
  const lines = signal<readonly LogLine[]>([])
  /** The level of the log, and the level that follows. */
  const level = signal<Pick<LogLines, 'level' | 'fallback'> | undefined>(undefined)
  /** Why the last attempt to read failed. */
  const failure = signal<string | undefined>(undefined)
  let [count, next] = [0, '']
  const lineFrom = (json: string) => {
    count += 1
    return lineOf(json, count)
  }
  const add = ({ lines: added, missed, next: following, level: now, fallback }: LogLines) => {
    next = following
    level.value = { level: now, fallback }
    if (added.length === 0 && missed === 0) return
    const gap = missed > 0 ? [{ ...lineFrom(JSON.stringify({ missed })), missed }] : []
    lines.value = [...lines.value, ...gap, ...added.map(lineFrom)].slice(-MAX_LINES)
  }
  const reading = poll(INTERVAL_MS, async (isOver) => {
    const answer = await api.log(next)
    if (isOver()) return
    batch(() => {
      failure.value = answer.ok ? undefined : answer.message
      if (answer.ok) add(answer.value)
    })
  })
  return { lines, level, failure, ...reading }
}

function lineOf(json: string, number: number) {
  const { level, time, part, hub, app, msg, ...rest } = read(FIELDS, shownLine(json)) ?? v.parse(FIELDS, { msg: json })
  const stack = read(ERROR, rest['err'] ?? rest['error'])?.stack ?? ''
  const fields = Object.entries(rest).filter(([name]) => stack === '' || (name !== 'err' && name !== 'error'))
  return {
    /** Increases with each line; the key in lists. */
    number,
    /** How many lines are missing here; such an entry has no other content. */
    missed: 0,
    ...{ level, time, part, hub, app },
    message: msg ?? '',
    /** The other fields. */
    fields: fields.map(([name, value]) => `${name}=${textOf(value)}`).join(' '),
    /** The stack of an error, which has several lines. */
    stack,
    /** The line as it was logged, as JSON. */
    json,
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))
