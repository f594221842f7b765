// An app without faults: it has some lights that clients can read and switch.
const lights = new Map([
  ['kitchen', { on: true, dim: 0.8 }],
  ['hall', { on: false, dim: 0.4 }],
])

export default async ({ app, hub, log }) => {
  const settings = hub.manager('settings')
  let transition = await settings.get('transition')
  settings.on('change', (name, value) => {
    if (name === 'transition') transition = value
  })

  const known = (name) => {
    if (!lights.has(name)) throw Object.assign(new Error(`no light ${name}`), { status: 404, code: 'not_found' })
    return lights.get(name)
  }
  app.api.get('/lights', () => Object.fromEntries(lights))
  app.api.get('/lights/:light', ({ params }) => known(params.light))
  app.api.put('/lights/:light', ({ params, body }) => {
    const light = { ...known(params.light), on: body?.on === true }
    lights.set(params.light, light)
    app.emit('light', { name: params.light, ...light })
    log(`${params.light} is ${light.on ? 'on' : 'off'} in ${transition} ms`)
    return light
  })
  log(`${lights.size} lights`)
}
