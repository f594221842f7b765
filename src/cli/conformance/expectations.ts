/**
 * The expected behaviour of hubs, according to the API reference and to the traffic between hubs and their official
 * client. Each row judges the evidence. Its verdict is `unknown` if the evidence for it is missing.
 */
import { isRecord } from '../../base/json.ts'
import type { testRateLimit } from './conformance.ts'
import {
  errorOf,
  isAway,
  isOk,
  isUnlicensed,
  kindOf,
  type Observation,
  type Outcome,
  outcomeOf,
  summary,
} from './observation.ts'
import { type Extra, type ProbeName, type Reading, whyNot } from './probes.ts'
import type { SessionSeen } from './realtime.ts'
import type { Trial, WritesSeen } from './writes.ts'

export interface Evidence {
  /** The hub's port; 0 means the default port of the scheme. */
  readonly port: number
  readonly reading: Reading
  readonly session: SessionSeen
  /** A session that was opened with the handshake's token; `null` if the handshake returned no token. */
  readonly sessionWithToken: SessionSeen | null
  /** Which versions of Engine.IO, the protocol below Socket.IO, the hub accepts; `null`: it was offline. */
  readonly protocols: { readonly 3: boolean | null; readonly 4: boolean | null }
  readonly limit: Awaited<ReturnType<typeof testRateLimit>>
  /** If `limit` is `null`, the reason why the limit is unknown. */
  readonly noLimit: string
  readonly writes: WritesSeen | null
}

type Kind = 'reference' | 'older' | 'newer' | 'self-hosted' | 'unknown'

/** Ports of a Self-Hosted Server, for HTTP and HTTPS. */
const SELF_HOSTED_PORTS: ReadonlySet<number> = new Set([4859, 4860])

export function firmwareOf({ pings, prefix }: Reading): string | null {
  const { firmware } = pings[prefix]
  return firmware !== null && /^[\w.+-]{1,40}$/.test(firmware) ? firmware : null
}

/** Derives the kind from the firmware or, if the firmware is unknown, from other differences between the kinds. */
export function kindOfHub({ reading, port }: Evidence): { readonly kind: Kind; readonly because: readonly string[] } {
  const { prefix, answers, records } = reading
  if (prefix === 'managers') return { kind: 'reference', because: ['it answers only below /api/managers/'] }
  const firmware = firmwareOf(reading)
  const major = Number.parseInt(firmware ?? '', 10)
  const [voices, absent] = [answers.get('getVoices'), answers.get('absentMethod')]
  const has = (field: string) => records.some((record) => (record[field] ?? undefined) !== undefined)
  // Older hubs answer a request for a missing method with 500.
  const failsLikeOlder = [voices, absent].some((seen) => seen?.status === 500 && outcomeOf(seen) === 'absent')
  const signs: readonly (readonly [kind: Kind, text: string, isSeen: boolean])[] = [
    ['newer', 'no speech output', voices?.status === 404],
    ['newer', 'crashedCount in its records', has('crashedCount')],
    ['older', '500 missing_api_method', failsLikeOlder],
    ['older', 'speech output', isOk(voices)],
    ['older', 'exitCount in its records', has('exitCount')],
    ['self-hosted', `port ${port}`, SELF_HOSTED_PORTS.has(port)],
    ['self-hosted', 'updateAvailable as a text', records.some((one) => typeof one['updateAvailable'] === 'string')],
  ]
  const signsOf = (kind: Kind) => signs.flatMap(([of, text, isSeen]) => (of === kind && isSeen ? [text] : []))
  const [older, newer, selfHosted] = [signsOf('older'), signsOf('newer'), signsOf('self-hosted')]
  const hasVersion = Number.isInteger(major)
  const lead = hasVersion ? (major < 10 ? 1 : -1) : Math.sign(older.length - newer.length)
  if (lead === 0) return { kind: 'unknown', because: [] }
  const firmwareSign = hasVersion ? [`firmware ${firmware}`] : []
  if (lead > 0) return { kind: 'older', because: [...firmwareSign, ...older] }
  const kind = selfHosted.length === 0 ? 'newer' : 'self-hosted'
  return { kind, because: [...firmwareSign, ...newer, ...selfHosted] }
}

/** Returns the scopes of the key; `null` if the hub does not list them. */
export function scopesOf({ answers }: Reading): readonly string[] | null {
  const seen = answers.get('getSessionMe')
  const value: unknown = seen?.value
  const list = seen?.status === 200 && isRecord(value) ? (value['intersectedScopes'] ?? value['scopes']) : undefined
  if (!Array.isArray(list)) return null
  return list.filter((scope) => typeof scope === 'string' && /^[\w.:-]{1,80}$/.test(scope))
}

export interface Verdict {
  readonly result: 'agrees' | 'differs' | 'unknown'
  /** What was found, in words. It must not contain names or values from the hub. */
  readonly found: string
}

export const verdict = (agrees: boolean, found: string): Verdict => ({ result: agrees ? 'agrees' : 'differs', found })
export const unknown = (found: string): Verdict => ({ result: 'unknown', found })
export const notTried = (because: string): Verdict => unknown(`not tried: ${because}`)

/** Returns the verdict on a failed request: `unknown` if the hub was offline or refused the key. */
export function failed(seen: Observation): Verdict {
  if (isAway(seen)) return unknown(summary(seen))
  if (isUnlicensed(seen)) return unknown(`no licence: ${summary(seen)}`)
  return outcomeOf(seen) === 'refused' ? unknown(`no permission: ${summary(seen)}`) : verdict(false, summary(seen))
}

type Judge = (evidence: Evidence) => Verdict

/** Source: `R` is the reference, `S` the official client and its specification, `M` a measurement, `I` an inference. */
type Mark = 'R' | 'S' | 'M' | 'I'

type Name = ProbeName | Extra

function ofAnswer(name: Name, judge: (seen: Observation) => Verdict): Judge {
  return ({ reading }) => {
    const seen = reading.answers.get(name)
    return seen === undefined ? notTried(whyNot(reading, name)) : judge(seen)
  }
}

const answer = (name: Name, agrees: (value: unknown) => boolean = () => true) =>
  ofAnswer(name, (seen) =>
    isOk(seen) ? verdict(agrees(seen.value), `${summary(seen)}, ${kindOf(seen.value)}`) : failed(seen),
  )

const refusal = (name: Name, outcomes: readonly Outcome[], agrees: (seen: Observation) => boolean) =>
  ofAnswer(name, (seen) => {
    const isJudged = !isAway(seen) && !isUnlicensed(seen) && ['ok', ...outcomes].includes(outcomeOf(seen))
    return isJudged ? verdict(agrees(seen), summary(seen)) : failed(seen)
  })

const shown =
  (trial: Trial): Judge =>
  ({ writes, reading }) =>
    writes?.trials.get(trial) ?? notTried(whyNot(reading, 'updateApp'))

/** Judges an optional field of the records. Some hubs send `null` instead of omitting the field. */
function field(name: string, agrees: (value: unknown, kind: Kind) => boolean = () => true): Judge {
  return (evidence) => {
    const values = evidence.reading.records.map((record) => record[name]).filter((value) => value !== undefined)
    const { kind } = kindOfHub(evidence)
    if (values.length === 0) return unknown('no record has this field')
    if (values.every((value) => value === null) && !agrees(null, kind)) return unknown('null')
    const found = [...new Set(values.map(kindOf))].sort().join(' | ')
    const isExpected = values.every((value) => value === null || agrees(value, kind))
    return verdict(isExpected, found)
  }
}

/** The outcomes of a refused request, whether or not the key is the reason. */
const ANY: readonly Outcome[] = ['absent', 'refused', 'rejected', 'failed']
/** The outcomes of a request that the hub refuses although the key is valid. */
const KNOWN: readonly Outcome[] = ['absent', 'rejected', 'failed']

const is401 = ({ status }: Observation) => status === 401
const is404 = ({ status }: Observation) => status === 404

const ping =
  (prefix: 'manager' | 'managers'): Judge =>
  ({ reading: { pings } }) =>
    verdict(outcomeOf(pings[prefix]) === 'ok', summary(pings[prefix]))

const pingIdentity: Judge = ({ reading: { pings, prefix } }) => {
  const { id, firmware } = pings[prefix]
  const found = `${id === null ? 'no id' : 'an id'}, ${firmware === null ? 'no version' : 'a version'}`
  return id === null && firmware === null ? unknown(found) : verdict(id !== null && firmware !== null, found)
}

const errorBody: Judge = ({ reading: { answers } }) => {
  const seen = (['unknownApp', 'noKey', 'unknownKey'] as const)
    .map((name) => answers.get(name))
    .find((one) => one !== undefined && !isAway(one) && outcomeOf(one) !== 'ok')
  return seen === undefined
    ? unknown('nothing was refused')
    : verdict(errorOf(seen.value) !== null, `${seen.status}, ${seen.content}`)
}

const isFalse = (value: unknown): boolean => value === false
const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null

const isUpdate = (value: unknown, kind: Kind): boolean =>
  value === null ||
  (isRecord(value) ? !NEW.includes(kind) : kind !== 'older' && ['boolean', 'string'].includes(typeof value))

const isKeyedById = (value: unknown): boolean =>
  isRecord(value) && Object.entries(value).every(([id, record]) => !isRecord(record) || record['id'] === id)

const isUsage = (value: unknown): boolean =>
  isRecord(value) && ['cpu', 'mem'].every((key) => typeof (value[key] ?? 0) === 'number')

const rateLimit: Judge = ({ limit, noLimit }) => {
  if (limit === null) return notTried(noLimit)
  const { sent, limitedAfter } = limit
  if (limitedAfter === null) return unknown(`none of ${sent}`)
  return verdict(limitedAfter >= 3 && limitedAfter <= 5, `after ${limitedAfter} of ${sent}`)
}

const retryAfter: Judge = ({ limit, noLimit }) => {
  if (limit === null) return notTried(noLimit)
  if (limit.limitedAfter === null) return unknown('the hub sent no 429')
  return verdict(limit.retryAfter !== null, limit.retryAfter === null ? 'it does not' : 'it does')
}

const protocol =
  (version: 3 | 4): Judge =>
  ({ protocols: { [version]: accepts } }) =>
    accepts === null ? unknown('the hub was offline') : verdict(accepts, accepts ? 'it does' : 'it does not')

/** Returns a verdict if the key may not list apps, because the realtime channel then refuses the key as well. */
function refusalOfKey({ reading: { answers } }: Evidence): Verdict | undefined {
  const seen = answers.get('getApps')
  return seen !== undefined && outcomeOf(seen) === 'refused' ? failed(seen) : undefined
}

const handshake: Judge = (evidence) => {
  const { connect, handshake, namespace } = evidence.session
  if (connect !== 'ok') return unknown(`the connection: ${connect}`)
  if (handshake === 'not_tried') return notTried('the hub had gone offline')
  const found = namespace === null ? handshake : namespace === '/api' ? '/api' : 'another namespace'
  const refused = handshake === 'refused' ? refusalOfKey(evidence) : undefined
  return refused ?? verdict(handshake === 'ok' && namespace === '/api', found)
}

const namespaceToken: Judge = ({ session, sessionWithToken }) => {
  if (session.open === 'not_tried') return notTried(`the handshake: ${session.handshake}`)
  const offered = session.tokenOffered ? `with: ${sessionWithToken?.open ?? 'not_tried'}` : 'the handshake has none'
  return verdict(session.open === 'ok', `without: ${session.open}; ${offered}`)
}

const subscription: Judge = (evidence) => {
  const { session, sessionWithToken } = evidence
  const { subscribe, open } = session.open === 'ok' ? session : (sessionWithToken ?? session)
  if (open === 'not_tried') return notTried('the namespace was not opened')
  const refused = open === 'refused' || subscribe === 'refused' ? refusalOfKey(evidence) : undefined
  return refused ?? verdict(subscribe === 'ok', open === 'ok' ? subscribe : `the namespace: ${open}`)
}

/** An expectation with a stable `id`, which readers of the JSON report use. `only`: the kinds of hubs to judge. */
type Row = readonly [id: string, mark: Mark, says: string, judge: Judge, only?: readonly Kind[]]

const WIRE: readonly Kind[] = ['older', 'newer', 'self-hosted', 'unknown']
const OLD: readonly Kind[] = ['older', 'reference']
const NEW: readonly Kind[] = ['newer', 'self-hosted']

const UPDATE_AVAILABLE =
  'updateAvailable is an object or null (older), true or false (newer) or the version (self-hosted).'
const ABSENT_METHOD = 'A request for an unknown method returns 404, or 500 with missing_api_method.'
const PING_IDENTITY = 'An answer to a ping has X-Homey-ID and X-Homey-Version, or neither.'

const ROWS: readonly Row[] = [
  ['prefix-managers', 'R', 'Managers answer below /api/managers/.', ping('managers'), ['reference']],
  ['prefix-manager', 'S', 'Managers answer below /api/manager/.', ping('manager'), WIRE],
  ['ping-identity', 'S', PING_IDENTITY, pingIdentity, WIRE],
  ['ping-other', 'S', 'A ping for the id of another hub returns false.', answer('pingOther', isFalse), WIRE],
  ['no-key', 'M', 'A request without a key returns 401.', refusal('noKey', ANY, is401)],
  ['unknown-key', 'M', 'A request with an unknown key returns 401.', refusal('unknownKey', ANY, is401)],
  ['session-me', 'S', 'The hub reports the scopes of the key.', answer('getSessionMe'), WIRE],
  ['apps-by-id', 'R', 'getApps returns an object keyed by the id of each app.', answer('getApps', isKeyedById)],
  ['unknown-app', 'I', 'A request for an unknown app returns 404.', refusal('unknownApp', KNOWN, is404)],
  ['absent-method', 'M', ABSENT_METHOD, refusal('absentMethod', KNOWN, (seen) => outcomeOf(seen) === 'absent')],
  ['error-body', 'M', 'A refusal has a JSON body with the key error.', errorBody, WIRE],
  ['usage', 'S', 'getAppUsage exists.', answer('getAppUsage'), NEW],
  ['locales', 'R', 'getAppLocales returns an object.', answer('getAppLocales', isRecord)],
  ['settings', 'R', 'getAppSettings returns an object.', answer('getAppSettings', isRecord)],
  ['voices', 'S', 'Speech output exists and lists its voices.', answer('getVoices', isObject), ['older']],
  ['field-state', 'S', 'The state of an app is a text.', field('state', (value) => typeof value === 'string')],
  ['field-update-available', 'S', UPDATE_AVAILABLE, field('updateAvailable', isUpdate)],
  ['field-crashed-count', 'S', 'crashedCount is the number of crashes.', field('crashedCount', Number.isInteger), NEW],
  ['field-exit-count', 'S', 'exitCount is the number of crashes.', field('exitCount', Number.isInteger), OLD],
  ['field-usage', 'S', 'cpu and mem in usage are numbers.', field('usage', isUsage)],
  ['rate-limit', 'M', 'If the hub limits the request rate, it answers 429 after about four requests.', rateLimit],
  ['retry-after', 'I', 'A 429 has the header Retry-After.', retryAfter],
  ['protocol-3', 'S', 'The realtime channel accepts protocol 3 (Socket.IO 2).', protocol(3), WIRE],
  ['protocol-4', 'M', 'The realtime channel accepts protocol 4 (Socket.IO 3 and 4).', protocol(4), WIRE],
  ['handshake', 'S', 'handshakeClient is acknowledged with the namespace /api.', handshake, WIRE],
  ['namespace-token', 'I', 'The namespace needs no token.', namespaceToken, OLD],
  ['subscribe', 'S', 'Clients can subscribe to the events of homey:manager:apps.', subscription, WIRE],
  ['events', 'S', 'The hub sends app.update for each change of an app.', shown('events'), WIRE],
  ['setting-kept', 'R', 'The hub returns a setting as it was set.', shown('setting-kept')],
  ['setting-gone', 'R', 'A removed setting no longer exists.', shown('setting-gone')],
  ['unset-again', 'I', 'Removing a setting again returns 404.', refusal('unsetAgain', KNOWN, is404)],
  ['autoupdate', 'R', 'updateApp changes automatic updates.', shown('autoupdate')],
  ['channel-ignored', 'S', 'updateApp does not change the channel.', shown('channel-ignored')],
  ['garbage-collect', 'R', 'garbageCollectApp exists.', answer('garbageCollectApp'), OLD],
  ['restart', 'R', 'restartApp exists.', answer('restartApp')],
  ['disable', 'R', 'disableApp stops the app.', shown('disable')],
  ['enable', 'R', 'enableApp starts the app again.', shown('enable')],
  ['std-message', 'R', 'getAppStd works without a message.', shown('std-message'), OLD],
  ['speak-wire', 'S', 'A request to speech-output/say speaks the text.', answer('speak'), ['older']],
  ['speak-reference', 'R', 'A request to speech-output/ speaks the text.', answer('speakReference'), ['reference']],
  ['downgrade', 'I', 'The store never installs an older version.', shown('downgrade')],
]

export const EXPECTATIONS = ROWS.map(([id, mark, says, judge, only]) => ({ id, mark, says, judge, only }))

/** Returns the verdict of a row. If the row does not apply to the hub's kind, a difference does not count. */
export function judged({ only, judge }: (typeof EXPECTATIONS)[number], evidence: Evidence): Verdict {
  const found = judge(evidence)
  const isExpected = only === undefined || only.includes(kindOfHub(evidence).kind)
  return isExpected || found.result !== 'differs' ? found : unknown(`${found.found}; does not apply to this kind`)
}
