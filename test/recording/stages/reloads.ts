import { HUE, PUMP, SETTINGS } from '../config.ts'
import type { Theatre } from '../theatre.ts'
import { installing } from './commands.ts'

/** The bridge clears the devices of a removed hub after this time, because the hub may only have been renamed. */
const FAREWELL_MS = 16_000

export async function reloads(theatre: Theatre, config: (changes?: object) => object): Promise<void> {
  const allow = ['uninstall', 'hub/install']
  const usual = config({ commands: { allow } })
  const { home, attic } = theatre.hubs
  await theatre.stage('other commands are allowed', async () => {
    await theatre.reload(config({ commands: { allow, deny: ['disable', 'get-std'] } }))
    await theatre.ask(`home/app/${HUE}/cmd/enabled`, 'OFF')
    await theatre.ask(`home/app/${HUE}/cmd/get-std`)
    await theatre.reload(config({ commands: { read_only: true } }))
    await theatre.ask(`home/app/${HUE}/cmd/restart`)
    await theatre.reload(usual)
  })
  await installing(theatre)
  await theatre.stage('an app is excluded and let in again', async () => {
    await theatre.reload(config({ commands: { allow }, apps: { exclude: ['net.*'] } }))
    await theatre.ask(`home/app/${PUMP}/cmd/get`)
    home.emulated.change(PUMP, { name: 'Heat Pump' })
    await theatre.rest()
    await theatre.reload(usual)
  })
  await theatre.stage('other settings are published', async () => {
    const publish = { [HUE]: { night_mode: 'text' }, [PUMP]: SETTINGS[PUMP] }
    await theatre.reload(config({ commands: { allow }, settings: { publish } }))
    await theatre.reload(config({ commands: { allow }, settings: { publish: {} } }))
    await theatre.reload(usual)
  })
  await theatre.stage('the log level changes', () =>
    theatre.reload(config({ commands: { allow }, log: { level: 'error' } })),
  )
  await theatre.stage('a broken configuration changes nothing', () =>
    theatre.reload(config({ commands: { allow: ['dance'] }, log: { level: 'fatal' } })),
  )
  await theatre.stage('a hub is taken out', async () => {
    await theatre.reload(config({ commands: { allow }, hubs: { home: hubOf(usual, 'home') } }))
    await theatre.ask('attic/cmd/get-apps')
    await theatre.pass(FAREWELL_MS)
  })
  await theatre.stage('the hub is put in again', async () => {
    attic.hold('ping', 'getApps')
    await theatre.reload(usual)
    await theatre.meet('attic')
  })
}

function hubOf(config: object, name: string): unknown {
  const hubs: unknown = Reflect.get(config, 'hubs')
  return typeof hubs === 'object' && hubs !== null ? Reflect.get(hubs, name) : undefined
}
