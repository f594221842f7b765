/** Makes the bridge report its memory after a garbage collection, and its open resources, on request. */
process.on('message', (message: unknown) => {
  if (typeof message !== 'object' || message === null || !('memory' in message)) return
  globalThis.gc?.()
  globalThis.gc?.()
  const { rss, heapUsed, external } = process.memoryUsage()
  process.send?.({ rss, heapUsed, external, resources: process.getActiveResourcesInfo().length })
})
// The listener must not keep the process alive.
process.channel?.unref()
