/** Measures processes with figures of the operating system, so that nothing is added to the measured programs. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** Reads the monotonic clock that all processes on a machine share, in milliseconds. */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6

export function cpuMs(pid: number): number {
  const folder = `/proc/${pid}/task`
  const threads = readdirSync(folder).map((thread) => readFileSync(`${folder}/${thread}/schedstat`, 'utf8'))
  return threads.reduce((sum, text) => sum + Number(text.split(' ')[0]), 0) / 1e6
}

/** Runs this process and its new children on one core, with `taskset` of util-linux. */
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

/** Returns the resident memory in bytes. */
export function rss(pid: number): number {
  return kilobytes(pid, /^VmRSS:\s+(\d+) kB/m) * 1024
}

/** Returns the peak resident memory in bytes. */
export function peakRss(pid: number): number {
  return kilobytes(pid, /^VmHWM:\s+(\d+) kB/m) * 1024
}

function kilobytes(pid: number, line: RegExp): number {
  return Number(line.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}
