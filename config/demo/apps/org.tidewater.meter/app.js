// An app that is always busy: every few seconds, it reads another app, writes a line and sends an event.
export default async ({ app, hub, log }) => {
  const { tariff, currency, interval } = await hub.manager('settings').all()
  const pump = hub.app('net.lindqvist.heatpump')
  let readings = 0

  const read = async () => {
    try {
      const { watts } = await pump.get('/power')
      readings += 1
      const cost = `${((watts / 1000) * tariff).toFixed(3)} ${currency}/h`
      log(`reading ${readings}: ${watts} W, ${cost}`)
      app.emit('reading', { watts, cost })
    } catch (error) {
      log(`no reading: ${error.message}`)
    }
  }
  const timer = setInterval(read, Math.max(1, Number(interval) || 5) * 1000)
  app.on('stop', () => clearInterval(timer))
  app.api.get('/readings', () => ({ readings }))
}
