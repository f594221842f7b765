/** Simulated apps. All names are invented. */
import type { AppSeed } from './records.ts'

export const DEFAULT_APPS: readonly AppSeed[] = [
  {
    id: 'com.athom.hue',
    name: 'Lumen Lights',
    version: '7.0.12',
    author: 'Ottilie Brandt',
    color: '#1B6EC2',
    settings: { transition: 400, bridges: ['192.0.2.14'] },
    usage: { cpu: 0.021, mem: 61_341_696 },
  },
  {
    id: 'net.lindqvist.heatpump',
    name: 'Heat Pump',
    version: '2.4.1',
    author: 'Joar Lindqvist',
    color: '#C2491B',
    settings: { pollInterval: 60, unit: 'C', zones: { living: 21, bedroom: 18.5 } },
    usage: { cpu: 0.008, mem: 48_234_496 },
    update: '2.5.0',
    autoupdate: false,
  },
  {
    id: 'org.tidewater.meter',
    name: 'Tidewater Energy Meter',
    version: '1.12.3',
    author: 'Tidewater Collective',
    color: '#2E7D32',
    settings: { tariff: 0.2874, currency: 'EUR' },
    usage: { cpu: 0.034, mem: 39_845_888 },
  },
  {
    id: 'io.bramblewood.blinds',
    name: 'Bramblewood Blinds',
    version: '0.9.8',
    author: 'M. Bramble',
    color: '#6D4C41',
    enabled: false,
    settings: { invert: false },
  },
  {
    id: 'nl.vandermolen.doorbell',
    name: 'Doorbell',
    version: '3.1.0',
    author: 'Sietske van der Molen',
    color: '#455A64',
    crashed: 'Error: connect EHOSTUNREACH 192.0.2.77:554',
    settings: { chime: 'westminster', volume: 70 },
  },
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
  {
    id: 'dev.quietbytes.scripts',
    name: 'Quiet Scripts',
    version: '1.0.0-beta.3',
    author: 'Ines Quiroga',
    color: '#7B1FA2',
    origin: 'devkit_install',
    permissions: ['homey:manager:api'],
    usage: { cpu: 0.11, mem: 96_468_992 },
    hasDrivers: false,
  },
  {
    id: 'se.norrsken.vacuum',
    name: 'Norrsken Vacuum',
    version: '2.2.5',
    author: 'Norrsken Robotik',
    color: '#F9A825',
    settings: { map: null, schedule: ['08:30', '19:00'] },
    usage: { cpu: 0.015, mem: 52_428_800 },
  },
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
