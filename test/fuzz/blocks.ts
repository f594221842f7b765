/** Measures how long inputs block the event loop, in CPU time of this thread, so that other processes do not matter. */

const LOOK_MS = 2

export const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** The longest time for which `work` blocked the event loop, in milliseconds, at a resolution of 2 ms. */
export async function longestBlock(work: () => unknown): Promise<number> {
  let since = cpuMs()
  let longest = 0
  const look = () => {
    const now = cpuMs()
    longest = Math.max(longest, now - since)
    since = now
  }
  const looking = setInterval(look, LOOK_MS)
  try {
    const working = work()
    look()
    await working
  } finally {
    look()
    clearInterval(looking)
  }
  return longest
}
