/** The usage of apps in the last minutes, kept small: 12 bytes a sample, at most one every 15 seconds. */
import type { AppsNews } from '../../../hub/app-manager.ts'
import type { Sample } from './protocol.ts'

export const USAGE_MS = 15 * 60_000
const SPACING_MS = 15_000
const MOST = USAGE_MS / SPACING_MS + 1
/** Numbers of one sample: time, per cent, bytes. */
const WIDTH = 3
const UNKNOWN = 0xffff_ffff
const PER_CENT = 100

/** Of one app, oldest first. */
class Track {
  #numbers = new Uint32Array(4 * WIDTH)
  #count = 0

  /** @param at milliseconds from the start of all tracks */
  add(at: number, cpu: number | null, memory: number | null): void {
    const last = this.#count - 1
    // The first of a quarter of a minute stands for it, with the latest values.
    const isClose = last >= 0 && at - (this.#numbers[last * WIDTH] ?? 0) < SPACING_MS
    if (!isClose) this.#makeRoom(at)
    const index = isClose ? last : this.#count++
    const time = isClose ? (this.#numbers[index * WIDTH] ?? at) : at
    this.#numbers.set([time, packed(cpu, PER_CENT), packed(memory, 1)], index * WIDTH)
  }

  get bytes(): number {
    return this.#numbers.byteLength
  }

  since(oldest: number, start: number): Sample[] {
    const samples: Sample[] = []
    for (let i = 0; i < this.#count; i += 1) {
      const [at = 0, cpu = 0, memory = 0] = this.#numbers.subarray(i * WIDTH, (i + 1) * WIDTH)
      if (at >= oldest) samples.push([start + at, unpacked(cpu, PER_CENT), unpacked(memory, 1)])
    }
    return samples
  }

  #makeRoom(now: number): void {
    let old = 0
    while (old < this.#count && (this.#numbers[old * WIDTH] ?? 0) < now - USAGE_MS) old += 1
    if (this.#count - old >= MOST) old += 1
    this.#numbers.copyWithin(0, old * WIDTH, this.#count * WIDTH)
    this.#count -= old
    if (this.#count * WIDTH < this.#numbers.length) return
    const larger = new Uint32Array(Math.min(MOST, 2 * this.#count) * WIDTH)
    larger.set(this.#numbers)
    this.#numbers = larger
  }
}

function packed(value: number | null, factor: number): number {
  return value === null ? UNKNOWN : Math.min(UNKNOWN - 1, Math.max(0, Math.round(value * factor)))
}

function unpacked(value: number, factor: number): number | null {
  return value === UNKNOWN ? null : value / factor
}

/** Whose samples they are, as its topic needs it. */
interface OfApp {
  readonly hub: string
  readonly app: string
}

export class Usage {
  readonly #start: number
  /** Hub → id of an app → its samples. */
  readonly #tracks = new Map<string, Map<string, Track>>()

  /** @param start epoch milliseconds */
  constructor(start: number) {
    this.#start = start
  }

  /** Takes in what has changed; forgets apps that are gone. */
  take(hub: string, changes: AppsNews['changes'], now: number): void {
    const tracks = this.#tracks.get(hub) ?? new Map<string, Track>()
    this.#tracks.set(hub, tracks)
    for (const { id, after } of changes) {
      if (after === undefined) tracks.delete(id)
      else {
        const track = tracks.get(id) ?? new Track()
        tracks.set(id, track)
        track.add(Math.max(0, now - this.#start), after.cpu_percent, after.memory_bytes)
      }
    }
  }

  forget(hub: string): void {
    this.#tracks.delete(hub)
  }

  /** That the samples take. */
  get bytes(): number {
    return [...this.#tracks.values()]
      .flatMap((tracks) => [...tracks.values()])
      .reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Samples by app, oldest first; without apps that have none. */
  all(now: number): (readonly [OfApp, Sample[]])[] {
    const oldest = now - this.#start - USAGE_MS
    const all = [...this.#tracks].flatMap(([hub, tracks]) =>
      [...tracks].map(([app, track]) => [{ hub, app }, track.since(oldest, this.#start)] as const),
    )
    return all.filter(([, samples]) => samples.length > 0)
  }
}
