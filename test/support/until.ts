/** Waits for a condition to hold, looking again whenever the event loop turns; fails by name after `ms`. */
export async function until<T>(what: string, probe: () => T | undefined | false | null, ms = 10_000): Promise<T> {
  const deadline = performance.now() + ms
  for (;;) {
    const found = probe()
    if (found !== undefined && found !== false && found !== null) return found
    if (performance.now() > deadline) throw new Error(`timed out after ${ms} ms waiting for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
