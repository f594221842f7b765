/** Measures how long inputs block the event loop, in CPU time of this thread, so that other processes do not matter. */

const CHECK_INTERVAL_MS = 2

export const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Returns the longest time for which `work` blocked the event loop, in milliseconds, at a resolution of 2 ms. */
export async function longestBlock(work: () => unknown): Promise<number> {
  let since = cpuMs()
  let longest = 0
  const check = () => {
    const now = cpuMs()
    longest = Math.max(longest, now - since)
    since = now
  }
  const timer = setInterval(check, CHECK_INTERVAL_MS)
  try {
    const working = work()
    check()
    await working
  } finally {
    check()
    clearInterval(timer)
  }
  return longest
}
