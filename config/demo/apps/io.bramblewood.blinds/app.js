// An app that stops slowly: it first closes every blind, which takes longer than the hub waits.
const CLOSING_MS = 10_000

export default ({ app, log }) => {
  app.api.get('/position', () => ({ position: 0.5 }))
  app.on('stop', () => {
    log('closes every blind first')
    return new Promise((resolve) => setTimeout(resolve, CLOSING_MS))
  })
}
