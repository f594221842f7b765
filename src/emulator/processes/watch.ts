/** Measures the resource usage of app processes each second, and kills an app that uses too much for too long. */
import { readFileSync } from 'node:fs'
import * as v from 'valibot'
import type { Clock } from '../../base/clock.ts'
import type { Usage } from '../records.ts'
import type { AppProcess } from './app-process.ts'

export interface Limits {
  /** Bytes of resident memory. The heap's limit is not enough, because buffers are outside the heap. */
  readonly memory: number
  /** A fraction of one core. */
  readonly cpu: number
  /** For how many consecutive seconds an app may use more CPU. */
  readonly cpuSeconds: number
}

export const LIMITS: Limits = { memory: 256 * 1024 * 1024, cpu: 0.9, cpuSeconds: 30 }

/** How many consecutive measurements may exceed the memory limit. */
const MEMORY_WARNINGS = 3
const LOOK_MS = 1000
/** Linux reports process times in hundredths of a second, independent of the kernel's tick rate. */
const TICK_MS = 10

const Reading = v.object({ cpuMs: v.number(), mem: v.number() })
type Reading = v.InferOutput<typeof Reading>

interface Watched {
  readonly process: AppProcess
  readonly see: (usage: Usage) => void
  cpu: number
  last: { readonly cpuMs: number; readonly at: number }
  memoryWarnings: number
  cpuWarnings: number
}

export type Watch = ReturnType<typeof watchUsage>

export function watchUsage(clock: Clock, limits: Limits) {
  const all = new Set<Watched>()
  let cancel: (() => void) | undefined

  function later(): () => void {
    return clock.after(LOOK_MS, () => {
      cancel = all.size > 0 ? later() : undefined
      for (const watched of all) look(watched)
    })
  }

  function look(watched: Watched, when: 'now' | 'each second' = 'each second'): void {
    if (process.platform === 'linux') return void note(watched, readProc(watched.process.pid), when)
    watched.process.ownUsage().then(
      (answer) => note(watched, v.is(Reading, answer) ? answer : undefined, when),
      () => {},
    )
  }

  function note(watched: Watched, reading: Reading | undefined, when: 'now' | 'each second'): void {
    if (reading === undefined || !all.has(watched)) return
    if (when === 'now') return void watched.see({ cpu: watched.cpu, mem: reading.mem })
    const at = clock.elapsed()
    const { last } = watched
    watched.last = { cpuMs: reading.cpuMs, at }
    if (at <= last.at) return
    const cpu = Math.max(0, (reading.cpuMs - last.cpuMs) / (at - last.at))
    watched.cpu = Number(cpu.toFixed(4))
    watched.see({ cpu: watched.cpu, mem: reading.mem })
    limit(watched, { cpu, mem: reading.mem })
  }

  function limit(watched: Watched, { cpu, mem }: Usage): void {
    watched.memoryWarnings = mem > limits.memory ? watched.memoryWarnings + 1 : 0
    watched.cpuWarnings = cpu >= limits.cpu ? watched.cpuWarnings + 1 : 0
    if (watched.memoryWarnings >= MEMORY_WARNINGS) watched.process.unload('Too many memwarns')
    else if (watched.cpuWarnings >= limits.cpuSeconds) watched.process.unload('CPU Warning Limit Reached')
  }

  return {
    /** Watches the process until it ends. */
    add(process: AppProcess, see: (usage: Usage) => void): void {
      const last = { cpuMs: 0, at: clock.elapsed() }
      const watched: Watched = { process, see, cpu: 0, last, memoryWarnings: 0, cpuWarnings: 0 }
      all.add(watched)
      void process.ended.then(() => all.delete(watched))
      cancel ??= later()
    },
    /** Measures the process now. */
    lookAt(process: AppProcess): void {
      for (const watched of all) if (watched.process === process) look(watched, 'now')
    },
    stop(): void {
      cancel?.()
      cancel = undefined
      all.clear()
    },
  }
}

/** Returns `undefined` for a process that has just ended. */
function readProc(pid: number | undefined): Reading | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name may contain spaces and parentheses; the fields after it do not. User and system time are the 12th and
    // 13th of these fields.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ticks = Number(fields[11]) + Number(fields[12])
    // Not from `statm`, which counts pages: their size differs between machines.
    const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return { cpuMs: ticks * TICK_MS, mem: Number(kilobytes ?? 0) * 1024 }
  } catch {
    return undefined
  }
}
