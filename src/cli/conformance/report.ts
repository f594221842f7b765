/** The report on a hub. It contains no secrets and no names. */
import { hash } from 'node:crypto'
import { columns } from '../../base/text.ts'
import { VERSION } from '../../base/version.ts'
import { isSuccess } from '../../hub/answer.ts'
import { decodeApps } from '../../hub/decode.ts'
import { asHubError } from '../../hub/errors.ts'
import { type Evidence, EXPECTATIONS, firmwareOf, judged, kindOfHub, scopesOf } from './expectations.ts'
import { errorOf, isUnlicensed, kindOf, type Observation, outcomeOf, summary } from './observation.ts'
import { PROBE_NAMES, PROBES, type ProbeName, pathTo, type Reading, whyNoApp, whyNot } from './probes.ts'
import type { SessionSeen } from './realtime.ts'

/** Version of the JSON report. Added keys do not change the version (docs/internals/conformance.md). */
const FORMAT = 1

type HubReport = ReturnType<typeof reportOf>
/** The JSON report. If no hub was found, `hub` and `realtime` are `null`, and the lists are empty. */
export type Report = Omit<HubReport, 'hub' | 'realtime'> & {
  readonly hub: HubReport['hub'] | null
  readonly realtime: HubReport['realtime'] | null
}

const NO_LICENCE = 'the hub has no valid licence'

export function unreachableReport(pings: Reading['pings']): Report {
  const found = Object.entries(pings).map(([prefix, seen]) => `/api/${prefix}/system/ping: ${summary(seen)}`)
  const noHub = `no hub answers at this address, so the key was not sent (${found.join('; ')})`
  return {
    ...{ format: FORMAT, version: VERSION, usable: false },
    problems: [Object.values(pings).some(isUnlicensed) ? NO_LICENCE : noHub],
    ...{ hub: null, app: null, operations: [], fields: {}, realtime: null },
    ...{ limit: null, left: null, unseen: null, expectations: [] },
  }
}

export function reportOf(wantsWrites: boolean, evidence: Evidence) {
  const { reading, session, sessionWithToken, protocols, limit, writes } = evidence
  const { pings, answers, records, app } = reading
  const unusable = unusableBecause(evidence)
  return {
    format: FORMAT,
    version: VERSION,
    usable: unusable.length === 0,
    problems: [...unusable, ...troubleOf(wantsWrites, evidence)],
    hub: {
      ...kindOfHub(evidence),
      prefixes: (['manager', 'managers'] as const).filter((prefix) => outcomeOf(pings[prefix]) === 'ok'),
      firmware: firmwareOf(reading),
      scopes: scopesOf(reading),
      apps: answers.get('getApps')?.status === 200 ? records.length : null,
    },
    app: app === null ? null : hashed(app, pings[reading.prefix].id),
    operations: PROBE_NAMES.map((name) => operationOf(name, reading)),
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
  if (apps === undefined) return ['the list of apps was not requested']
  if (isUnlicensed(apps)) return [NO_LICENCE]
  const outcome = outcomeOf(apps)
  if (outcome === 'refused') return [`the key may not list the apps: ${summary(apps)}`]
  if (outcome !== 'ok') return [`the apps cannot be listed: ${summary(apps)}`]
  const wrong = whyNoList(apps)
  return wrong === undefined ? [] : [`the list of apps${wrong}`]
}

/** Lists what went wrong in the write tests: nothing was tested, changes were not undone, or the tests were stopped. */
function troubleOf(wantsWrites: boolean, { reading, writes }: Evidence): string[] {
  const app = reading.answers.get('getApp')
  const seen = app === undefined || outcomeOf(app) === 'absent' ? '' : ` (${summary(app)})`
  const noApp = whyNoApp(reading) + seen
  return [
    ...(wantsWrites && writes === null ? [`the app that may be changed ${noApp}: nothing was changed`] : []),
    ...(writes?.left.length ? [`the app was not restored: ${writes.left.join(', ')}`] : []),
    ...(writes?.unseen.length ? [`the app may not be restored: ${writes.unseen.join(', ')}`] : []),
    ...(writes?.stopped ? ['the examination was stopped early'] : []),
  ]
}

function operationOf(name: ProbeName, reading: Reading) {
  const { prefix, answers, app } = reading
  const probe = PROBES[name]
  const path = pathTo(prefix, probe, ':id', ':name').replaceAll('%3A', ':')
  const seen = answers.get(name)
  const outcome = seen === undefined ? 'not_tried' : outcomeOf(seen)
  return {
    ...{ name, method: probe.method, path },
    status: seen?.status ?? null,
    outcome,
    error: errorOf(seen?.value),
    content: seen?.content ?? null,
    ms: seen?.ms ?? null,
    /** How the answer differs from the specification of the operation. */
    differs: outcome === 'ok' ? (probe.shape(seen?.value, app ?? '') ?? null) : null,
    untried: seen === undefined ? whyNot(reading, name) : null,
  }
}

function fieldsOf(records: Reading['records']): Record<string, string> {
  const fields = records.flatMap((record) => Object.entries(record))
  // Hide unusual names of fields, because a user may have chosen them.
  const byName = Map.groupBy(fields, ([name]) => (/^[A-Za-z_]\w{0,40}$/.test(name) ? name : '(other)'))
  const kinds = [...byName].map(([name, all]) => [name, new Set(all.map(([, value]) => kindOf(value)))] as const)
  const sorted = kinds.sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(sorted.map(([name, found]) => [name, [...found].sort().join(' | ')]))
}

/** Returns why hub2mqtt does not accept a list of apps. An acceptable list may have a few invalid entries. */
function whyNoList({ status, value }: Observation): string | undefined {
  if (status === null || !isSuccess('GET', status)) return ` has the unexpected status ${status}`
  try {
    decodeApps(value)
    return undefined
  } catch (error) {
    const wrong = PROBES.getApps.shape(value, '')
    return wrong === undefined ? `: ${asHubError(error).message.slice(0, -1)}` : ` ${wrong}`
  }
}

/** Returns a pseudonym: a hash of the app's id and the hub's id. A hash of the app's id alone could be guessed. */
function hashed(app: string, hubId: string | null): string {
  return `app-${hash('sha256', `${hubId ?? ''}\n${app}`).slice(0, 8)}`
}

/** Omits an unusual namespace from a report: hubs choose the namespace, so it may contain a name. */
function withoutName(session: SessionSeen): SessionSeen {
  const { namespace } = session
  return { ...session, namespace: namespace === null || /^\/[a-z]{1,20}$/.test(namespace) ? namespace : '(other)' }
}

export function reportText(report: Report): string {
  const { usable, problems, hub, operations, expectations, limit, left, unseen, version } = report
  const all = problems.join('; ')
  const trouble = problems.length === 0 ? '' : ` But: ${all}.`
  const verdict = usable
    ? `hub2mqtt can work with this hub and key.${trouble}`
    : `hub2mqtt cannot work with it: ${all}.`
  if (hub === null) return `${verdict}\n`
  const { kind, because, prefixes, firmware, scopes, apps } = hub
  const perhaps = (unseen ?? []).map((item) => `perhaps ${item}`)
  const section = (title: string, fits: (row: Report['expectations'][number]) => boolean) => {
    const rows = expectations.filter(fits)
    return [
      `${title} (${rows.length})`,
      ...columns(rows.map(({ mark, says, found }) => [`  ${mark}`, says, found])),
      '',
    ]
  }
  return [
    verdict,
    '',
    ...columns([
      ['Kind of hub', `${kind}${because.length === 0 ? '' : ` (${because.join(', ')})`}`],
      ['Firmware', firmware ?? 'not reported'],
      ['Paths', prefixes.map((prefix) => `/api/${prefix}/`).join(', ')],
      ['Key', scopes === null ? 'the hub does not report its permissions' : scopes.join(', ') || 'no permissions'],
      ['Apps', apps === null ? 'not listed' : String(apps)],
      ['Limit', limitText(limit) ?? expectations.find(({ id }) => id === 'rate-limit')?.found ?? ''],
      ...(left === null ? [] : [['Left changed', [...left, ...perhaps].join(', ') || 'nothing']]),
    ]),
    '',
    'Operations',
    ...columns(operations.map(operationColumns)),
    '',
    ...section('Not as expected', ({ result, mark }) => result === 'differs' && mark !== 'I'),
    ...section('Not as inferred (not a fault)', ({ result, mark }) => result === 'differs' && mark === 'I'),
    ...section('As expected', ({ result }) => result === 'agrees'),
    ...section('Unknown', ({ result }) => result === 'unknown'),
    'R: the reference; S: the official client; M: measured on hubs; I: inference.',
    `hub2mqtt ${version}. Names, addresses, ids and values are left out.`,
    '',
  ].join('\n')
}

function limitText(limit: Report['limit']): string | undefined {
  if (limit === null) return undefined
  const { sent, limitedAfter, retryAfter } = limit
  if (limitedAfter === null) return `none within ${sent} quick requests`
  return `429 after ${limitedAfter} of ${sent} quick requests${retryAfter === null ? '' : ', with Retry-After'}`
}

function operationColumns({ name, method, path, outcome, ms, ...operation }: ReturnType<typeof operationOf>): string[] {
  const { status, error, differs, untried } = operation
  const joined = (parts: readonly unknown[], by: string) => parts.filter((part) => part !== null).join(by)
  const time = outcome === 'ok' && ms !== null ? `${ms} ms` : null
  const notes = joined([differs, untried, time], ', ')
  return [`  ${name}`, method, path, outcome.replace('_', ' '), joined([status, error], ' '), notes]
}
