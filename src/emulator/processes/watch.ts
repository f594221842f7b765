/** Measures the resource usage of app processes each second, and kills an app that uses too much for too long. */
import { readFileSync } from 'node:fs'
import * as v from 'valibot'
import type { Clock } from '../../base/clock.ts'
import type { Usage } from '../records.ts'
import type { AppProcess } from './app-process.ts'

export interface Limits {
  /** Limit on resident memory in bytes. The heap's limit is not enough, because buffers are outside the heap. */
  readonly memory: number
  /** Limit on the CPU usage, as a fraction of one core. */
  readonly cpu: number
  /** Number of consecutive seconds above the CPU limit after which an app is killed. */
  readonly cpuSeconds: number
}

export const LIMITS: Limits = { memory: 256 * 1024 * 1024, cpu: 0.9, cpuSeconds: 30 }

/** Number of consecutive measurements above the memory limit after which an app is killed. */
const MEMORY_WARNINGS = 3
const MEASURE_MS = 1000
/** Linux reports process times in hundredths of a second, independent of the kernel's tick rate. */
const TICK_MS = 10

const Reading = v.object({ cpuMs: v.number(), mem: v.number() })
type Reading = v.InferOutput<typeof Reading>

export type Watch = ReturnType<typeof watchUsage>

export function watchUsage(clock: Clock, limits: Limits) {
  const all = new Map<AppProcess, (when: 'now' | 'each second') => void>()
  let cancel: (() => void) | undefined

  function later(): () => void {
    return clock.after(MEASURE_MS, () => {
      cancel = all.size > 0 ? later() : undefined
      for (const measure of all.values()) measure('each second')
    })
  }

  return {
    add(app: AppProcess, see: (usage: Usage) => void): void {
      let last = { cpuMs: 0, at: clock.elapsed() }
      let cpu = 0
      const warnings = { memory: 0, cpu: 0 }

      const note = ({ cpuMs, mem }: Reading) => {
        const at = clock.elapsed()
        const before = last
        last = { cpuMs, at }
        if (at <= before.at) return
        const share = Math.max(0, (cpuMs - before.cpuMs) / (at - before.at))
        cpu = Number(share.toFixed(4))
        see({ cpu, mem })
        warnings.memory = mem > limits.memory ? warnings.memory + 1 : 0
        warnings.cpu = share >= limits.cpu ? warnings.cpu + 1 : 0
        if (warnings.memory >= MEMORY_WARNINGS) app.unload('Too many memwarns')
        else if (warnings.cpu >= limits.cpuSeconds) app.unload('CPU Warning Limit Reached')
      }
      all.set(app, (when) =>
        measure(app, (reading) => {
          if (!all.has(app)) return
          if (when === 'now') see({ cpu, mem: reading.mem })
          else note(reading)
        }),
      )
      void app.ended.then(() => all.delete(app))
      cancel ??= later()
    },
    measureNow: (app: AppProcess) => all.get(app)?.('now'),
    stop(): void {
      cancel?.()
      cancel = undefined
      all.clear()
    },
  }
}

/** Measures a process and passes its usage to `onReading`, unless the process has just exited. */
function measure(app: AppProcess, onReading: (reading: Reading) => void): void {
  const report = (answer: unknown) => {
    if (v.is(Reading, answer)) onReading(answer)
  }
  if (process.platform === 'linux') report(readProc(app.pid))
  else app.request({ type: 'usage' }).then(report, () => {})
}

/** Reads the usage of a process from `/proc`. Returns `undefined` if the process has just exited. */
function readProc(pid: number | undefined): Reading | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The process name may contain spaces and parentheses; the fields after it do not. User and system time are the
    // 12th and 13th of these fields.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ticks = Number(fields[11]) + Number(fields[12])
    // Do not read `statm`, which counts pages, because the size of a page differs between machines.
    const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return { cpuMs: ticks * TICK_MS, mem: Number(kilobytes ?? 0) * 1024 }
  } catch {
    return undefined
  }
}
