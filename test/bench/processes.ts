/** Processes that are measured from outside, by what the system says of them: nothing is added to what is measured. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** Milliseconds of the clock that all processes of a machine share. */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6

/** Milliseconds of CPU that a process has used so far, all its threads together. */
export function cpuMs(pid: number): number {
  const folder = `/proc/${pid}/task`
  const threads = readdirSync(folder).map((thread) => readFileSync(`${folder}/${thread}/schedstat`, 'utf8'))
  return threads.reduce((sum, text) => sum + Number(text.split(' ')[0]), 0) / 1e6
}

/** Keeps this process and all that it starts meanwhile on one core; by util-linux' `taskset`. */
export async function onOneCore(run: () => Promise<void>): Promise<void> {
  const allowed = /^Cpus_allowed_list:\s+(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'
  const keepTo = (cores: string) =>
    execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cores, `${process.pid}`])
  keepTo(allowed.split(/[-,]/)[0] ?? '0')
  try {
    await run()
  } finally {
    keepTo(allowed)
  }
}

/** Resident memory of a process in bytes. */
export function rss(pid: number): number {
  return kilobytes(pid, /^VmRSS:\s+(\d+) kB/m) * 1024
}

/** The most that was ever resident, in bytes. */
export function peakRss(pid: number): number {
  return kilobytes(pid, /^VmHWM:\s+(\d+) kB/m) * 1024
}

function kilobytes(pid: number, line: RegExp): number {
  return Number(line.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}
