import type { Apps } from './apps.ts'
import type { Timers } from './timers.ts'

export interface Pace {
  usageMs: number
  crashMs: number
  random: () => number
}

/** What happens on a hub without anybody asking: usage moves, and now and then an app crashes and is started again. */
export function liveOn(apps: Apps, timers: Timers, { usageMs, crashMs, random }: Pace): void {
  timers.every(usageMs, () => apps.moveUsage())
  timers.every(crashMs, () => {
    const running = [...apps.records].filter(([, { state }]) => state === 'running')
    const [victim] = running[Math.floor(random() * running.length)] ?? []
    if (victim === undefined) return
    apps.crash(victim, 'Error: out of luck')
    timers.after(crashMs / 2, () => {
      if (apps.records.get(victim)?.crashed === true) apps.restart(victim)
    })
  })
}
