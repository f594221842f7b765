import { BLINDS, HUE } from '../config.ts'
import type { Theatre } from '../theatre.ts'

/** The time that the bridge gives Home Assistant to migrate entities between the discovery formats. */
const MIGRATION_MS = 6_000
/** The bridge treats a realtime channel as connected after this time. */
const REALTIME_MS = 1_000

export async function restarts(theatre: Theatre, config: (changes?: object) => object): Promise<void> {
  const start = async (changes: object = {}) => {
    theatre.hubs.home.hold('ping', 'getApps')
    theatre.hubs.attic.hold('ping', 'getApps')
    await theatre.start(config(changes))
    await theatre.meet('home')
    await theatre.meet('attic')
  }
  await theatre.stage('the bridge stops', () => theatre.stop())
  await theatre.stage('the bridge starts again with nothing changed', () => start())
  await theatre.stage('the bridge knows its hubs before it reaches the broker', async () => {
    await theatre.stop()
    await theatre.startAlone(config())
    const hubs = Object.values(theatre.hubs)
    await theatre.reach('all hubs', () => hubs.every(({ emulated }) => emulated.connections.subscribers === 1))
    await theatre.pass(REALTIME_MS)
    await theatre.repair()
  })
  await theatre.stage('much happens while the bridge is away', async () => {
    await theatre.stop()
    theatre.hubs.attic.emulated.uninstall(BLINDS)
    await theatre.say(`hub2mqtt/home/app/${HUE}/cmd/disable`, '{"transaction":"kept-2"}', { retain: true })
    await theatre.say('hub2mqtt/home/cmd/refresh', '', { retain: false })
    await theatre.say('hub2mqtt/removed/app/x', '{}', { retain: true })
  })
  await theatre.stage('the bridge starts with discovery by component', async () => {
    await start({ discovery: { format: 'component' } })
    await theatre.pass(MIGRATION_MS)
  })
  await theatre.stage('the bridge starts without discovery', async () => {
    await theatre.stop()
    await start({ discovery: { format: 'off' } })
  })
  await theatre.stage('the bridge starts with discovery elsewhere', async () => {
    await theatre.stop()
    await start({ discovery: { prefix: 'elsewhere' } })
  })
  await theatre.stage('the bridge starts with discovery where it was at first', async () => {
    await theatre.stop()
    await start()
  })
  await theatre.stage('the bridge stops for good', () => theatre.stop())
}
