/**
 * What is expected of a hub, one row each: the reference, and what hubs in the field and their official client exchange.
 * A row looks at what was seen and says whether it is so; `unknown` where it was not tried or could not be seen.
 */
import { isRecord } from '../base/json.ts'
import { type Evidence, type Kind, kindOfHub } from './evidence.ts'
import type { ProbeName, Question } from './probes.ts'
import { errorOf, type Outcome, outcomeOf, type Seen } from './seen.ts'
import { kindOf } from './shapes.ts'

/** `R` the reference, `S` the official client and its specification, `M` measured on a hub, `I` inference. */
export type Mark = 'R' | 'S' | 'M' | 'I'

export interface Verdict {
  readonly result: 'agrees' | 'differs' | 'unknown'
  /** What was found, without names and values. */
  readonly found: string
}

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

const verdict = (agrees: boolean, found: string): Verdict => ({ result: agrees ? 'agrees' : 'differs', found })
const unknown = (found: string): Verdict => ({ result: 'unknown', found })
const NOT_TRIED = unknown('not tried')

export function told({ status, failure, value }: Seen): string {
  const error = errorOf(value)
  return status === null
    ? `no answer (${failure})`
    : `${status}${error === null || error === 'prose' ? '' : ` ${error}`}`
}

type Name = ProbeName | Question

/** A row that looks at one answer. */
function answer(name: Name, agrees: (seen: Seen, evidence: Evidence) => boolean, found = told) {
  return (evidence: Evidence): Verdict => {
    const seen = evidence.reading.answers.get(name)
    if (seen === undefined || seen.status === null) return seen === undefined ? NOT_TRIED : unknown(told(seen))
    return verdict(agrees(seen, evidence), found(seen))
  }
}

const ends =
  (...outcomes: Outcome[]) =>
  (seen: Seen) =>
    outcomes.includes(outcomeOf(seen))

/** A row that looks at what the writes have shown. */
function shown<T>(pick: (writes: NonNullable<Evidence['writes']>) => T | null, judge: (value: T) => Verdict) {
  return ({ writes }: Evidence): Verdict => {
    const value = writes === null ? null : pick(writes)
    return value === null ? NOT_TRIED : judge(value)
  }
}

/** A row about a field of the records. */
function field(name: string, agrees: (value: unknown) => boolean) {
  return ({ reading }: Evidence): Verdict => {
    const values = reading.records.map((record) => record[name]).filter((value) => value !== undefined)
    if (values.length === 0) return unknown('no record has it')
    return verdict(values.every(agrees), [...new Set(values.map(kindOf))].sort().join(' | '))
  }
}

export const EXPECTATIONS: readonly Expectation[] = [
  {
    id: 'prefix-managers',
    mark: 'R',
    says: 'Managers answer below /api/managers/.',
    judge: ({ reading: { pings } }) => verdict(outcomeOf(pings.managers) === 'ok', told(pings.managers)),
  },
  {
    id: 'prefix-manager',
    mark: 'S',
    says: 'Managers answer below /api/manager/.',
    judge: ({ reading: { pings } }) => verdict(outcomeOf(pings.manager) === 'ok', told(pings.manager)),
  },
  {
    id: 'ping-identity',
    only: ['older', 'newer', 'self-hosted'],
    mark: 'S',
    says: 'An answer to a ping has X-Homey-ID and X-Homey-Version.',
    judge: answer(
      'ping',
      ({ id, firmware }) => id !== null && firmware !== null,
      ({ id, firmware }) => `${id === null ? 'no id' : 'an id'}, ${firmware === null ? 'no version' : 'a version'}`,
    ),
  },
  {
    id: 'ping-other',
    mark: 'S',
    says: 'A ping for the id of another hub is answered false.',
    judge: answer(
      'pingOther',
      ({ value }) => value === false,
      ({ value }) => kindOf(value),
    ),
  },
  {
    id: 'no-key',
    mark: 'M',
    says: 'Without a key the answer is 401.',
    judge: answer('noKey', ({ status }) => status === 401),
  },
  {
    id: 'unknown-key',
    mark: 'M',
    says: 'A key that the hub does not know is answered 401.',
    judge: answer('unknownKey', ({ status }) => status === 401),
  },
  {
    id: 'session-me',
    only: ['older', 'newer', 'self-hosted'],
    mark: 'S',
    says: 'A key can be asked for its scopes.',
    judge: answer('getSessionMe', ends('ok')),
  },
  {
    id: 'apps-by-id',
    mark: 'R',
    says: 'getApps answers an object keyed by the id of each app.',
    judge: answer(
      'getApps',
      ({ value }) => isRecord(value),
      ({ value }) => kindOf(value),
    ),
  },
  {
    id: 'unknown-app',
    mark: 'I',
    says: 'An app that is not there is answered 404.',
    judge: answer('unknownApp', ({ status }) => status === 404),
  },
  {
    id: 'absent-method',
    mark: 'M',
    says: 'A method that is not there is answered 404, or 500 with missing_api_method.',
    judge: answer('absentMethod', ends('absent')),
  },
  {
    id: 'error-body',
    mark: 'M',
    says: 'A refusal has a JSON body with error.',
    judge: answer(
      'unknownApp',
      ({ value }) => errorOf(value) !== null,
      ({ content }) => content,
    ),
  },
  {
    id: 'usage',
    only: ['newer', 'self-hosted'],
    mark: 'S',
    says: 'getAppUsage is there.',
    judge: answer('getAppUsage', ends('ok')),
  },
  {
    id: 'locales',
    mark: 'R',
    says: 'getAppLocales answers an object.',
    judge: answer(
      'getAppLocales',
      ({ value }) => isRecord(value),
      ({ value }) => kindOf(value),
    ),
  },
  {
    id: 'settings',
    mark: 'R',
    says: 'getAppSettings answers an object.',
    judge: answer(
      'getAppSettings',
      ({ value }) => isRecord(value),
      (seen) => `${told(seen)}, ${kindOf(seen.value)}`,
    ),
  },
  {
    id: 'voices',
    only: ['older'],
    mark: 'S',
    says: 'There is speech output, with a list of voices.',
    judge: answer('getVoices', ends('ok')),
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
    says: 'updateAvailable is an object or null (older) or true or false (newer).',
    judge: field('updateAvailable', (value) => value === null || isRecord(value) || typeof value === 'boolean'),
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
    says: 'usage has cpu and mem as numbers.',
    judge: field(
      'usage',
      (value) => isRecord(value) && typeof value['cpu'] === 'number' && typeof value['mem'] === 'number',
    ),
  },
  {
    id: 'rate-limit',
    mark: 'M',
    says: 'About four quick requests bring 429.',
    judge({ limit }) {
      if (limit === null) return NOT_TRIED
      const { sent, limitedAfter } = limit
      const found = limitedAfter === null ? `none of ${sent}` : `after ${limitedAfter} of ${sent}`
      return verdict(limitedAfter !== null && limitedAfter >= 3 && limitedAfter <= 5, found)
    },
  },
  {
    id: 'retry-after',
    mark: 'I',
    says: 'A 429 says by Retry-After when to come again.',
    judge({ limit }) {
      if (limit === null) return NOT_TRIED
      if (limit.limitedAfter === null) return unknown('there was no 429')
      return verdict(limit.retryAfter !== null, limit.retryAfter === null ? 'it does not' : 'it does')
    },
  },
  {
    id: 'protocol-3',
    mark: 'S',
    says: 'The realtime channel takes protocol 3 (Socket.IO 2).',
    judge: ({ protocols }) => verdict(protocols[3], protocols[3] ? 'it does' : 'it does not'),
  },
  {
    id: 'protocol-4',
    mark: 'M',
    says: 'The realtime channel takes protocol 4 (Socket.IO 3 and 4).',
    judge: ({ protocols }) => verdict(protocols[4], protocols[4] ? 'it does' : 'it does not'),
  },
  {
    id: 'handshake',
    mark: 'S',
    says: 'handshakeClient is acknowledged with the namespace /api.',
    judge: ({ session: { handshake, namespace } }) =>
      verdict(
        handshake === 'ok' && namespace === '/api',
        namespace === null ? handshake : namespace === '/api' ? '/api' : 'another one',
      ),
  },
  {
    id: 'namespace-token',
    mark: 'I',
    says: 'The namespace wants no token.',
    judge({ session, sessionWithToken }) {
      if (session.handshake !== 'ok') return unknown(session.handshake)
      const without = `without: ${session.open}`
      const offered = session.tokenOffered
        ? `with: ${sessionWithToken?.open ?? 'not_tried'}`
        : 'the handshake brings none'
      return verdict(session.open === 'ok', `${without}; ${offered}`)
    },
  },
  {
    id: 'subscribe',
    mark: 'S',
    says: 'homey:manager:apps can be subscribed to.',
    judge({ session, sessionWithToken }) {
      const { subscribe, open } = session.open === 'ok' ? session : (sessionWithToken ?? session)
      return open === 'ok' ? verdict(subscribe === 'ok', subscribe) : unknown(`the namespace: ${open}`)
    },
  },
  {
    id: 'events',
    mark: 'S',
    says: 'Each change of an app brings app.update.',
    judge: shown(
      ({ told: with_, untold }) => (with_.length + untold.length === 0 ? null : { with_, untold }),
      ({ with_, untold }) =>
        verdict(untold.length === 0, `after ${with_.join(', ') || 'none'}; not after ${untold.join(', ') || 'none'}`),
    ),
  },
  {
    id: 'setting-kept',
    mark: 'R',
    says: 'A setting comes back as it was set.',
    judge: shown(
      ({ settingKept }) => settingKept,
      (kept) => verdict(kept, kept ? 'it does' : 'it does not'),
    ),
  },
  {
    id: 'setting-gone',
    mark: 'R',
    says: 'A setting that was removed is gone.',
    judge: shown(
      ({ settingGone }) => settingGone,
      (gone) => verdict(gone, gone ? 'it is' : 'it is not'),
    ),
  },
  {
    id: 'unset-again',
    mark: 'I',
    says: 'To remove it again is answered 404.',
    judge: answer('unsetAgain', ({ status }) => status === 404),
  },
  {
    id: 'autoupdate',
    mark: 'R',
    says: 'updateApp changes automatic updates.',
    judge: shown(
      ({ autoupdateChanged }) => autoupdateChanged,
      (done) => verdict(done, done ? 'it does' : 'it does not'),
    ),
  },
  {
    id: 'channel-ignored',
    mark: 'S',
    says: 'updateApp leaves the channel as it is.',
    judge: shown(
      ({ channelTaken }) => channelTaken,
      (taken) => verdict(!taken, taken ? 'it takes any' : 'it does'),
    ),
  },
  {
    id: 'garbage-collect',
    mark: 'R',
    says: 'garbageCollectApp is there.',
    judge: answer('garbageCollectApp', ends('ok')),
  },
  { id: 'restart', mark: 'R', says: 'restartApp is there.', judge: answer('restartApp', ends('ok')) },
  {
    id: 'disable',
    mark: 'R',
    says: 'disableApp stops the app.',
    judge: shown(
      ({ stopped }) => stopped,
      (done) => verdict(done, done ? 'it does' : 'it does not'),
    ),
  },
  {
    id: 'enable',
    mark: 'R',
    says: 'enableApp starts it again.',
    judge: shown(
      ({ startedAgain }) => startedAgain,
      (done) => verdict(done, done ? 'it does' : 'it does not'),
    ),
  },
  {
    id: 'std-message',
    mark: 'R',
    says: 'getAppStd needs no message.',
    judge: shown(
      ({ messageWanted }) => messageWanted,
      (wanted) => verdict(!wanted, wanted ? 'it does' : 'it needs none'),
    ),
  },
  { id: 'speak-wire', mark: 'S', says: 'speech-output/say speaks.', judge: answer('speak', ends('ok')) },
  { id: 'speak-reference', mark: 'R', says: 'speech-output/ speaks.', judge: answer('speakReference', ends('ok')) },
  {
    id: 'downgrade',
    mark: 'I',
    says: 'The store never downgrades.',
    judge: shown(
      ({ downgrade }) => (downgrade === 'not_tried' ? null : downgrade),
      (came) => verdict(came !== 'downgraded', came),
    ),
  },
]

/** Of another kind of hub it tells what was found, and nothing is expected. */
export function judged({ only, judge }: Expectation, evidence: Evidence): Verdict {
  const found = judge(evidence)
  const isExpected = only === undefined || only.includes(kindOfHub(evidence).kind)
  return isExpected || found.result !== 'differs'
    ? found
    : { result: 'unknown', found: `${found.found}; not of this kind` }
}
