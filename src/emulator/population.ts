/** Simulated apps. All names are invented. */
import lights from '../../config/demo/apps/com.athom.hue/app.json' with { type: 'json' }
import scripts from '../../config/demo/apps/dev.quietbytes.scripts/app.json' with { type: 'json' }
import blinds from '../../config/demo/apps/io.bramblewood.blinds/app.json' with { type: 'json' }
import heatPump from '../../config/demo/apps/net.lindqvist.heatpump/app.json' with { type: 'json' }
import doorbell from '../../config/demo/apps/nl.vandermolen.doorbell/app.json' with { type: 'json' }
import meter from '../../config/demo/apps/org.tidewater.meter/app.json' with { type: 'json' }
import vacuum from '../../config/demo/apps/se.norrsken.vacuum/app.json' with { type: 'json' }
import type { AppSeed } from './records.ts'

/** The sample apps, here without a process, and an app that has no settings. */
export const DEFAULT_APPS: readonly AppSeed[] = [
  { ...lights, usage: { cpu: 0.021, mem: 61_341_696 } },
  { ...heatPump, usage: { cpu: 0.008, mem: 48_234_496 }, update: '2.5.0', autoupdate: false },
  { ...meter, usage: { cpu: 0.034, mem: 39_845_888 } },
  { ...blinds, enabled: false },
  { ...doorbell, crashed: 'Error: connect EHOSTUNREACH 192.0.2.77:554' },
  {
    id: 'com.parkstreet.weather',
    name: 'Backyard Weather',
    version: '4.0.0',
    author: 'Park Street Makers',
    color: '#0288D1',
    permissions: ['homey:manager:geolocation'],
    usage: { cpu: 0.002, mem: 27_262_976 },
    hasDrivers: false,
  },
  { ...scripts, origin: 'devkit_install', usage: { cpu: 0.11, mem: 96_468_992 }, hasDrivers: false },
  { ...vacuum, usage: { cpu: 0.015, mem: 52_428_800 } },
]

/** The default store of simulated apps: two new apps, and an update for an installed app. */
export const DEFAULT_STORE: readonly AppSeed[] = [
  { id: 'net.lindqvist.heatpump', name: 'Heat Pump', version: '2.5.0', author: 'Joar Lindqvist' },
  {
    id: 'com.harborlight.irrigation',
    name: 'Harborlight Irrigation',
    version: '1.3.0',
    author: 'Harborlight Gardens',
    settings: { skipWhenRaining: true },
  },
  { id: 'fi.kivinen.sauna', name: 'Sauna', version: '2.0.1', author: 'Aino Kivinen', settings: { target: 82 } },
]

/** Generates a plausible mix of `n` apps: most are running; some are disabled, have crashed or have an update. */
export function population(n: number): AppSeed[] {
  return Array.from({ length: n }, (_, index) => ({
    id: `net.population.app${String(index).padStart(4, '0')}`,
    name: `Population ${index}`,
    version: `1.${index % 10}.${index % 7}`,
    author: 'The Population Office',
    enabled: index % 17 !== 16,
    settings: { index, label: `app ${index}` },
    usage: { cpu: (index % 20) / 100, mem: 20_000_000 + (index % 50) * 1_000_000 },
    ...(index % 11 === 10 ? { update: `2.0.${index % 7}` } : {}),
    ...(index % 23 === 22 ? { crashed: 'Error: out of patience' } : {}),
  }))
}
