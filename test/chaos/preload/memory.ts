/** Loaded into the bridge: reports on request the memory in use after a garbage collection, and the open resources. */
process.on('message', (message: unknown) => {
  if (typeof message !== 'object' || message === null || !('memory' in message)) return
  globalThis.gc?.()
  globalThis.gc?.()
  const { rss, heapUsed, external } = process.memoryUsage()
  process.send?.({ rss, heapUsed, external, resources: process.getActiveResourcesInfo().length })
})
// Listening must not keep the process alive.
process.channel?.unref()
