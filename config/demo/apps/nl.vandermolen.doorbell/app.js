// An app that crashes at intervals, like an app that does not expect its camera to be off.
export default async ({ app, hub, log }) => {
  const seconds = Number(await hub.manager('settings').get('crash_after'))
  app.api.post('/ring', () => app.emit('ring', { at: new Date().toISOString() }))
  if (seconds > 0) setTimeout(connect, seconds * 1000, '192.0.2.77:554')
  log(`looks for its camera in ${seconds} s`)
}

function connect(address) {
  throw new Error(`connect EHOSTUNREACH ${address}`)
}
