import { SteppedHub } from './hub.ts'

export const HUE = 'com.athom.hue'
export const PUMP = 'net.lindqvist.heatpump'
export const BLINDS = 'io.bramblewood.blinds'
/** An app whose id must be encoded in topics. */
export const ODD = { id: 'odd/id+ü', level: 'odd%2Fid%2B%C3%BC' } as const
export const SAUNA = 'fi.kivinen.sauna'

const KEYS = { home: 'key-of-home', attic: 'key-of-attic' } as const
export const ATTIC_SCOPES = { few: ['hub.app.readonly', 'hub.app.control'], all: ['hub.app'] } as const

export async function startHubs() {
  const home = await SteppedHub.start({
    flavour: 'older',
    id: 'aaaaaaaaaaaaaaaaaaaaaaaa',
    version: '8.1.6',
    keys: { [KEYS.home]: ['hub.app', 'hub.speech'] },
    apps: [
      {
        id: HUE,
        name: 'Lumen Lights',
        version: '7.0.12',
        author: 'Ottilie Brandt',
        settings: { night_mode: false, brightness: 40, secret: 'never published' },
        usage: { cpu: 0.021, mem: 61_341_696 },
      },
      {
        id: PUMP,
        name: 'Heat Pump',
        version: '2.4.1',
        author: 'Joar Lindqvist',
        settings: { unit: 'C', note: 'cellar' },
        update: '2.5.0',
        autoupdate: false,
      },
    ],
    store: [
      { id: PUMP, name: 'Heat Pump', version: '2.5.0', author: 'Joar Lindqvist' },
      { id: SAUNA, name: 'Sauna', version: '2.0.1', author: 'Aino Kivinen', settings: { target: 82 } },
    ],
  })
  const attic = await SteppedHub.start({
    flavour: 'newer',
    id: 'bbbbbbbbbbbbbbbbbbbbbbbb',
    version: '12.4.0',
    keys: { [KEYS.attic]: ATTIC_SCOPES.few },
    apps: [
      { id: BLINDS, name: 'Bramblewood Blinds', version: '0.9.8', author: 'M. Bramble', enabled: false },
      { id: ODD.id, name: 'Odd "One" Ü', version: '1.0.0-beta.3', crashed: 'Error: connect EHOSTUNREACH' },
    ],
    store: [],
  })
  return { home, attic }
}

type Hubs = Awaited<ReturnType<typeof startHubs>>

export const SETTINGS = {
  [HUE]: { night_mode: 'switch', brightness: { type: 'number', min: 0, max: 100, step: 5, name: 'Light level' } },
  [PUMP]: { unit: { type: 'select', options: ['C', 'F'] }, note: 'text' },
} as const

/** Returns the configuration of the first start, with these changes. */
export function configOf(
  url: string,
  { home, attic }: Hubs,
  changes: object = {},
  atticKey: string = KEYS.attic,
): object {
  // With these intervals, the bridge reads lists only when the scenario requests it.
  const manual = { poll_interval: '1h', poll_interval_fallback: '1h', timeout: '5m' }
  return {
    mqtt: { url, client_id: 'recording', base_topic: 'hub2mqtt' },
    http: { enabled: false },
    hubs: {
      home: { url: home.emulated.url, api_key: KEYS.home, ...manual },
      attic: { url: attic.emulated.url, api_key: atticKey, ...manual },
    },
    settings: { publish: SETTINGS },
    commands: { allow: ['uninstall'] },
    ...changes,
  }
}
