/** The longest interval between two checks. The interval grows with the waiting time. */
const MAX_STEP_MS = 50

/** Waits for a condition, and checks it every `stepMs` at first. Fails after `ms`, or as soon as the probe throws. */
export async function until<T>(
  what: string,
  probe: () => T | undefined | false | null | Promise<T | undefined | false | null>,
  ms = 10_000,
  stepMs = 2,
): Promise<T> {
  const begunAt = performance.now()
  for (;;) {
    const found = await probe()
    if (found !== undefined && found !== false && found !== null) return found
    const waitedMs = performance.now() - begunAt
    if (waitedMs > ms) throw new Error(`timed out after ${ms} ms waiting for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, Math.max(stepMs, Math.min(MAX_STEP_MS, waitedMs / 20))))
  }
}
