/** @type {import('hub2mqtt/sdk').Start} */
export default async ({ app, hub, log }) => {
  const settings = hub.manager('settings')
  let greeting = await settings.get('greeting')
  settings.on('change', (name, value) => {
    if (name === 'greeting') greeting = value
  })

  app.api.get('/greeting/:name', ({ params }) => {
    const text = `${greeting}, ${params.name}!`
    app.emit('greeting', { text })
    return { text }
  })
  app.on('stop', () => log('goodbye'))
  log(`${app.id} ${app.version} greets`)
}
