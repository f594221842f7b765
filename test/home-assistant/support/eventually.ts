/** Asks again until something is so; fails by name after `ms`, with what was found last if the probe throws. */
export async function eventually<T>(
  what: string,
  probe: () => Promise<T | undefined | false>,
  ms = 30_000,
): Promise<T> {
  const deadline = performance.now() + ms
  for (;;) {
    const late = performance.now() > deadline
    try {
      const found = await probe()
      if (found !== undefined && found !== false) return found
    } catch (error) {
      if (late) throw error
    }
    if (late) throw new Error(`timed out after ${ms} ms waiting for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
