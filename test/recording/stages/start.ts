import type { Theatre } from '../theatre.ts'

/** Retained messages that an earlier bridge and other programs have left on the broker. */
const FOUND: Readonly<Record<string, string>> = {
  'hub2mqtt/gone/info': '{}',
  'hub2mqtt/home/app/left.over': '{}',
  'hub2mqtt/home/cmd/refresh': '{"transaction":"kept-0"}',
  'hub2mqtt/somebody/elses/topic': 'stays',
  'homeassistant/device/somebody_elses/config': '{"origin":{"name":"somebody else"}}',
  'homeassistant/device/hub2mqtt--cccccccccccccccccccccccc--left_over/config':
    '{"origin":{"name":"hub2mqtt"},"availability":[{"topic":"hub2mqtt/bridge/state"}]}',
}

export async function start(theatre: Theatre, config: object): Promise<void> {
  await theatre.stage('before the bridge', async () => {
    for (const [topic, payload] of Object.entries(FOUND)) await theatre.say(topic, payload, { retain: true })
  })
  await theatre.stage('the bridge starts', async () => {
    for (const hub of Object.values(theatre.hubs)) hub.hold('ping', 'getApps')
    await theatre.start(config)
  })
  await theatre.stage('home answers', () => theatre.meet('home'))
  await theatre.stage('attic answers', () => theatre.meet('attic'))
}
