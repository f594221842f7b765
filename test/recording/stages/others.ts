/** Other clients of the broker: Home Assistant, clients that clear the bridge's topics, and another bridge. */
import type { Theatre } from '../theatre.ts'

const DEVICE = 'homeassistant/device/hub2mqtt--aaaaaaaaaaaaaaaaaaaaaaaa--com_athom_hue/config'
/** After Home Assistant's birth message, the bridge publishes all devices within this time, one after another. */
const BIRTH_MS = 8_000
const PUT_BACK_MS = 4_000
const STATE = 'hub2mqtt/bridge/state'

export async function others(theatre: Theatre): Promise<void> {
  await theatre.stage('Home Assistant starts', async () => {
    await theatre.say('homeassistant/status', 'offline', { retain: false })
    await theatre.say('homeassistant/status', 'online', { retain: false })
    await theatre.pass(BIRTH_MS)
  })
  await theatre.stage('somebody clears a discovery topic', async () => {
    await theatre.say(DEVICE, '', { retain: true })
    await theatre.pass(PUT_BACK_MS)
  })
  await theatre.stage('somebody says offline in the place of the bridge', async () => {
    await theatre.say(STATE, 'offline', { retain: true })
  })
  await theatre.stage('another bridge was here and says goodbye', () => rival(theatre), [STATE])
}

/**
 * Forges messages of another bridge, after which the bridge reconnects. Mosquitto may publish the will if the new
 * connection overtakes the old one's DISCONNECT, so only the last `bridge/state` counts.
 */
async function rival(theatre: Theatre): Promise<void> {
  const hello = '{"instance":"another-bridge","started_at":"2999-01-01T00:00:00.000Z"}'
  await theatre.say('hub2mqtt/bridge/presence', hello, { retain: false })
  await theatre.say('hub2mqtt/home/state', 'offline', { retain: true })
  await theatre.say('hub2mqtt/home/app/of.the.other', '{}', { retain: true })
  await theatre.say(STATE, 'offline', { retain: true })
  await theatre.startsOver(() => theatre.clock.jump(2_000))
}
