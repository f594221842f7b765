/** The options of the guardian. */
import * as v from 'valibot'
import { isCron, isTimeZone } from '../base/cron.ts'
import { MAX_HISTORY } from '../contract/guard.ts'
import { boolean, choice, duration, integer, list, map, size, text } from './schemas.ts'
import { defineOptions } from './table.ts'

export const appPattern = text({
  name: 'pattern',
  expected: 'an app id such as com.athom.hue, in which * stands for any characters and ? for one',
  pattern: /^[^\p{Cc}\p{Cs}]{1,256}$/u,
})

const MAX_CRON = 200
const CRON = `a cron expression of five parts such as 0 4 * * 1, of at most ${MAX_CRON} characters`
const cron = v.pipe(
  text({ name: 'cron', quotable: true, expected: CRON, pattern: /^[0-9A-Za-z*,/#?+-]+(?: +[0-9A-Za-z*,/#?+-]+){4}$/u }),
  v.maxLength(MAX_CRON, `expected ${CRON}`),
  v.check(isCron, `expected ${CRON}`),
)

const ZONE = 'a time zone such as Europe/Berlin'
const timeZone = v.pipe(
  text({ name: 'time zone', quotable: true, expected: ZONE, pattern: /^[A-Za-z0-9_+/-]{1,64}$/u }),
  v.check(isTimeZone, `expected ${ZONE}`),
)

const quietHours = text({
  name: 'hours',
  quotable: true,
  expected: 'two times of day in quotes such as "23:00-07:00"',
  pattern: /^(?:[01]\d|2[0-3]):[0-5]\d-(?:[01]\d|2[0-3]):[0-5]\d$/u,
})

/** Values by pattern of app ids: the first pattern that fits counts. */
const byPattern = <S extends v.GenericSchema>(value: S, such: string) => map(value, `values by app such as ${such}`)

const webProbe = text({
  name: 'probe',
  expected: 'a path such as /status, with the expected status behind it where that is none from 200 to 299',
  pattern: /^\/[!-~]{0,200}(?: [1-5]\d\d)?$/,
})

/** Of the guardian: what it watches, and when it updates. */
export const guardOptions = defineOptions({
  'guard.watch': {
    doc: 'Apps that the guardian keeps alive, by id; `*` stands for any characters, `?` for one. While there are none, the guardian is off.',
    schema: list(appPattern),
    default: [],
    example: ['*'],
    live: true,
  },
  'guard.ignore': {
    doc: 'Apps that it leaves alone all the same; wins over `guard.watch`.',
    schema: list(appPattern),
    default: [],
    example: ['com.example.experiment'],
    live: true,
  },
  'guard.backoff': {
    doc: 'How long it waits before the first restart of an app; each further one takes twice as long.',
    schema: duration('1s', '1h'),
    default: '10s',
    live: true,
  },
  'guard.backoff_max': {
    doc: 'The longest that it waits.',
    schema: duration('1s', '24h'),
    default: '10m',
    live: true,
  },
  'guard.max_restarts': {
    doc: 'How many restarts of an app there may be within `guard.window`; then it gives up, until the app has run for an hour, has a new version, or a command says otherwise.',
    schema: integer(1, 100),
    default: 5,
    live: true,
  },
  'guard.window': {
    doc: 'See `guard.max_restarts`.',
    schema: duration('1s', '24h'),
    default: '30m',
    live: true,
  },
  'guard.quiet_hours': {
    doc: 'When it only watches, from one time of day to another.',
    schema: quietHours,
    default: null,
    example: '23:00-07:00',
    live: true,
  },
  'guard.time_zone': {
    doc: "Of `guard.quiet_hours` and `guard.schedule`; without one, the machine's.",
    schema: timeZone,
    default: null,
    example: 'Europe/Berlin',
    live: true,
  },
  'guard.memory_limit': {
    doc: 'Memory above which an app is restarted, by app.',
    schema: byPattern(size('1MiB', '65536MiB'), '{com.athom.hue: 120MiB}'),
    default: new Map(),
    example: { 'com.athom.hue': '120MiB' },
    live: true,
  },
  'guard.cpu_limit': {
    doc: 'Per cent of one core above which an app is restarted, by app.',
    schema: byPattern(integer(1, 1600), '{com.athom.hue: 80}'),
    default: new Map(),
    example: { 'com.athom.hue': 80 },
    live: true,
  },
  'guard.change_limit': {
    doc: 'How long nothing of a running app may change, its usage included, before it is restarted, by app.',
    schema: byPattern(duration('1m', '720h'), '{com.athom.hue: 2h}'),
    default: new Map(),
    example: { 'com.athom.hue': '2h' },
    live: true,
  },
  'guard.probe': {
    doc: "A path of the app's own web API that is asked with GET at each read of the list, by app, and the expected status where it is none from 200 to 299.",
    schema: byPattern(webProbe, '{com.athom.hue: /status}'),
    default: new Map(),
    example: { 'com.athom.hue': '/status', 'com.example.bridge': '/login 401' },
    live: true,
  },
  'guard.for_reads': {
    doc: 'How many reads of the list in a row must agree before an app counts as above a limit, as silent, or as failing its probe.',
    schema: integer(1, 1000),
    default: 3,
    live: true,
  },
  'guard.silent': {
    doc: 'Apps that are restarted where the hub does not say any more what they use, but does of other apps. Of all others that is an entry in `attention`.',
    schema: list(appPattern),
    default: [],
    example: ['com.athom.hue'],
    live: true,
  },
  'guard.schedule': {
    doc: 'Restarts at given times, as cron expressions by app; of one hub, one app after the other.',
    schema: byPattern(cron, '{com.athom.hue: "0 4 * * 1"}'),
    default: new Map(),
    example: { 'com.athom.hue': '0 4 * * 1' },
    live: true,
  },
  'guard.history': {
    doc: 'How much of what has happened to an app is kept on the broker.',
    schema: integer(1, MAX_HISTORY),
    default: 20,
    live: true,
  },
  'updates.policy': {
    doc: 'Whether apps are updated by the guardian: by hand only, or one after the other in a `window`.',
    schema: choice(['manual', 'window']),
    default: 'manual',
    live: true,
  },
  'updates.window.start': {
    doc: 'When the window opens, as a cron expression.',
    schema: cron,
    default: null,
    example: '0 4 * * *',
    live: true,
  },
  'updates.window.length': {
    doc: 'How long it stays open; an update that has begun is seen through.',
    schema: duration('1m', '24h'),
    default: '2h',
    live: true,
  },
  'updates.time_zone': {
    doc: "Of the window; without one, the machine's.",
    schema: timeZone,
    default: null,
    example: 'Europe/Berlin',
    live: true,
  },
  'updates.hold_days': {
    doc: 'For how many days the bridge must have seen a version on offer before the window installs that version. Hubs that do not name versions are left out.',
    schema: integer(0, 365),
    default: 0,
    live: true,
  },
  'updates.backup': {
    doc: 'Whether the hub must have made a backup before an update; without one, the update is not made.',
    schema: boolean,
    default: false,
    live: true,
  },
  'updates.off_when_bad': {
    doc: 'Whether automatic updates of an app are turned off when it crashes three times within 30 minutes of an update.',
    schema: boolean,
    default: false,
    live: true,
  },
})
