import type { IClientPublishOptions } from 'mqtt'
import { BLINDS, HUE, PUMP } from '../config.ts'
import type { Theatre } from '../theatre.ts'

const hue = (command: string) => `home/app/${HUE}/cmd/${command}`

const UNADDRESSED: readonly string[] = [
  'nowhere/cmd/refresh',
  'nowhere/app/x/cmd/get',
  'home/app/no.such.app/cmd/restart',
  `home/app/%63om.athom.hue/cmd/get`,
  'home/app/%ZZ/cmd/get',
  hue('dance'),
  hue('get/what'),
  hue('set-setting/'),
  hue('set-setting/%ZZ'),
  hue('set-setting/a/b'),
  'home/cmd/dance',
  'home/cmd',
  'bridge/cmd/restart',
  hue('get-setting/no-such-setting'),
  hue('unset-setting/no-such-setting'),
]

const UNREADABLE: readonly (readonly [topic: string, payload: string | Buffer])[] = [
  [hue('restart'), 'now'],
  [hue('restart'), '[]'],
  [hue('restart'), '{"transaction":"bad-1","force":true}'],
  [hue('restart'), '{"transaction":{}}'],
  [hue('restart'), '{"expires_at":"tomorrow"}'],
  [hue('restart'), Buffer.from([0x7b, 0xff, 0x7d])],
  [hue('restart'), '['.repeat(33)],
  [hue('set-setting/night_mode'), 'x'.repeat(64 * 1024 + 1)],
  [hue('set-setting'), '{"value":1}'],
  [hue('enabled'), 'PERHAPS'],
  [hue('autoupdate'), ''],
  [hue('update'), '{}'],
  [hue('update'), '{"autoupdate":"yes"}'],
  [hue('install'), '{"channel":""}'],
  [hue('uninstall'), ''],
  [hue('uninstall'), '{"confirm":"another.app","transaction":"bad-2"}'],
  ['home/cmd/get-apps', '{"filter":{"state":"asleep"}}'],
  ['home/cmd/speak', ' '],
  ['home/cmd/speak', '{"text":7}'],
  ['bridge/cmd/log-level', 'loud'],
  ['bridge/cmd/ping', '{"a":1}'],
]

export async function refusals(theatre: Theatre): Promise<void> {
  const ask = theatre.ask.bind(theatre)
  await theatre.stage('commands that are for nothing', async () => {
    for (const topic of UNADDRESSED) await ask(topic)
  })
  await theatre.stage('commands that cannot be read', async () => {
    for (const [topic, payload] of UNREADABLE) await ask(topic, payload)
  })
  await theatre.stage('commands that are not permitted', async () => {
    await ask('home/cmd/install', '{"id":"fi.kivinen.sauna","transaction":"no-1"}')
    await ask(`attic/app/${BLINDS}/cmd/enable`, '{"transaction":"no-2"}')
    await ask(`attic/app/${BLINDS}/cmd/enabled`, 'ON')
    await ask(`attic/app/${BLINDS}/cmd/garbage-collect`)
    await ask('attic/cmd/speak', 'nobody hears this')
  })
  await theatre.stage('commands that come too late or again', async () => {
    await ask(hue('restart'), '{"transaction":"late-1","expires_at":"2020-01-01T00:00:00Z"}')
    await ask(hue('restart'), '{"transaction":"late-2","expires_at":1}')
    for (const _ of ['first', 'again']) await ask(hue('garbage-collect'), '{"transaction":"twice-1"}')
    await ask(hue('get'), '{"transaction":"twice-1"}')
    const properties = { correlationData: Buffer.from('twice-2') }
    for (const _ of ['first', 'again']) await ask(hue('get-setting/night_mode'), '', { properties })
    for (const _ of ['first', 'again']) await ask(hue('enabled'), 'MAYBE', { properties })
  })
  await theatre.stage('a command that is retained', async () => {
    await ask(hue('get'), '{"transaction":"kept-1"}', { retain: true })
    await theatre.say(`hub2mqtt/${hue('get')}`, '', { retain: true })
  })
  await theatre.stage('more commands than may wait', () => crowd(theatre))
  await theatre.stage('commands that wait too long', () => delay(theatre))
  await theatre.stage('commands that the hub does not carry out', () => failures(theatre))
}

/** Runs one command, fills the app's queue, and sends one more command, which is refused. */
async function crowd(theatre: Theatre): Promise<void> {
  const { home } = theatre.hubs
  home.hold('getAppLocales')
  await theatre.waitFor(hue('get-locales'), {}, async () => {
    await send(theatre, hue('get-locales'))
    await theatre.reach('the first', () => home.isAsked('getAppLocales'))
    for (let sent = 0; sent < 32; sent += 1) await send(theatre, hue('get-settings'))
    await theatre.ask(hue('get'), '{"transaction":"one too many"}')
    home.open()
  })
}

async function delay(theatre: Theatre): Promise<void> {
  const { home } = theatre.hubs
  home.hold('getAppLocales')
  await theatre.waitFor(hue('get-locales'), {}, async () => {
    await send(theatre, hue('get-locales'))
    await theatre.reach('the first', () => home.isAsked('getAppLocales'))
    const soon = theatre.clock.now() + 2_000
    await send(theatre, hue('get'), `{"transaction":"wait-1","expires_at":${soon}}`)
    await send(theatre, hue('get-settings'), '', { properties: { messageExpiryInterval: 3 } })
    await send(theatre, hue('restart'), '{"transaction":"wait-2"}')
    await theatre.pass(2_100)
    await theatre.pass(10_000)
    home.open()
  })
}

async function failures(theatre: Theatre): Promise<void> {
  const { emulated } = theatre.hubs.home
  const ask = theatre.ask.bind(theatre)
  for (const status of [401, 403, 404, 409, 429, 500, 503]) {
    // The delay is longer than the command may wait, so the bridge does not repeat the request.
    const putOff = status === 429 ? { retryAfter: 30 } : {}
    emulated.behave('answer-status', { status, ...putOff, times: 1, operation: 'garbageCollectApp' })
    await ask(hue('garbage-collect'), `{"transaction":"status-${status}"}`)
    // Refresh, because some of these statuses make the bridge check the hub again.
    await ask('home/cmd/refresh')
  }
  emulated.behave('not-json', { times: 1, operation: 'getAppLocales' })
  await ask(hue('get-locales'))
  const pump = (command: string) => `home/app/${PUMP}/cmd/${command}`
  emulated.behave('execute-then-reset', { times: 1, operation: 'garbageCollectApp' })
  await ask(hue('garbage-collect'), '{"transaction":"reset-1"}')
  emulated.behave('execute-then-reset', { times: 1, operation: 'setAppSetting' })
  await ask(pump('set-setting/unit'), 'C')
  emulated.behave('reset-before-executing', { times: 1, operation: 'setAppSetting' })
  await ask(pump('set-setting/unit'), 'F')
}

function send(theatre: Theatre, topic: string, payload = '', options: IClientPublishOptions = {}): Promise<void> {
  return theatre.asker.publish(`hub2mqtt/${topic}`, payload, options)
}
