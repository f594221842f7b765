/** Waits for a condition to hold, looking every `stepMs`; fails by name after `ms`, and at once if the probe throws. */
export async function until<T>(
  what: string,
  probe: () => T | undefined | false | null | Promise<T | undefined | false | null>,
  ms = 10_000,
  stepMs = 2,
): Promise<T> {
  const deadline = performance.now() + ms
  for (;;) {
    const found = await probe()
    if (found !== undefined && found !== false && found !== null) return found
    if (performance.now() > deadline) throw new Error(`timed out after ${ms} ms waiting for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, stepMs))
  }
}
