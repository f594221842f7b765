import { BLINDS, HUE, ODD, PUMP, SAUNA } from '../config.ts'
import type { Theatre } from '../theatre.ts'

const hue = (command: string) => `home/app/${HUE}/cmd/${command}`
const pump = (command: string) => `home/app/${PUMP}/cmd/${command}`

export async function commands(theatre: Theatre): Promise<void> {
  const ask = theatre.ask.bind(theatre)
  await theatre.stage('commands that read', async () => {
    await ask(hue('get'))
    await ask(hue('get'), 'PRESS')
    await ask(hue('get'), '{"transaction":"read-1"}')
    await ask(hue('get-std'), '{"message":"for the author"}')
    await ask(hue('get-settings'), '{"transaction":2}')
    await ask(hue('get-locales'))
    await ask(hue('get-setting/brightness'))
    await ask(hue('get-setting'), '{"name":"brightness"}')
    await ask('home/cmd/get-apps')
    await ask('home/cmd/get-apps', '{"filter":{"enabled":true,"state":"running","autoupdate":false}}')
    await ask('home/cmd/refresh')
    await ask('attic/cmd/get-apps', '{"transaction":"attic"}')
    await ask(`attic/app/${ODD.level}/cmd/get`)
    await ask(`attic/app/${BLINDS}/cmd/get-settings`)
    await ask('bridge/cmd/ping')
    await ask('bridge/cmd/ping', '{"transaction":"ping-1","expires_at":"2026-01-01T01:00:00Z"}')
  })
  await theatre.stage('commands about settings', async () => {
    await ask(hue('set-setting/night_mode'), 'true')
    await ask(hue('set-setting'), '{"name":"brightness","value":55,"transaction":"set-1"}')
    await ask(pump('set-setting/unit'), 'F')
    await ask(pump('set-setting/note'), 'text that is not JSON')
    await ask(pump('set-setting/note'), '{"a":[1,null,"ü"],"transaction":"part of the value"}')
    await ask(pump('set-setting/new%20one'), '7')
    await ask(pump('unset-setting/new%20one'))
    await ask(hue('unset-setting'), '{"name":"brightness","transaction":"unset-1"}')
    await ask(hue('set-setting/brightness'), '40')
    await ask(`attic/app/${BLINDS}/cmd/set-setting/invert`, 'true')
  })
  await theatre.stage('commands about the life of an app', async () => {
    await ask(hue('restart'), '{"transaction":"restart-1"}')
    await theatre.walk('home', 3)
    await ask(hue('disable'))
    await theatre.walk('home', 1)
    await ask(hue('enable'))
    await theatre.walk('home', 1)
    await ask(hue('enabled'), 'OFF')
    await theatre.walk('home', 1)
    await ask(hue('enabled'), 'ON')
    await theatre.walk('home', 1)
    await ask(hue('garbage-collect'))
    await ask(hue('autoupdate'), 'OFF')
    await ask(hue('autoupdate'), 'true')
    await ask(hue('update'), '{"autoupdate":false,"channel":"beta","transaction":"update-1"}')
    await theatre.walk('home', 3)
    await ask(hue('update'), '{"channel":"stable"}')
    await theatre.walk('home', 3)
  })
  await theatre.stage('an update is installed', async () => {
    const { home } = theatre.hubs
    home.hold('installFromAppStore')
    await theatre.waitFor(pump('install'), {}, async () => {
      await theatre.asker.publish(`hub2mqtt/${pump('install')}`, '{"transaction":"install-1"}')
      await theatre.reach('the installation', () => home.isAsked('installFromAppStore'))
      await theatre.walk('home', 3)
      home.open()
    })
    await ask(pump('install'), '{"channel":"beta"}')
    await theatre.walk('home', 3)
  })
  await theatre.stage('commands for the hub and the bridge', async () => {
    await ask('home/cmd/speak', 'Good morning')
    await ask('home/cmd/speak', '{"text":"Good evening","transaction":"speak-1"}')
    await ask('bridge/cmd/log-level', 'debug')
    await ask('bridge/cmd/log-level', 'warn')
  })
  await theatre.stage('answers on a response topic', async () => {
    const responseTopic = 'recorder/replies/one'
    const correlationData = Buffer.from('correlation-1')
    await ask(hue('get'), '', { properties: { responseTopic, correlationData } })
    await ask(hue('get-setting/nothing'), '', { properties: { responseTopic, correlationData } })
    await ask('bridge/cmd/ping', '', { properties: { responseTopic } })
    await ask('bridge/cmd/ping', '', { properties: { correlationData: Buffer.from('without a response topic') } })
    await ask('bridge/cmd/ping', '', { properties: { responseTopic: 'hub2mqtt/home/state' } })
    await ask('bridge/cmd/ping', '', { properties: { responseTopic: 'hub2mqtt/bridge/result/elsewhere' } })
    await ask(hue('autoupdate'), 'ON', { properties: { responseTopic, correlationData, messageExpiryInterval: 60 } })
  })
}

/** Sends the commands that the configuration must allow by name: `hub/install` and `uninstall`. */
export async function installing(theatre: Theatre): Promise<void> {
  await theatre.stage('an app is installed and removed by command', async () => {
    await theatre.ask('home/cmd/install', `{"id":"${SAUNA}","transaction":"install-2"}`)
    await theatre.walk('home', 2)
    await theatre.ask(`home/app/${SAUNA}/cmd/uninstall`, `{"confirm":"${SAUNA}","purge_settings":true}`)
    await theatre.ask('home/cmd/install', '{"id":"not.in.the.store"}')
  })
}
