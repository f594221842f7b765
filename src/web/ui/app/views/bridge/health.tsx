/** A hub as a machine. */
import type { HubHealth } from '../../../../../contract/crash.ts'
import { formatBytes, formatCelsius, formatCount, formatTime } from '../../format.ts'
import type { HubProps } from '../../live/entries.ts'
import { Badge } from '../../parts/controls.tsx'
import { Facts, Time } from '../../parts/layout.tsx'
import { defineStrings } from '../../strings.ts'

const text = defineStrings('health', {
  title: 'Health',
  asOf: 'Health, as of {time}',
  memory: 'Memory',
  free: '{free} free of {total}',
  load: 'Load',
  temperature: 'Temperature',
  storage: 'Storage',
  booted: 'Running since',
  backup: 'Last backup',
  update: 'Firmware on offer',
  power: 'Power supply',
  weak: 'too weak',
  speed: 'Speed',
  throttled: 'reduced to protect the hub',
  lacking: 'With the permission homey.system.readonly of the API key, this shows memory, load and storage of the hub.',
})

/** As `permissions` of a hub's info has it. */
const NEEDED = 'hub.system.readonly'

export function Health({ hub }: HubProps) {
  const health = hub.health.value
  if (health === undefined) {
    const granted = hub.info.value?.permissions ?? []
    const isPermitted = granted.some((scope) => scope === NEEDED || NEEDED.startsWith(`${scope}.`))
    // The figures come a few seconds after the hub.
    return hub.state.value !== 'online' || isPermitted ? null : <p class="quiet">{text.lacking}</p>
  }
  const away = hub.state.value === 'online' ? undefined : hub.since.value
  return (
    <>
      <h3>{away === undefined ? text.title : text.asOf({ time: formatTime(away) })}</h3>
      <HealthFacts health={health} />
    </>
  )
}

/** The figures that every list of a hub's figures has. */
export function figuresOf(health: HubHealth): readonly (readonly [name: string, value: string | undefined])[] {
  const { load_1m: load, temperature_celsius: temperature, storage_free_bytes, storage_total_bytes } = health
  return [
    [text.load, load === null ? undefined : formatCount(load)],
    [text.temperature, temperature === null ? undefined : formatCelsius(temperature)],
    [text.storage, free(storage_free_bytes, storage_total_bytes)],
  ]
}

export function HealthFacts({ health }: { readonly health: HubHealth }) {
  const { booted_at: booted, last_backup_at: backup } = health
  return (
    <Facts
      rows={[
        [text.power, health.undervoltage ? <Badge tone="warn">{text.weak}</Badge> : undefined],
        [text.speed, health.throttled ? <Badge tone="warn">{text.throttled}</Badge> : undefined],
        [text.memory, free(health.memory_free_bytes, health.memory_total_bytes)],
        ...figuresOf(health),
        [text.booted, booted && <Time at={booted} />],
        [text.backup, backup && <Time at={backup} ago />],
        [text.update, health.firmware_update],
      ]}
    />
  )
}

function free(bytes: number | null, total: number | null): string | undefined {
  if (bytes === null || total === null) return undefined
  return text.free({ free: formatBytes(bytes), total: formatBytes(total) })
}
