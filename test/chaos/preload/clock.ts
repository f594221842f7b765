/** Loaded into the bridge: lets the wall clock jump, as NTP or a user may do. Monotonic time goes on. */
const now = Date.now
let by = 0
Date.now = () => now() + by

process.on('message', (message: unknown) => {
  if (typeof message !== 'object' || message === null) return
  if ('clockBy' in message && typeof message.clockBy === 'number') by = message.clockBy
})
// Listening must not keep the process alive.
process.channel?.unref()
