// An app with a memory leak: it keeps more memory each second, until the hub terminates it.
const kept = []

export default async ({ app, hub, log }) => {
  const kilobytes = Number(await hub.manager('settings').get('leak')) || 0
  const timer = setInterval(() => kept.push(Buffer.alloc(kilobytes * 1024, 1)), 1000)
  app.on('stop', () => clearInterval(timer))
  app.api.get('/kept', () => ({ bytes: kept.length * kilobytes * 1024 }))
  await hub.manager('apps').on('app.update', ({ id, state }) => {
    if (state === 'crashed') log(`${id} has crashed`)
  })
}
