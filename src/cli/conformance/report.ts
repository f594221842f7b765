/** What is told of an examination: the same facts for programs and for people, without secrets and names. */
import { createHash } from 'node:crypto'
import { decodeApps } from '../../hub/decode.ts'
import type { ApiPrefix } from '../../hub/proven-hub.ts'
import { type Evidence, firmwareOf, type Kind, kindOfHub, type LimitSeen, scopesOf } from './evidence.ts'
import { EXPECTATIONS, judged, type Mark } from './expectations.ts'
import { errorOf, type Observation, type Outcome, outcomeOf } from './observation.ts'
import { PROBES, type Probe, type ProbeName, pathTo, whyNoApp, whyNot } from './probes.ts'
import type { SessionSeen } from './realtime.ts'
import { fieldsOf } from './shapes.ts'
import { told, type Verdict } from './verdict.ts'

/** Of the JSON report: keys are added to it; those that are there keep their meaning. */
export const FORMAT = 1

export interface OperationReport {
  readonly name: string
  readonly method: string
  /** With `:id` and `:name` in it. */
  readonly path: string
  readonly status: number | null
  readonly outcome: Outcome | 'not_tried'
  /** The hub's code of an error; `prose` for a sentence. */
  readonly error: string | null
  readonly content: Observation['content'] | null
  readonly ms: number | null
  /** How the answer differs from what the operation promises. */
  readonly differs: string | null
  /** Why it was not tried. */
  readonly untried: string | null
}

export interface ExpectationReport extends Verdict {
  readonly id: string
  readonly mark: Mark
  readonly says: string
}

export interface Report {
  readonly format: typeof FORMAT
  /** Of hub2mqtt. */
  readonly version: string
  /** Whether hub2mqtt can work with this hub and key. */
  readonly usable: boolean
  /** Why not; and what else went wrong. */
  readonly problems: readonly string[]
  readonly hub: {
    readonly kind: Kind
    readonly because: readonly string[]
    readonly prefixes: readonly ApiPrefix[]
    readonly firmware: string | null
    readonly scopes: readonly string[] | null
    readonly apps: number | null
  } | null
  /** The app that was asked about, by a hash that is the same for the same hub. */
  readonly app: string | null
  readonly operations: readonly OperationReport[]
  /** Fields of the apps' records → kinds of their values. */
  readonly fields: Readonly<Record<string, string>>
  readonly realtime: {
    readonly protocols: readonly number[]
    readonly session: SessionSeen
    readonly session_with_token: SessionSeen | null
  } | null
  readonly limit: LimitSeen | null
  /** What writes have left changed; `null`: none were made. */
  readonly left: readonly string[] | null
  /** What could not be looked at in the end, so that it may be changed; `null` as well. */
  readonly unseen: readonly string[] | null
  readonly expectations: readonly ExpectationReport[]
}

const PROBE_NAMES = Object.keys(PROBES).filter((name): name is ProbeName => Object.hasOwn(PROBES, name))

interface About {
  readonly version: string
  readonly writes: boolean
}

/** Of an address at which no hub has been found. */
export function unreachableReport(
  { version }: Pick<About, 'version'>,
  pings: Readonly<Record<ApiPrefix, Observation>>,
): Report {
  const found = Object.entries(pings).map(([prefix, seen]) => `/api/${prefix}/system/ping: ${told(seen)}`)
  return {
    format: FORMAT,
    version,
    usable: false,
    problems: [`no hub answers there, so the key was not shown (${found.join('; ')})`],
    hub: null,
    app: null,
    operations: [],
    fields: {},
    realtime: null,
    limit: null,
    left: null,
    unseen: null,
    expectations: [],
  }
}

export function reportOf(about: About, evidence: Evidence): Report {
  const { reading, session, sessionWithToken, protocols, limit, writes } = evidence
  const { pings, answers, records, app } = reading
  const unusable = unusableBecause(evidence)
  return {
    format: FORMAT,
    version: about.version,
    usable: unusable.length === 0,
    problems: [...unusable, ...troubleOf(about, evidence)],
    hub: {
      ...kindOfHub(evidence),
      prefixes: (['manager', 'managers'] as const).filter((prefix) => outcomeOf(pings[prefix]) === 'ok'),
      firmware: firmwareOf(reading),
      scopes: scopesOf(reading),
      apps: answers.get('getApps')?.status === 200 ? records.length : null,
    },
    app: app === null ? null : hashed(app, pings[reading.prefix].id),
    operations: PROBE_NAMES.map((name) => operationOf(name, PROBES[name], evidence)),
    fields: fieldsOf(records),
    realtime: {
      protocols: ([3, 4] as const).filter((version) => protocols[version]),
      session: withoutName(session),
      session_with_token: sessionWithToken === null ? null : withoutName(sessionWithToken),
    },
    limit,
    left: writes?.left ?? null,
    unseen: writes?.unseen ?? null,
    expectations: EXPECTATIONS.map((row) => ({ id: row.id, mark: row.mark, says: row.says, ...judged(row, evidence) })),
  }
}

function unusableBecause({ reading }: Evidence): string[] {
  const apps = reading.answers.get('getApps')
  if (apps === undefined) return ['the list of apps was not asked for']
  const outcome = outcomeOf(apps)
  const wrong = outcome === 'ok' && !isList(apps.value) ? PROBES.getApps.shape(apps.value, '') : undefined
  return [
    ...(outcome === 'refused' ? [`the key may not list the apps: ${told(apps)}`] : []),
    ...(outcome !== 'ok' && outcome !== 'refused' ? [`the apps cannot be listed: ${told(apps)}`] : []),
    ...(wrong === undefined ? [] : [`the list of apps ${wrong}`]),
  ]
}

/** What went otherwise than was asked for. */
function troubleOf({ writes: wanted }: About, { reading, writes }: Evidence): string[] {
  const app = reading.answers.get('getApp')
  const seen = app === undefined || outcomeOf(app) === 'absent' ? '' : ` (${told(app)})`
  const noApp = whyNoApp(reading) + seen
  return [
    ...(wanted && writes === null ? [`the app that may be changed ${noApp}: nothing was changed`] : []),
    ...(writes?.left.length ? [`the app was not put back: ${writes.left.join(', ')}`] : []),
    ...(writes?.unseen.length ? [`the app may not be put back: ${writes.unseen.join(', ')}`] : []),
    ...(writes?.stopped ? ['it was stopped before the end'] : []),
  ]
}

function operationOf(name: ProbeName, probe: Probe, { reading }: Evidence): OperationReport {
  const { prefix, answers, app } = reading
  const head = { name, method: probe.method, path: pathTo(prefix, probe, ':id', ':name').replaceAll('%3A', ':') }
  const seen = answers.get(name)
  if (seen === undefined) {
    const untried = whyNot(reading, name)
    return { ...head, status: null, outcome: 'not_tried', error: null, content: null, ms: null, differs: null, untried }
  }
  const { status, content, ms, value } = seen
  const outcome = outcomeOf(seen)
  const differs = outcome === 'ok' ? (probe.shape(value, app ?? '') ?? null) : null
  return { ...head, status, outcome, error: errorOf(value), content, ms, differs, untried: null }
}

/** Whether hub2mqtt takes that for a list of apps: it bears a few entries that are none. */
function isList(value: unknown): boolean {
  try {
    decodeApps(value)
    return true
  } catch {
    return false
  }
}

/** Nobody who does not know the hub can look for the app behind it. */
function hashed(app: string, hubId: string | null): string {
  return `app-${createHash('sha256')
    .update(`${hubId ?? ''}\n${app}`)
    .digest('hex')
    .slice(0, 8)}`
}

/** The namespace is the hub's own word. */
function withoutName(session: SessionSeen): SessionSeen {
  const { namespace } = session
  return { ...session, namespace: namespace === null || /^\/[a-z]{1,20}$/.test(namespace) ? namespace : '(other)' }
}
