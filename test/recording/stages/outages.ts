import { ATTIC_SCOPES, HUE } from '../config.ts'
import type { Theatre } from '../theatre.ts'

export async function outages(theatre: Theatre, withKey: (key: string) => object): Promise<void> {
  const { home, attic } = theatre.hubs
  let comeBack: () => Promise<void> = async () => {}
  await theatre.stage('a hub is gone', async () => {
    comeBack = home.goDown()
    await theatre.shows('hub2mqtt/home/info', '"polling"')
    await theatre.shows('hub2mqtt/home/state', 'offline')
    await theatre.ask('home/cmd/refresh', '{"transaction":"down-1"}')
  })
  await theatre.stage('a hub is back', async () => {
    home.hold('ping', 'getApps')
    await comeBack()
    await theatre.meet('home')
  })
  await theatre.stage('the realtime channel is lost and comes back', async () => {
    home.emulated.dropRealtime('goodbye')
    await theatre.shows('hub2mqtt/home/info', '"polling"')
    await theatre.shows('hub2mqtt/home/info', '"connected"')
  })
  await theatre.stage('a hub refuses the key', async () => {
    attic.emulated.setKeys({ 'new-key': ATTIC_SCOPES.all })
    await theatre.shows('hub2mqtt/attic/info', '"unauthorized"')
  })
  await theatre.stage('a hub gets another key, which may do more', async () => {
    await theatre.reload(withKey('new-key'))
    await theatre.shows('hub2mqtt/attic/info', '"connected"')
  })
  await theatre.stage('the broker loses the bridge', async () => {
    await theatre.cut()
    home.emulated.crash(HUE, 'Error: nobody listens')
    await theatre.rest()
    home.emulated.recover(HUE)
    await theatre.walk('home', 1)
    await theatre.say('hub2mqtt/home/app/came.meanwhile', '{}', { retain: true })
    await theatre.say(`hub2mqtt/home/app/${HUE}/cmd/restart`, '{"transaction":"unheard-1"}', { retain: false })
  })
  await theatre.stage('the bridge reaches the broker again', () => theatre.repair())
}
