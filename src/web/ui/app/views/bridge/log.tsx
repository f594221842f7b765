/** The view of the log. It polls for new lines once a second while it is open and visible. */
import { batch, type Signal, signal, useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import * as v from 'valibot'
import { LOG_LEVELS, type LogLevel } from '../../../../../contract/log-levels.ts'
import { shownLine } from '../../../../../observability/controls.ts'
import type { LogLines } from '../../../../server/api/protocol.ts'
import { api } from '../../api.ts'
import { act, refusal } from '../../commands.ts'
import { read } from '../../live/payload.ts'
import { poll } from '../../live/poll.ts'
import type { Store } from '../../live/store.ts'
import { Action, Alert, Badge, Search, Select, set, Table, Time, type Tone } from '../../parts/controls.tsx'
import { Glyph } from '../../parts/icons.tsx'
import { hrefOf } from '../../route.ts'
import { usePage } from '../../session.ts'
import { collator, defineStrings, terms } from '../../terms.ts'

const text = defineStrings('log', {
  hint: 'The latest 2,000 lines of hub2mqtt’s own log, without secrets. Hubs do not provide the output of apps from the store.',
  access: 'The log needs full access.',
  search: 'Search the log',
  filters: { level: 'Show levels', hub: 'Show hub', app: 'Show app' },
  all: { level: 'All levels', hub: 'All hubs', app: 'All apps' },
  above: '{level} and above',
  follow: 'Follow',
  followNew: 'Follow ({count} new)',
  download: 'Download',
  columns: { time: 'Time', level: 'Level', where: 'Where', message: 'Message' },
  missed: { one: '{count} line is missing here.', other: '{count} lines are missing here.' },
  empty: 'Nothing has been logged yet.',
  noMatch: 'No lines match.',
  now: 'Level: {level}',
  limited: {
    one: 'Level: {level} for {count} more minute, then {next}',
    other: 'Level: {level} for {count} more minutes, then {next}',
  },
  wanted: 'Level for 10 minutes',
  setLevel: 'Set for 10 minutes',
  endNow: 'Back to {next} now',
})

export function LogPage() {
  const { session } = usePage()
  return (
    <div class="view">
      <a class="back" href={hrefOf({ at: 'bridge' })}>
        <Glyph name="back" size={16} /> {terms.views.bridge}
      </a>
      <h1>{terms.views.log}</h1>
      {session.access === 'full' ? (
        <Log />
      ) : (
        <p class="empty">
          {text.access} {session.login === 'token' && terms.howToWrite}
        </p>
      )}
    </div>
  )
}

const MINUTE_MS = 60_000

function Level({ reader }: { readonly reader: ReturnType<typeof followLog> }) {
  const page = usePage()
  const wanted = useSignal<LogLevel>('debug')
  const now = reader.level.value
  if (now === undefined) return null
  const { level, fallback } = now
  const refused = refusal(page, {}, 'log-level')
  const send = async (payload: object | string) => {
    await act({}, 'log-level', payload)
    void reader.readNow()
  }
  return (
    <div class="toolbar">
      <strong>
        {fallback === null
          ? text.now({ level })
          : text.limited({ level, next: fallback.level, count: Math.ceil(fallback.remaining_ms / MINUTE_MS) })}
      </strong>
      <Select aria-label={text.wanted} options={LOG_LEVELS} chosen={wanted.value} choose={(one) => set(wanted, one)} />
      <Action label={text.setLevel} refused={refused} act={() => void send({ level: wanted.value, for: '10m' })} />
      {fallback !== null && (
        <Action label={text.endNow({ next: fallback.level })} refused={refused} act={() => void send(fallback.level)} />
      )}
    </div>
  )
}

/** Maximum distance from the end, in pixels, at which the log counts as scrolled to the end. */
const NEAR_END = 24

function Log() {
  const { store } = usePage()
  const reader = useMemo(followLog, [])
  useEffect(() => reader.end, [reader])
  const filters = { level: useSignal(''), hub: useSignal(''), app: useSignal(''), search: useSignal('') }
  /** The lines at the time when the user scrolled up; `undefined` at the end of the log. */
  const frozen = useSignal<readonly LogLine[] | undefined>(undefined)
  const box = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    if (frozen.value === undefined) box.current?.scrollTo(0, box.current.scrollHeight)
  })
  const onScroll = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }: { currentTarget: HTMLElement }) => {
    const isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR_END
    if (isAtEnd !== (frozen.value === undefined)) frozen.value = isAtEnd ? undefined : reader.lines.value
  }
  const passes = filterOf(filters)
  const all = frozen.value ?? reader.lines.value
  const shown = all.filter(passes)
  const empty = reader.level.value === undefined ? terms.loading : text.empty
  const last = all.at(-1)?.number ?? 0
  const added =
    frozen.value === undefined ? 0 : reader.lines.value.filter((line) => line.number > last && passes(line)).length
  const hubs = store.own.value.map(({ name }) => name)
  return (
    <>
      <p class="quiet hint">{text.hint}</p>
      <Level reader={reader} />
      <div class="toolbar">
        <Search label={text.search} value={filters.search} />
        <Choice name="level" chosen={filters.level} options={LOG_LEVELS} labelOf={(level) => text.above({ level })} />
        {hubs.length > 1 && <Choice name="hub" chosen={filters.hub} options={hubs} />}
        <Choice
          name="app"
          chosen={filters.app}
          options={[...new Set(reader.lines.value.flatMap(({ app }) => app ?? []))].toSorted(collator.compare)}
          labelOf={(app) => nameOf(store, undefined, app)}
        />
        <Action
          label={
            frozen.value === undefined ? terms.pause : added === 0 ? text.follow : text.followNew({ count: added })
          }
          glyph={frozen.value === undefined ? 'pause' : 'play'}
          act={() => set(frozen, frozen.value === undefined ? reader.lines.value : undefined)}
        />
        <Action label={text.download} glyph="update" act={() => download(shown)} />
      </div>
      {reader.failure.value !== undefined && <Alert>{reader.failure.value}</Alert>}
      {shown.length === 0 && <p class="empty">{all.length === 0 ? empty : text.noMatch}</p>}
      <div class="card" hidden={shown.length === 0}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: users must be able to scroll this element by keyboard. */}
        <div class="scroll log" ref={box} tabIndex={0} onScroll={onScroll}>
          <Table label={terms.views.log} columns={Object.values(text.columns)} head="hidden">
            {shown.map((line) => (
              <Line key={line.number} line={line} store={store} />
            ))}
          </Table>
        </div>
      </div>
    </>
  )
}

type Filters = Readonly<Record<'level' | 'hub' | 'app' | 'search', Signal<string>>>

/** Returns the filter for lines. Entries for missing lines always pass, because some missing lines may match. */
function filterOf({ level, hub, app, search }: Filters): (line: LogLine) => boolean {
  const all: readonly (string | undefined)[] = LOG_LEVELS
  const levels = all.slice(0, all.indexOf(level.value) + 1)
  const wanted = search.value.trim().toLowerCase()
  return (line) => {
    if (line.missed > 0) return true
    if (levels.length > 0 && !levels.includes(line.level)) return false
    if (hub.value !== '' && line.hub !== hub.value) return false
    if (app.value !== '' && line.app !== app.value) return false
    return wanted === '' || searchable(line).includes(wanted)
  }
}

function searchable({ level, part, hub, app, message, fields, stack }: LogLine): string {
  return [level, part, hub, app, message, fields, stack].join(' ').toLowerCase()
}

interface ChoiceProps {
  readonly name: 'level' | 'hub' | 'app'
  readonly chosen: Signal<string>
  readonly options: readonly string[]
  readonly labelOf?: (option: string) => string
}

function Choice({ name, chosen, options, labelOf = (option) => option }: ChoiceProps) {
  const { value } = chosen
  const all = value === '' || options.includes(value) ? options : [value, ...options]
  return (
    <Select
      class="choice"
      aria-label={text.filters[name]}
      options={['', ...all]}
      chosen={value}
      choose={(option) => set(chosen, option)}
      nameOf={(option) => (option === '' ? text.all[name] : labelOf(option))}
    />
  )
}

const TONES: Readonly<Record<string, Tone>> = { fatal: 'bad', error: 'bad', warn: 'warn', info: 'info' }

function Line({ line, store }: { readonly line: LogLine; readonly store: Store }) {
  const { missed, level = '', time, part, hub, app, message, fields, stack } = line
  if (missed > 0) {
    return (
      <tr>
        <td colSpan={4} class="quiet">
          {text.missed({ count: missed })}
        </td>
      </tr>
    )
  }
  return (
    <tr>
      <td class="c-time">{time !== undefined && <Time at={time} />}</td>
      <td>{level !== '' && <Badge tone={TONES[level] ?? 'quiet'}>{level}</Badge>}</td>
      <td class="c-app">
        {hub !== undefined && app !== undefined ? (
          <a href={hrefOf({ at: 'app', hub, app })} title={app}>
            {nameOf(store, hub, app)}
          </a>
        ) : (
          (app ?? hub ?? <span lang="en">{part}</span>)
        )}
      </td>
      <td lang="en">
        {message} {fields !== '' && <small>{fields}</small>}
        {stack !== '' && <div class="said">{stack}</div>}
      </td>
    </tr>
  )
}

/** Returns an app's name without subscribing to it, so a changed name is shown when the next line arrives. */
function nameOf(store: Store, hub: string | undefined, app: string): string {
  const hubs = store.hubs.peek().filter(({ name }) => hub === undefined || hub === name)
  return hubs.map(({ apps }) => apps.peek().get(app)?.name.peek()).find((name) => name !== undefined) ?? app
}

function download(lines: readonly LogLine[]): void {
  const url = URL.createObjectURL(new Blob([lines.map(({ json }) => `${json}\n`).join('')]))
  const link = document.createElement('a')
  link.href = url
  link.download = `hub2mqtt-log-${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}.jsonl`
  link.click()
  setTimeout(() => URL.revokeObjectURL(url))
}

type LogLine = Readonly<ReturnType<typeof lineOf>>

/** Maximum number of lines in the view. The daemon stores the same number. */
const MAX_LINES = 2_000
const INTERVAL_MS = 1_000

/** Returns a schema for a field that may be missing. `null` counts as missing. */
const optional = (schema: v.GenericSchema<string>) => v.nullish(schema, () => undefined)
const FIELDS = v.looseObject({
  ...v.entriesFromList(['level', 'part', 'hub', 'app', 'msg'], optional(v.string())),
  time: optional(v.pipe(v.string(), v.isoTimestamp())),
})
const ERROR = v.object({ stack: v.string() })

function followLog() {
  const lines = signal<readonly LogLine[]>([])
  /** The current log level. `fallback` is the level to which the log will return. */
  const level = signal<Pick<LogLines, 'level' | 'fallback'> | undefined>(undefined)
  const failure = signal<string | undefined>(undefined)
  let next = ''
  const add = ({ lines: added, missed, next: following, level: now, fallback }: LogLines) => {
    next = following
    level.value = { level: now, fallback }
    if (added.length === 0 && missed === 0) return
    const number = (lines.value.at(-1)?.number ?? 0) + 1
    const gap = missed > 0 ? [{ ...lineOf(JSON.stringify({ missed }), number), missed }] : []
    const more = added.map((json, i) => lineOf(json, number + 1 + i))
    lines.value = [...lines.value, ...gap, ...more].slice(-MAX_LINES)
  }
  const reading = poll(INTERVAL_MS, async (hasEnded) => {
    const answer = await api.log(next)
    if (hasEnded()) return
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
    /** A number that increases with each line. It is the key of the line in lists. */
    number,
    /** Number of lines that are missing here. An entry for missing lines has no other content. */
    missed: 0,
    ...{ level, time, part, hub, app },
    message: msg ?? '',
    fields: fields.map(([name, value]) => `${name}=${textOf(value)}`).join(' '),
    stack,
    /** The logged line, as JSON. */
    json,
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))
