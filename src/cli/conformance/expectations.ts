/**
 * What is expected of a hub, one row each: the reference, and what hubs in the field and their official client exchange.
 * A row looks at what was seen and says whether it is so; `unknown` where it was not tried or could not be seen.
 */
import { isRecord } from '../../base/json.ts'
import { type Evidence, type Kind, kindOfHub } from './evidence.ts'
import { errorOf, type Observation, type Outcome, outcomeOf } from './observation.ts'
import { type ProbeName, type Question, whyNot } from './probes.ts'
import { kindOf } from './shapes.ts'
import { failed, isAway, notTried, told, unknown, type Verdict, verdict } from './verdict.ts'
import type { Trial } from './writes.ts'

/** `R` the reference, `S` the official client and its specification, `M` measured on a hub, `I` inference. */
export type Mark = 'R' | 'S' | 'M' | 'I'

export interface Expectation {
  /** Stable: a reader of the JSON report may rely on it. */
  readonly id: string
  readonly mark: Mark
  /** Kinds of hubs of which it is expected; default: all. */
  readonly only?: readonly Kind[]
  /** One sentence. */
  readonly says: string
  readonly judge: (evidence: Evidence) => Verdict
}

/** All of which more is known than the reference says. */
const WIRE: readonly Kind[] = ['older', 'newer', 'self-hosted', 'unknown']

type Name = ProbeName | Question

/** A row that looks at a success; what the key may not, and what a hub that was away did not say, is not known. */
function answer(name: Name, agrees: (value: unknown) => boolean = () => true) {
  return ({ reading }: Evidence): Verdict => {
    const seen = reading.answers.get(name)
    if (seen === undefined) return notTried(whyNot(reading, name))
    if (outcomeOf(seen) !== 'ok') return failed(seen)
    return verdict(agrees(seen.value), `${told(seen)}, ${kindOf(seen.value)}`)
  }
}

/** A row that looks at how something is refused. */
function refusal(name: Name, outcomes: readonly Outcome[], agrees: (seen: Observation) => boolean) {
  return ({ reading }: Evidence): Verdict => {
    const seen = reading.answers.get(name)
    if (seen === undefined) return notTried(whyNot(reading, name))
    return isAway(seen) || !['ok', ...outcomes].includes(outcomeOf(seen))
      ? failed(seen)
      : verdict(agrees(seen), told(seen))
  }
}

/** A row that looks at what a trial has shown. */
const shown =
  (trial: Trial) =>
  ({ writes, reading }: Evidence): Verdict =>
    writes?.trials.get(trial) ?? notTried(whyNot(reading, 'updateApp'))

/** A row about a field of the records. Any may be missing, which some hubs say by `null`. */
function field(name: string, agrees: (value: unknown, kind: Kind) => boolean) {
  return (evidence: Evidence): Verdict => {
    const values = evidence.reading.records.map((record) => record[name]).filter((value) => value !== undefined)
    const { kind } = kindOfHub(evidence)
    if (values.length === 0) return unknown('no record has it')
    if (values.every((value) => value === null) && !agrees(null, kind)) return unknown('null')
    const found = [...new Set(values.map(kindOf))].sort().join(' | ')
    return verdict(
      values.every((value) => value === null || agrees(value, kind)),
      found,
    )
  }
}

const ANY: readonly Outcome[] = ['absent', 'refused', 'rejected', 'failed']
/** Of a key that the hub knows. */
const KNOWN: readonly Outcome[] = ['absent', 'rejected', 'failed']

const taken = (takes: boolean | null): Verdict =>
  takes === null ? unknown('the hub was away') : verdict(takes, takes ? 'it does' : 'it does not')

/** A key that may not list the apps is refused over the realtime channel as well. */
function refusalOfKey({ answers }: Evidence['reading']): Verdict | undefined {
  const seen = answers.get('getApps')
  return seen !== undefined && outcomeOf(seen) === 'refused' ? failed(seen) : undefined
}

export const EXPECTATIONS: readonly Expectation[] = [
  {
    id: 'prefix-managers',
    only: ['reference'],
    mark: 'R',
    says: 'Managers answer below /api/managers/.',
    judge: ({ reading: { pings } }) => verdict(outcomeOf(pings.managers) === 'ok', told(pings.managers)),
  },
  {
    id: 'prefix-manager',
    only: WIRE,
    mark: 'S',
    says: 'Managers answer below /api/manager/.',
    judge: ({ reading: { pings } }) => verdict(outcomeOf(pings.manager) === 'ok', told(pings.manager)),
  },
  {
    id: 'ping-identity',
    only: WIRE,
    mark: 'S',
    says: 'An answer to a ping has X-Homey-ID and X-Homey-Version, or neither.',
    judge({ reading: { pings, prefix } }) {
      const { id, firmware } = pings[prefix]
      const found = `${id === null ? 'no id' : 'an id'}, ${firmware === null ? 'no version' : 'a version'}`
      return id === null && firmware === null ? unknown(found) : verdict(id !== null && firmware !== null, found)
    },
  },
  {
    id: 'ping-other',
    only: WIRE,
    mark: 'S',
    says: 'A ping for the id of another hub is answered false.',
    judge: answer('pingOther', (value) => value === false),
  },
  {
    id: 'no-key',
    mark: 'M',
    says: 'Without a key the answer is 401.',
    judge: refusal('noKey', ANY, ({ status }) => status === 401),
  },
  {
    id: 'unknown-key',
    mark: 'M',
    says: 'A key that the hub does not know is answered 401.',
    judge: refusal('unknownKey', ANY, ({ status }) => status === 401),
  },
  {
    id: 'session-me',
    only: WIRE,
    mark: 'S',
    says: 'A key reports its scopes.',
    judge: answer('getSessionMe'),
  },
  {
    id: 'apps-by-id',
    mark: 'R',
    says: 'getApps answers an object keyed by the id of each app.',
    judge: answer('getApps', isRecord),
  },
  {
    id: 'unknown-app',
    mark: 'I',
    says: 'An unknown app is answered 404.',
    judge: refusal('unknownApp', KNOWN, ({ status }) => status === 404),
  },
  {
    id: 'absent-method',
    mark: 'M',
    says: 'An unknown method is answered 404, or 500 with missing_api_method.',
    judge: refusal('absentMethod', KNOWN, (seen) => outcomeOf(seen) === 'absent'),
  },
  {
    id: 'error-body',
    only: WIRE,
    mark: 'M',
    says: 'A refusal has a JSON body with error.',
    judge({ reading: { answers } }) {
      const seen = (['unknownApp', 'noKey', 'unknownKey'] as const)
        .map((name) => answers.get(name))
        .find((one) => one !== undefined && !isAway(one) && outcomeOf(one) !== 'ok')
      return seen === undefined
        ? unknown('nothing was refused')
        : verdict(errorOf(seen.value) !== null, `${seen.status}, ${seen.content}`)
    },
  },
  {
    id: 'usage',
    only: ['newer', 'self-hosted'],
    mark: 'S',
    says: 'getAppUsage exists.',
    judge: answer('getAppUsage'),
  },
  {
    id: 'locales',
    mark: 'R',
    says: 'getAppLocales answers an object.',
    judge: answer('getAppLocales', isRecord),
  },
  {
    id: 'settings',
    mark: 'R',
    says: 'getAppSettings answers an object.',
    judge: answer('getAppSettings', isRecord),
  },
  {
    id: 'voices',
    only: ['older'],
    mark: 'S',
    says: 'Speech output exists, with a list of voices.',
    judge: answer('getVoices', (value) => typeof value === 'object' && value !== null),
  },
  {
    id: 'field-state',
    mark: 'S',
    says: 'An app has a state as a text.',
    judge: field('state', (value) => typeof value === 'string'),
  },
  {
    id: 'field-update-available',
    mark: 'S',
    says: 'updateAvailable is an object or null (older), true or false (newer) or the version (self-hosted).',
    judge: field(
      'updateAvailable',
      (value, kind) =>
        value === null ||
        isRecord(value) ||
        typeof value === 'boolean' ||
        (kind !== 'older' && typeof value === 'string'),
    ),
  },
  {
    id: 'field-crashed-count',
    only: ['newer', 'self-hosted'],
    mark: 'S',
    says: 'Crashes are counted as crashedCount.',
    judge: field('crashedCount', Number.isInteger),
  },
  {
    id: 'field-exit-count',
    only: ['older', 'reference'],
    mark: 'S',
    says: 'Crashes are counted as exitCount.',
    judge: field('exitCount', Number.isInteger),
  },
  {
    id: 'field-usage',
    mark: 'S',
    says: 'cpu and mem in usage are numbers.',
    judge: field(
      'usage',
      (value) => isRecord(value) && ['cpu', 'mem'].every((key) => typeof (value[key] ?? 0) === 'number'),
    ),
  },
  {
    id: 'rate-limit',
    mark: 'M',
    says: 'If quick requests bring 429, then about four do.',
    judge({ limit, noLimit }) {
      if (limit === null) return notTried(noLimit)
      const { sent, limitedAfter } = limit
      if (limitedAfter === null) return unknown(`none of ${sent}`)
      return verdict(limitedAfter >= 3 && limitedAfter <= 5, `after ${limitedAfter} of ${sent}`)
    },
  },
  {
    id: 'retry-after',
    mark: 'I',
    says: 'A 429 has Retry-After.',
    judge({ limit, noLimit }) {
      if (limit === null) return notTried(noLimit)
      if (limit.limitedAfter === null) return unknown('there was no 429')
      return verdict(limit.retryAfter !== null, limit.retryAfter === null ? 'it does not' : 'it does')
    },
  },
  {
    id: 'protocol-3',
    only: WIRE,
    mark: 'S',
    says: 'The realtime channel takes protocol 3 (Socket.IO 2).',
    judge: ({ protocols }) => taken(protocols[3]),
  },
  {
    id: 'protocol-4',
    only: WIRE,
    mark: 'M',
    says: 'The realtime channel takes protocol 4 (Socket.IO 3 and 4).',
    judge: ({ protocols }) => taken(protocols[4]),
  },
  {
    id: 'handshake',
    only: WIRE,
    mark: 'S',
    says: 'handshakeClient is acknowledged with the namespace /api.',
    judge({ session: { connect, handshake, namespace }, reading }) {
      if (connect !== 'ok') return unknown(`the connection: ${connect}`)
      if (handshake === 'not_tried') return notTried('the hub was not there any more')
      const refusal = refusalOfKey(reading)
      if (handshake === 'refused' && refusal !== undefined) return refusal
      const found = namespace === null ? handshake : namespace === '/api' ? '/api' : 'another one'
      return verdict(handshake === 'ok' && namespace === '/api', found)
    },
  },
  {
    id: 'namespace-token',
    only: ['older', 'reference'],
    mark: 'I',
    says: 'The namespace needs no token.',
    judge({ session, sessionWithToken }) {
      if (session.open === 'not_tried') return notTried(`the handshake: ${session.handshake}`)
      const without = `without: ${session.open}`
      const offered = session.tokenOffered
        ? `with: ${sessionWithToken?.open ?? 'not_tried'}`
        : 'the handshake brings none'
      return verdict(session.open === 'ok', `${without}; ${offered}`)
    },
  },
  {
    id: 'subscribe',
    only: WIRE,
    mark: 'S',
    says: 'homey:manager:apps can be subscribed to.',
    judge({ session, sessionWithToken, reading }) {
      const { subscribe, open } = session.open === 'ok' ? session : (sessionWithToken ?? session)
      if (open !== 'ok') return notTried(`the namespace: ${open}`)
      const refusal = refusalOfKey(reading)
      return subscribe === 'refused' && refusal !== undefined ? refusal : verdict(subscribe === 'ok', subscribe)
    },
  },
  {
    id: 'events',
    only: WIRE,
    mark: 'S',
    says: 'Each change of an app brings app.update.',
    judge: shown('events'),
  },
  { id: 'setting-kept', mark: 'R', says: 'A setting is read as it was set.', judge: shown('setting-kept') },
  { id: 'setting-gone', mark: 'R', says: 'A removed setting is gone.', judge: shown('setting-gone') },
  {
    id: 'unset-again',
    mark: 'I',
    says: 'Removing it again is answered 404.',
    judge: refusal('unsetAgain', KNOWN, ({ status }) => status === 404),
  },
  { id: 'autoupdate', mark: 'R', says: 'updateApp changes automatic updates.', judge: shown('autoupdate') },
  { id: 'channel-ignored', mark: 'S', says: 'updateApp leaves the channel as it is.', judge: shown('channel-ignored') },
  {
    id: 'garbage-collect',
    only: ['older', 'reference'],
    mark: 'R',
    says: 'garbageCollectApp exists.',
    judge: answer('garbageCollectApp'),
  },
  { id: 'restart', mark: 'R', says: 'restartApp exists.', judge: answer('restartApp') },
  { id: 'disable', mark: 'R', says: 'disableApp stops the app.', judge: shown('disable') },
  { id: 'enable', mark: 'R', says: 'enableApp starts it again.', judge: shown('enable') },
  {
    id: 'std-message',
    only: ['older', 'reference'],
    mark: 'R',
    says: 'getAppStd needs no message.',
    judge: shown('std-message'),
  },
  { id: 'speak-wire', only: ['older'], mark: 'S', says: 'speech-output/say speaks.', judge: answer('speak') },
  {
    id: 'speak-reference',
    only: ['reference'],
    mark: 'R',
    says: 'speech-output/ speaks.',
    judge: answer('speakReference'),
  },
  { id: 'downgrade', mark: 'I', says: 'The store never downgrades.', judge: shown('downgrade') },
]

/** Of another kind of hub it tells what was found, and nothing is expected. */
export function judged({ only, judge }: Expectation, evidence: Evidence): Verdict {
  const found = judge(evidence)
  const isExpected = only === undefined || only.includes(kindOfHub(evidence).kind)
  return isExpected || found.result !== 'differs'
    ? found
    : { result: 'unknown', found: `${found.found}; not of this kind` }
}
