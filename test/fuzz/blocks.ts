/** For how long inputs keep the event loop busy: CPU time of this thread, which other processes of the machine do not add to. */

const LOOK_MS = 2

export const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** The longest stretch of `work` in which the event loop did not turn, in milliseconds, to within 2. */
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
