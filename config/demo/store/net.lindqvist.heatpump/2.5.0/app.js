// An app with settings, and with a web API that other apps call.
export default async ({ app, hub, log }) => {
  const settings = hub.manager('settings')
  let zones = (await settings.get('zones')) ?? {}
  settings.on('change', (name, value) => {
    if (name !== 'zones') return
    zones = value ?? {}
    log('the zones were changed from outside')
  })

  app.api.get('/zones', () => zones)
  app.api.put('/zones/:zone', async ({ params, body }) => {
    if (typeof body?.target !== 'number') {
      throw Object.assign(new Error('target: must be a number'), { status: 400, code: 'invalid_body' })
    }
    zones = { ...zones, [params.zone]: body.target }
    await settings.set('zones', zones)
    app.emit('zone', { zone: params.zone, target: body.target })
    return zones
  })
  app.api.get('/boost', () => settings.get('boost'))
  app.api.get('/power', () => ({ watts: Object.values(zones).reduce((sum, target) => sum + 20 * target, 0) }))
  log(`heats ${Object.keys(zones).join(', ')}`)
}
