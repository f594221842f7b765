import * as v from 'valibot'
import { isCron, isTimeZone } from '../base/cron.ts'
import { MAX_HISTORY } from '../contract/guard.ts'
import { choice, duration, fixedKeys, flag, integer, list, listOf, map, show, size, text } from './schemas.ts'
import { liveOptions, option } from './table.ts'

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

/** Defines values by app pattern; the first match applies. The example in messages is JSON, for use in variables. */
const byApp = <S extends v.GenericSchema>(value: S, sample: unknown) => {
  const example = { 'com.athom.hue': sample }
  const expected = `values by app such as ${JSON.stringify(example)}`
  return option(map(value, expected), { default: new Map<string, never>(), example })
}

const webProbe = text({
  name: 'probe',
  expected: 'a path such as /status, followed by the expected status if that is not 200 to 299',
  pattern: /^\/[!-~]{0,200}(?: [1-5]\d\d)?$/,
})

const UNAVAILABLE = 'expected a limit such as {devices: all, for: 10m}'

const away = duration('1s', '168h')
const unavailable = v.pipe(
  fixedKeys,
  v.strictObject({ devices: v.union([v.literal('all'), integer(1, 10_000)], UNAVAILABLE), for: away }, UNAVAILABLE),
  v.readonly(),
  v.metadata({
    name: 'limit of unavailable devices',
    show: (limit: { devices: unknown; for: number }) => ({ ...limit, for: show(away, limit.for) }),
  }),
)

export const guardOptions = liveOptions({
  'guard.watch': listOf(appPattern, ['*']).doc(
    'Apps that the guardian restarts, by id; `*` stands for any characters, `?` for one. If the list is empty, it restarts no app by itself.',
  ),
  'guard.ignore': listOf(appPattern, ['com.example.experiment']).doc(
    'Apps that the guardian ignores; overrides `guard.watch`.',
  ),
  'guard.backoff': option(duration('1s', '1h'), { default: '10s' }).doc(
    'Delay before the first restart of an app; doubles after each restart.',
  ),
  'guard.backoff_max': option(duration('1s', '24h'), { default: '10m' }).doc('The longest delay before a restart.'),
  'guard.max_restarts': option(integer(1, 100), { default: 5 }).doc(
    'Number of restarts of an app within `guard.window` after which the guardian gives up, until the app has run for an hour, has a new version, or a command resets the count.',
  ),
  'guard.window': option(duration('1s', '24h'), { default: '30m' }).doc(
    'Period for `guard.max_restarts` and `guard.hub_max_restarts`.',
  ),
  'guard.hub_max_restarts': option(integer(1, 1000), { default: 20 }).doc(
    'Maximum number of restarts of all apps of a hub together within `guard.window`; other restarts wait.',
  ),
  'guard.retry': {
    doc: 'After the guardian has given up on an app, it restarts the app once after each of these delays, and then repeatedly after the last delay, until the app has run for an hour. `[]`: never.',
    schema: list(duration('1s', '7d')),
    default: ['15m', '1h', '6h', '24h'],
  },
  'guard.storm.apps': option(integer(2, 1000), { default: 3 }).doc(
    'Number of apps of a hub that must crash within `guard.storm.within` to count as a storm, during which no app is restarted.',
  ),
  'guard.storm.within': option(duration('1s', '1h'), { default: '60s' }).doc(
    'Period for `guard.storm.apps`. A storm is over when no app has crashed for this long.',
  ),
  'guard.after_boot': byApp(duration('1s', '24h'), '5m').doc(
    'Delay by app: the app is restarted once, when this time has passed since its hub started.',
  ),
  'guard.quiet_hours': option(quietHours, { example: '23:00-07:00' }).doc(
    'Time of day during which the guardian only monitors apps: it neither restarts nor updates them.',
  ),
  'guard.time_zone': option(timeZone, { example: 'Europe/Berlin' }).doc(
    "Time zone of `guard.quiet_hours` and `guard.schedule`; default: the machine's.",
  ),
  'guard.memory_limit': byApp(size('1MiB', '65536MiB'), '120MiB').doc(
    'Memory limit by app; an app above its limit is restarted.',
  ),
  'guard.cpu_limit': byApp(integer(1, 1600), 80).doc(
    'CPU limit by app in per cent of one core; an app above its limit is restarted.',
  ),
  'guard.change_limit': byApp(duration('1m', '720h'), '2h').doc(
    'Time limit by app: a running app is restarted if nothing about it, not even its usage, has changed for this time.',
  ),
  'guard.probe': {
    ...byApp(webProbe, '/status').doc(
      "By app: a path in the app's own web API, which the guardian requests with GET at each read of the app list; optionally also the expected status (default: 200 to 299).",
    ),
    example: { 'com.athom.hue': '/status', 'com.example.bridge': '/login 401' },
  },
  'guard.for_reads': option(integer(1, 1000), { default: 3 }).doc(
    'Number of consecutive reads of the app list after which an app counts as above a limit, silent, or failing its probe.',
  ),
  'guard.silent': listOf(appPattern, ['com.athom.hue']).doc(
    'Apps that are restarted if the hub stops reporting their usage, but still reports the usage of other apps. Other apps only get an entry in `attention`.',
  ),
  'guard.unavailable': byApp(unavailable, { devices: 'all', for: '10m' }).doc(
    'Limit by app: the number of its devices (or `all`) that must be unavailable, and for how long, before the app is restarted.',
  ),
  'guard.schedule': byApp(cron, '0 4 * * 1').doc(
    'Scheduled restarts, as cron expressions by app; on each hub, one app is restarted at a time.',
  ),
  'guard.history': option(integer(1, MAX_HISTORY), { default: 20 }).doc(
    'Number of events that the history of an app contains.',
  ),
  'updates.policy': option(choice(['manual', 'window']), { default: 'manual' }).doc(
    'Whether the guardian updates apps: never (`manual`), or one at a time in the update window (`window`).',
  ),
  'updates.window.start': option(cron, { example: '0 4 * * *' }).doc(
    'Start of the update window, as a cron expression.',
  ),
  'updates.window.length': option(duration('1m', '24h'), { default: '2h' }).doc(
    'Length of the update window; an update that has started is completed.',
  ),
  'updates.time_zone': option(timeZone, { example: 'Europe/Berlin' }).doc(
    "Time zone of the update window; default: the machine's.",
  ),
  'updates.hold_days': option(integer(0, 365), { default: 0 }).doc(
    'A version is installed only after the bridge has seen it offered for this number of days. Apps whose newest version is unknown are skipped.',
  ),
  'updates.severity': byApp(choice(['patch', 'minor', 'major']), 'minor').doc(
    'Largest version step, by app, that is installed in the update window: `patch`, `minor` or `major`. An unknown step counts as `major`. Default: `major`.',
  ),
  'updates.store': flag(false).doc(
    'Whether to query the public app store once a day for each installed app, to get the newest version if the hub does not report it, and the changelog.',
  ),
  'updates.backup': flag(false).doc(
    'Whether the hub makes a backup before an update; if the backup fails, the app is not updated.',
  ),
  'updates.off_when_bad': flag(false).doc(
    'Whether automatic updates of an app are turned off when it crashes three times within 30 minutes after an update.',
  ),
})
